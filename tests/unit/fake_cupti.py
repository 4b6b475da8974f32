"""A stand-in for the module ``cupti.cupti`` of cupti-python 13.4, with the values of its enums.

It delivers what :meth:`FakeCupti.call` and its like were told, when it is flushed, as plain objects
with the fields of the real ones.
"""

import ctypes
import enum
from types import SimpleNamespace


class ActivityKind(enum.IntEnum):
    MEMCPY = 1
    MEMSET = 2
    DRIVER = 4
    RUNTIME = 5
    CONCURRENT_KERNEL = 10
    MEMCPY2 = 22
    SYNCHRONIZATION = 38


class ActivityMemcpyKind(enum.IntEnum):
    UNKNOWN = 0
    HTOD = 1
    DTOH = 2
    ATOH = 4
    DTOD = 8
    HTOH = 9
    PTOP = 10


class CallbackDomain(enum.IntEnum):
    DRIVER_API = 1
    RUNTIME_API = 2


class cuptiError(Exception):  # noqa: N801 - its real name
    pass


class FakeCupti:
    ActivityKind = ActivityKind
    ActivityMemcpyKind = ActivityMemcpyKind
    CallbackDomain = CallbackDomain

    def __init__(self, clock=lambda: 0):
        self.get_timestamp = clock
        self.names = {}
        self.pending = []
        self.enabled = set()
        self.subscribed = False
        self.dropped = 0
        self.refuses = {}
        """What a function raises, by its name."""

    def __getattribute__(self, name):
        if not name.startswith("_") and name in object.__getattribute__(self, "__dict__").get(
            "refuses", {}
        ):
            raise self.refuses[name]
        return object.__getattribute__(self, name)

    # What happened

    def call(self, name, start, end, correlation, runtime=True, thread=1):
        cbid = len(self.names)
        self.names[cbid] = name
        kind = ActivityKind.RUNTIME if runtime else ActivityKind.DRIVER
        self.add(kind, start, end, correlation, cbid=cbid, thread_id=thread)

    def copy(self, kind, size_bytes, start, end, correlation):
        copy_kind = int(ActivityMemcpyKind[kind])
        self.add(
            ActivityKind.MEMCPY, start, end, correlation, copy_kind=copy_kind, bytes=size_bytes
        )

    def add(self, kind, start, end, correlation, **fields):
        if int(kind) in self.enabled:
            self.pending.append(
                SimpleNamespace(
                    kind=int(kind), start=start, end=end, correlation_id=correlation, **fields
                )
            )

    # The module

    def subscribe(self, callback, userdata):
        self.subscribed = True
        return 4711

    def unsubscribe(self, subscriber):
        assert subscriber == 4711
        self.subscribed = False

    def activity_register_callbacks(self, requested, completed):
        size, _ = requested()
        assert size > 0
        self.completed = completed

    def activity_enable(self, kind):
        self.enabled.add(kind)

    def activity_disable(self, kind):
        self.enabled.discard(kind)

    def activity_flush_all(self, flag):
        self.completed(self.pending)
        for activity in self.pending:
            vars(activity).clear()  # CUPTI takes its buffer back
        self.pending = []

    def activity_get_num_dropped_records(self, context, stream_id, dropped):
        ctypes.c_size_t.from_address(dropped).value = self.dropped

    def get_callback_name(self, domain, cbid):
        return self.names[cbid]
