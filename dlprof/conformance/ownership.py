"""Checks of a consumer: capsules, deleters, copies and errors."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

from dlprof.conformance.check import (
    DELETER,
    IMPORT,
    PYTHON,
    SEVERITIES,
    NotApplicable,
    Refused,
    Unknown,
    Violated,
    check,
    exports,
    import_keyword,
    importing,
    objects,
    raises,
    taking,
)
from dlprof.conformance.consumer import arrives, holds, refuses, released, shares
from dlprof.conformance.counterpart import (
    COPIED,
    USED,
    Source,
    attempt,
    available_dtypes,
    deletions,
    in_thread,
)
from dlprof.probes.capsule import capsule_name

must, should, may = (partial(check, "consumer", word) for word in SEVERITIES)


class Holder(Source):
    """Gives one thing for any arguments."""

    def __init__(self, thing: Any) -> None:
        super().__init__()
        self.thing = thing

    def standard(self, **_: Any) -> Any:
        return self.thing


# Capsules and deleters


@must(f"{IMPORT}, Returns", "An array of its own has the same values.", importing, exports)
def own_array(framework: Any) -> None:
    for kind in ("C", "empty", "cube", *available_dtypes(framework)):
        x, error = attempt(framework.make, kind)
        if error is not None:
            continue
        try:
            y = framework.from_dlpack(x if framework.takes_objects else framework.export(x))
        except Exception as error:
            raise Violated(f"it refuses {framework.dtype(x)} {framework.shape(x)}") from error
        holds(framework, y, framework.values(x), framework.shape(x))
        if framework.dtype(y) != framework.dtype(x):
            raise Violated(f"{kind} becomes {framework.dtype(y)}")


@must(f"{PYTHON}, Implementation", "A consumed capsule is renamed.", taking)
def renames_capsule(framework: Any) -> None:
    source = Source()
    arrives(framework, source)
    for capsule, *_ in source.capsules:
        if capsule_name(capsule) not in USED.values():
            raise Violated(f"the capsule's name is still {capsule_name(capsule)!r}")


@must(f"{PYTHON}, Implementation", "A capsule is consumed only once.", taking)
def consumed_twice(framework: Any) -> None:
    source = Source()
    arrives(framework, source)
    refuses(framework, Holder(source.capsules[-1][0]))


@must(f"{PYTHON}, Implementation", "A capsule of another name is not used.", taking)
def other_name(framework: Any) -> None:
    refuses(framework, Source(only=b"something"))


@must(DELETER, "The deleter is called once, after the last use.", taking)
def deleter_once(framework: Any) -> None:
    source = Source()
    x = arrives(framework, source)
    del x
    released(source)


@must(DELETER, "The deleter is not called while memory is used.", taking)
def deleter_waits(framework: Any) -> None:
    source = Source()
    x = arrives(framework, source)
    gc.collect()
    if deletions(source) and shares(framework, x, source):
        raise Violated("it calls the deleter, and its array still uses the memory")


@must(DELETER, "A deleter of NULL is not called.", taking)
def deleter_null(framework: Any) -> None:
    x = arrives(framework, Source(deleter=None))
    holds(framework, x)
    del x
    gc.collect()


@must(DELETER, "A tensor that is refused is deleted once.", taking)
def deleter_of_refused(framework: Any) -> None:
    source = Source(dtype=(250, 32, 1))
    try:
        framework.take(source)
    except Exception:  # noqa: BLE001 - another clause is about the type
        released(source)
    else:
        raise NotApplicable("it takes a tensor of an unknown type")


@must(f"{PYTHON}, Implementation", "An array is dropped in any thread.", taking)
def dropped_in_thread(framework: Any) -> None:
    source = Source()
    alive = [arrives(framework, source)]
    in_thread(alive.clear)
    released(source)


# Copies and errors


@must(f"{IMPORT}, copy", "Without copy, memory is reused where possible.", taking)
def reuses_memory(framework: Any) -> None:
    source = Source()
    x = arrives(framework, source)
    if not shares(framework, x, source):
        raise Violated("it copies an aligned, contiguous, writable array")


@must(f"{IMPORT}, signature", "The keywords device and copy are known.", objects)
def knows_import_keywords(framework: Any) -> None:
    errors = {
        name: attempt(framework.take, Source(), **{name: None})[1] for name in ("device", "copy")
    }
    unknown = [name for name, error in errors.items() if isinstance(error, TypeError)]
    if unknown:
        raise Violated(f"it does not know {' and '.join(unknown)}")


@must(f"{IMPORT}, copy", "copy=True always copies.", import_keyword("copy"))
def copy_true(framework: Any) -> None:
    class Copying(Source):
        def standard(self, *, copy: Any = None, **keywords: Any) -> Any:
            source: Any = Source(flags=COPIED) if copy else super()
            return source.standard(**keywords)

    source = Copying()
    x = arrives(framework, source, copy=True)
    holds(framework, x)
    if shares(framework, x, source):
        raise Violated("its array shares the producer's memory")


@must(f"{IMPORT}, copy", "copy=True copies if the producer cannot.", import_keyword("copy"))
def copy_true_without_keyword(framework: Any) -> None:
    source = Source(keywords=("stream", "max_version"))
    x = arrives(framework, source, Refused, copy=True)
    if shares(framework, x, source):
        raise Violated("its array shares the producer's memory")


@must(f"{IMPORT}, copy", "copy=False never copies.", import_keyword("copy"))
def copy_false(framework: Any) -> None:
    source = Source()
    x = arrives(framework, source, Refused, copy=False)
    if not shares(framework, x, source):
        raise Violated("its array does not share the producer's memory")


@must(f"{IMPORT}, device", "The array's own device may be asked for.", import_keyword("device"))
def device_keyword(framework: Any) -> None:
    holds(framework, arrives(framework, Source(), device=None))
    device = getattr(arrives(framework, Source()), "device", None)
    if device is None:
        raise Unknown("its array has no attribute device")
    holds(framework, arrives(framework, Source(), device=device))


@must(f"{IMPORT}, Raises", "An object without the methods raises AttributeError.", objects)
def no_methods(framework: Any) -> None:
    raises(AttributeError, framework.from_dlpack, object())
