"""Turn the text of a user's own conversion, without a probe, into a request."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

from dlprof.errors import Unmeasured, UsageError
from dlprof.probes.base import ANY_DEVICE, DTYPES, LIST, Protocol
from dlprof.probes.builtin import BUILTIN
from dlprof.probes.generic import UNKNOWN
from dlprof.probes.list import NESTED, List, faster
from dlprof.protocol.statement import (
    FaultyStatement,
    Side,
    UserCode,
    UserObject,
    check_setup,
    check_source,
    leading_imports,
    others,
    parse,
    whole,
    with_arrays,
)
from dlprof.runner import worker_client
from dlprof.runner.axes import simulated_in
from dlprof.runner.catalog import Catalog, inspect_interpreter
from dlprof.runner.request import Axes, Request, make_request
from dlprof.runner.schedule import Lane, finish, processors
from dlprof.runner.worker_client import Outcome, Processes, Workers


def check(statement: str, setup: str = "", source: str | None = None) -> None:
    """Raise :class:`UsageError` for text that makes no sense."""
    try:
        check_setup(setup)
        tree = parse(statement)
        if source is not None:
            check_source(tree, source)
    except FaultyStatement as fault:
        raise UsageError(str(fault)) from None


@contextmanager
def request_for(
    statements: Sequence[str],
    setup: str,
    source: str | None,
    values: Mapping[str, Any],
    arrays: Sequence[int] = (),
) -> Iterator[tuple[Request, Catalog, Workers | None]]:
    """Yield the request for conversions with these options, its catalog, and a pool for its run.

    ``source`` is the name of their array, None if dlprof is to find it. ``arrays`` are numbers of
    arrays that one call takes, such as 1 and 8; the others are copies of the first.

    There is no pool if there is a device: an import may begin to use it, and no fork can then.

    Raises :class:`UsageError` for text that makes no sense, :class:`Unmeasured` if the setup fails.
    """
    for statement in statements:
        check(statement, setup, source)
    python, probe_files = values["python"], values["probes"]
    simulated = simulated_in(values["devices"])
    catalog = inspect_interpreter(python, probe_files, simulated)
    variables: dict[str, str] = {}
    for probe in catalog.probes:
        variables |= probe.variables
    can_fork = bool(catalog.interpreter.get("no_cuda"))
    imports = [{"statements": leading_imports(setup)}] if can_fork else []
    with closing(Workers(python, variables | catalog.variables)) as pool:
        for _ in range(min(values["rounds"], processors() - 1) if imports else 0):
            pool.load((), imports)
        typed = [
            {"statement": statement, "setup": setup, "source": source} for statement in statements
        ]
        forks = pool.forks(("forks", ()), imports)
        found = _recognize(typed, values["timeout"], probe_files, forks)
        codes = [_user_code(setup, parts) for parts in found]
        if arrays:
            several = [
                _several(text, setup, code.source, count)
                for text, code in zip(statements, codes, strict=True)
                for count in arrays
            ]
            statements = [call["statement"] for call in several]
            calls = zip(
                several, _recognize(several, values["timeout"], probe_files, forks), strict=True
            )
            codes = [
                replace(_user_code(call["setup"], parts), arrays=count)
                for (call, parts), count in zip(calls, cycle(arrays), strict=False)
            ]
        elif way := _faster_way(statements, setup, found):
            (other,) = _recognize([way], values["timeout"], probe_files, forks)
            if "result" in other:
                statements = (*statements, way["statement"])
                codes.append(_user_code(way["setup"], other))
        if len({code.source for code in codes}) > 1:
            names = ", ".join(dict.fromkeys(code.source for code in codes))
            raise UsageError(f"the statements convert several arrays ({names}): name one --source")
        if len(codes) > 1:  # halves of different statements would be paired
            cuts = [whole(statement, codes[0].source) for statement in statements]
            codes = [
                replace(
                    code, export=cut.export, import_=cut.import_, protocol=Protocol.NATIVE.value
                )
                for code, cut in zip(codes, cuts, strict=True)
            ]
        producer = codes[0].producer
        if values["survey"] and (producer.probe is None or found[0]["source"]["bytes"]):
            raise UsageError(f"--survey makes arrays of frameworks, and no {producer.name}")
        array = _described(found[0]["source"], found[0].get("result"))
        pairs = dict.fromkeys((code.producer.name, code.consumer.name) for code in codes)
        request = make_request(values, tuple(pairs), ("time", *statements))
        request = replace(
            request,
            axes=Axes(
                (tuple(array["shape"]),), (array["dtype"],), (array["layout"],), (array["device"],)
            ),
            # The setup makes the array, and does no more. All processes serve one pair.
            settings=replace(request.settings, setup="", together=True),
            probe_files=(UserCode.reference(codes), *probe_files),
        )
        catalog = inspect_interpreter(python, request.probe_files, simulated)
        yield request, catalog, pool if can_fork else None


def object_request(
    expression: str, consumers: str, values: Mapping[str, Any]
) -> tuple[Request, Catalog]:
    """Return the request for every way from the object of an expression to frameworks.

    Raises :class:`UsageError` for text that makes no sense, :class:`Unmeasured` if it fails.
    """
    setup = values["setup"] or ""
    check(expression, setup)
    python, probe_files = values["python"], values["probes"]
    simulated = simulated_in(values["devices"])
    catalog = inspect_interpreter(python, probe_files, simulated)
    names = [catalog.installed(word.strip()).name for word in consumers.split(",")]
    sources = [f"file:{Path(path).absolute()}" for path in probe_files]
    request = {"do": "recognize object", "expression": expression, "setup": setup}
    with worker_client.start(python, catalog.variables) as worker:
        outcome = worker.ask({**request, "sources": sources}, values["timeout"])
    _check(outcome, "object", "object")
    found = outcome.parts["object"]
    own = UserObject(expression, found["imports"], Side(**found["side"]), tuple(found["exports"]))
    pairs = tuple((own.side.name, name) for name in names)
    made = make_request(values, pairs, ("run", expression, consumers))
    made = replace(
        made,
        # A survey needs other arrays.
        settings=replace(made.settings, survey=False),
        axes=Axes(
            (tuple(found["shape"]),), (found["dtype"],), (found["layout"],), (found["device"],)
        ),
        probe_files=(own.reference(), *probe_files),
    )
    return made, inspect_interpreter(python, made.probe_files, simulated)


def _recognize(
    typed: list[dict[str, Any]], limit_s: float, probe_files: tuple[str, ...], forks: Processes
) -> list[dict[str, Any]]:
    sources = [f"file:{Path(path).absolute()}" for path in probe_files]
    outcomes: list[Outcome] = []

    def ask() -> Lane:
        for texts in typed:
            worker = yield from forks.next()
            request = {"do": "recognize", **texts, "sources": sources}
            outcomes.append(worker.ask(request, limit_s))
            yield from forks.end()

    finish([ask()])
    for outcome in outcomes:
        _check(outcome)
    return [outcome.parts for outcome in outcomes]


COPIES = "\n{names} = tuple(__import__('copy').deepcopy({source}) for _ in range({count} - 1))\n"
"""The further arrays of one call."""


def _several(statement: str, setup: str, source: str, count: int) -> dict[str, Any]:
    """Return the statement with ``count`` arrays, and its setup. Raises :class:`UsageError`."""
    if count == 1:
        return {"statement": statement, "setup": setup, "source": source}
    try:
        text = with_arrays(statement, source, count)
    except FaultyStatement as fault:
        raise UsageError(str(fault)) from None
    copies = COPIES.format(names=others(count), source=source, count=count)
    return {"statement": text, "setup": setup + copies, "source": source}


def _faster_way(
    statements: Sequence[str], setup: str, found: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return another way for the list that a single statement takes in; None if none is known."""
    source, result = found[0]["source"], found[0].get("result")
    if len(found) > 1 or source["side"]["name"] not in LIST or result is None:
        return None
    consumer = result["side"]["name"]
    code = faster(source["layout"], consumer).format(x=source["name"])
    if not code or _call(code) == _call(statements[0]):
        return None
    setups = [List.setup, *(probe.setup for probe in BUILTIN if probe.name == consumer)]
    return {"statement": code, "setup": "\n".join([setup, *setups]), "source": source["name"]}


