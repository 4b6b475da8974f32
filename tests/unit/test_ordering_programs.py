"""Random streams, behaviors and background work: verdicts agree with a model without times.

For every stream, the model keeps the writes that are certain to land before work queued now.
It follows the rules of the CUDA driver's documentation.
"""

from hypothesis import given
from hypothesis import strategies as st
from simulated_device import STREAM_KINDS, Behaviour, SimulatedDevice, pair, stream_of

from dlprof.worker.instruments import ordering
from dlprof.worker.instruments.ordering import SEVERITY

MS = 1_000_000
ORDERS = ("host", "device", "event", "legacy", "nothing")
COPIES = (None, "in turn", "at once")
"""None for a view; an immediate copy is made before any ordering or wait."""
BY_ITSELF = {"host": "host-sync", "device": "device-sync", "event": "stream-ordered"}
"""Orders that hold on all kinds of streams."""


class Model:
    """Queue a write on the giver's stream; return whether the taker's next work must see it."""

    def __init__(self, giver, taker):
        self.kinds = {"giver": giver, "taker": taker, "legacy": "legacy"}
        # Frameworks on the legacy or the per-thread default stream share it.
        self.stream = {
            one: kind if kind in ("legacy", "per-thread") else one
            for one, kind in self.kinds.items()
        }
        self.landed = dict.fromkeys(self.stream.values(), False)
        self.landed[self.stream["giver"]] = True

    def is_certain(self, one):
        if self.landed[self.stream[one]]:
            return True
        if self.kinds[one] == "legacy":
            blocking = [other for other, kind in self.kinds.items() if kind != "non-blocking"]
            return any(self.landed[self.stream[other]] for other in blocking)
        return self.kinds[one] != "non-blocking" and self.landed["legacy"]

    def verdict(self, order, copies):
        if copies == "at once" and not self.is_certain("taker"):
            return "unordered"
        if order in BY_ITSELF:
            return BY_ITSELF[order]
        if order == "legacy":
            self.landed["legacy"] = True
        return "stream-ordered" if self.is_certain("taker") else "unordered"


def true_verdict(order, kinds, movable, copies=None):
    """Return the worse verdict of the default streams and of those they can be moved to."""
    moved = ["non-blocking" if moves else kind for kind, moves in zip(kinds, movable, strict=True)]
    found = [Model(*kinds).verdict(order, copies)]
    if any(movable):
        found.append(Model(*moved).verdict(order, copies))
    return max(found, key=SEVERITY.index)


kind = st.sampled_from(STREAM_KINDS)


@given(
    order=st.sampled_from(ORDERS),
    kinds=st.tuples(kind, kind),
    private=st.tuples(st.booleans(), st.booleans()),
    copies=st.sampled_from(COPIES),
    host_us=st.integers(1, 2_000),
    others=st.lists(st.tuples(kind, st.integers(1, 500)), max_size=4),
)
def test_the_verdict_is_the_true_one(order, kinds, private, copies, host_us, others):
    device = SimulatedDevice()
    case, _ = pair(
        device,
        kinds,
        Behaviour(private=private[0]),
        order=order,
        copies=copies is not None,
        hasty=copies == "at once",
        private=private[1],
        host_ns=1_000 * host_us,
    )
    for one, length_ms in others:
        device.spin(stream_of(device, one), length_ms * MS)
    found = ordering.measure(case, device)
    truth = true_verdict(order, kinds, [not one for one in private], copies)
    assert found["verdict"] == truth
    waits = BY_ITSELF.get(order) if order in ("host", "device") else None
    assert found["evidence"].get("waits") == (waits if truth == "unordered" else None)


@given(
    order=st.sampled_from((*ORDERS, "half")),
    kinds=st.tuples(kind, kind),
    mute=st.booleans(),
    blocks=st.booleans(),
)
def test_an_undecidable_order_is_reported_as_unknown(order, kinds, mute, blocks):
    producer = Behaviour(private=True, blocks=blocks)
    case, device = pair(None, kinds, producer, order=order, private=True, mute=mute)
    found = ordering.measure(case, device)
    order = "nothing" if order == "half" else order
    assert found["verdict"] in {"unknown", true_verdict(order, kinds, [False, False])}
    assert found["verdict"] != "unknown" or found["evidence"]["reason"]