def _call(statement: str) -> str:
    """Return a call without its module, which may be imported under another name."""
    return statement.strip().partition(".")[2]


def _described(source: dict[str, Any], result: dict[str, Any] | None) -> dict[str, Any]:
    """Return the source; memory without a dtype is an array like the result of as many bytes."""
    if source["layout"] == NESTED and result is not None:
        return {**source, "dtype": result["dtype"]}
    if not source["bytes"]:
        return source
    if result is None or result["bytes"] or _size_bytes(result) != _size_bytes(source):
        return {**source, "dtype": UNKNOWN}
    return {**source, "shape": result["shape"], "dtype": result["dtype"], "layout": "C"}


def _size_bytes(array: dict[str, Any]) -> int:
    elements: int = math.prod(array["shape"])
    return elements * DTYPES.get(array["dtype"], 0)


def _check(outcome: Outcome, source: str = "source", last: str = "called") -> None:
    """Raise unless the worker has sent the parts ``source`` and ``last``."""
    fault = outcome.parts.get("fault")
    if isinstance(fault, dict):
        reason = " ".join(str(fault["reason"]).split())
        kind = UsageError if fault["exit"] == UsageError.exit_code else Unmeasured
        raise kind(reason if kind is UsageError else f"nothing could be measured: {reason}")
    if source not in outcome.parts or last not in outcome.parts:
        reason = str(outcome.lost or outcome.reason or outcome.status)
        raise Unmeasured(f"nothing could be measured: {reason}")
    device = outcome.parts[source]["device"]
    if device not in ANY_DEVICE:
        raise Unmeasured(f"the array is on the device {device!r}, and dlprof knows cpu and cuda")


def _user_code(setup: str, found: dict[str, Any]) -> UserCode:
    # The measurement gives the reason of a statement without a result.
    result = found.get("result") or {"side": found["called"], "array": False, "device": ""}
    device = result["device"] if result["device"] in ANY_DEVICE else ""
    return UserCode(
        setup=setup,
        source=found["source"]["name"],
        export=found["cut"]["export"],
        import_=found["cut"]["import_"],
        protocol=found.get("protocol", "native"),
        producer=Side(**found["source"]["side"]),
        consumer=Side(**result["side"]),
        result_device=device,
        returns_array=result["array"],
    )
