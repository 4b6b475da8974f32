"""Serve one case: prepare it, run its instruments, send each answer as it comes.

What was measured before a crash has already been sent. The outermost boundary is here: a
framework may raise anything, and whatever it raises is recorded in its own words.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dlprof.probes.base import DTYPES, ArraySpec, Import, Unsupported, shape_of
from dlprof.worker import memory, no_array, open_files
from dlprof.worker.bench import Bench, watched
from dlprof.worker.channel import Answer
from dlprof.worker.declared import FaultyProbe
from dlprof.worker.instruments import alignment, first_call, peak_memory, recipe
from dlprof.worker.subject import (
    SetupFailed,
    result_device,
)
from dlprof.worker.ways import Ways, ways_of
from dlprof.worker.words import words

if TYPE_CHECKING:
    from dlprof.worker.state import WorkerState

DIAGNOSIS = {"ordering", "alignment", "peak_memory", "early_write", "lifetime", "trace"}
"""Their answers do not depend on the shape, so that a smaller array serves where one is large."""

READY_TIME = "ready_time"

Measure = Callable[["WorkerState", dict[str, Any], Answer], tuple[str, str | None]]


def run_case(
    state: WorkerState, request: dict[str, Any], answer: Answer, measure: Measure | None = None
) -> None:
    """Measure one case; sets ``answer.outcome`` to a status and a reason.

    ``measure`` is for what is no conversion.
    """
    before = open_files.count()
    guarded(state, answer, lambda: (measure or _measure)(state, request, answer))
    left = open_files.left_open(before)
    if left:
        answer.part("left_open", left)
        answer.failed("conversion", f"it left {left:,} file descriptors open")


def guarded(
    state: WorkerState, answer: Answer, measure: Callable[[], tuple[str, str | None]]
) -> None:
    """Call ``measure`` for an outcome; whatever is raised is an outcome too."""
    try:
        answer.outcome = measure()
    except memory.TooLarge as reason:
        answer.outcome = ("skipped", str(reason))
    except FaultyProbe as fault:
        answer.outcome = ("crashed", f"the probe is faulty: {fault}")
    except SetupFailed as fault:
        answer.outcome = ("skipped", str(fault))
    except SyntaxError as fault:
        answer.outcome = ("crashed", f"the probe is faulty: {words(fault)}")
    except Unsupported as refusal:
        answer.outcome = ("unsupported", str(refusal) or words(refusal))
    except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
        answer.outcome = ("unsupported", words(refusal))
    except BaseException as stop:  # noqa: BLE001 - a probe that calls sys.exit must not end us
        if answer.at == READY_TIME:  # else the host's time would be taken for it
            answer.failed(READY_TIME, words(stop))
        answer.outcome = ("crashed", f"raised {words(stop)}")
    finally:
        state.channel.measuring = False
    gc.collect()


def _measure(state: WorkerState, request: dict[str, Any], answer: Answer) -> tuple[str, str | None]:
    spec = ArraySpec(
        tuple(request["shape"]), request["dtype"], request["layout"], request["device"]
    )
    before = state.cases_before
    state.cases_before += 1  # also one that is refused warms what the next one uses
    ways = ways_of(state, request, answer)
    if request.get("hold"):
        state.channel.hold(answer.identity)
    _check_layout(ways.import_, spec)
    if request["instruments"] == ["alignment"]:
        return _alignment_alone(state, answer, ways, spec)
    spec = _fitting(ways, request, spec)
    answer.stage("create")
    if "recipe" in request["instruments"]:
        # Before anything is made or converted: a case that dies of it needs its recipe most.
        answer.part("recipe", _recipe(ways, request, spec))
    if _forecast(ways, spec):
        before += 1  # the first call is none any more
    subject = ways.subject(spec)
    answer.part("source", {"ns": subject.create_ns})
    answer.stage("first call")
    state.channel.forks = 0
    state.channel.measuring = True
    found, first = first_call.measure(subject, before)
    answer.part("first_call", found)
    none = no_array.reason(subject, first.result)
    declared, subject = subject, subject if none else subject.placed(first.result)
    once = None
    timed = "host_time" in request["instruments"] and not subject.is_one_array
    if timed and subject is declared:  # else the first call was not waited for as it must be
        # A user's own statement may do anything: it is timed as it always is.
        answer.stage("host_time")
        once = first_call.serves(first)
    del first
    outcome = watched(Bench(subject, request, answer, ways, none, once))
    if state.channel.forks:
        answer.failed("conversion", "it forks the process; each child was ended at once")
    if "host_time" in answer.refusals:
        return "unsupported", answer.refusals["host_time"]
    return outcome


def _alignment_alone(
    state: WorkerState, answer: Answer, ways: Ways, spec: ArraySpec
) -> tuple[str, str | None]:
    """The instrument that makes its own arrays, without one of the case."""
    where = result_device(ways.consumer, ways.import_, spec)
    if ways.is_one_array or not alignment.applies(ways.import_, where, spec):
        return "ok", None
    answer.stage("alignment")
    state.channel.forks = 0
    state.channel.measuring = True
    answer.part("alignment", alignment.look(spec, ways.subject))
    return "ok", None


def _check_layout(import_: Import, spec: ArraySpec) -> None:
    if import_.layouts and spec.layout not in import_.layouts:
        made_for = ", ".join(import_.layouts)
        raise Unsupported(f"{import_.name} is for arrays of layout {made_for}, not {spec.layout}")


def _recipe(ways: Ways, request: dict[str, Any], spec: ArraySpec) -> dict[str, Any]:
    found = recipe.measure(ways.producer, ways.consumer, ways.import_, spec)
    setup = request.get("setup")
    return {**found, "setup": [*found["setup"], setup]} if setup else found


def _of_bytes(spec: ArraySpec, size_bytes: int) -> ArraySpec:
    return replace(spec, shape=shape_of(size_bytes // DTYPES[spec.dtype], spec.layout))


def _fitting(ways: Ways, request: dict[str, Any], spec: ArraySpec) -> ArraySpec:
    """The array to be measured: a smaller one for a diagnosis, if another can be made."""
    diagnosed = set(request["instruments"]) <= DIAGNOSIS
    if not diagnosed or ways.is_one_array or spec.size_bytes <= request["largest_bytes"]:
        return spec
    return _of_bytes(spec, request["largest_bytes"])


def _forecast(ways: Ways, spec: ArraySpec) -> bool:
    """Whether a small array had to be converted to know; raises :class:`room.TooLarge` where the
    large case would not fit.
    """
    if memory.fits(memory.COPIES * spec.size_bytes):
        return False
    if ways.is_one_array or spec.device != "cpu":
        memory.check_room(spec)
        return False
    small = _of_bytes(spec, peak_memory.SIZE_BYTES)
    if not memory.fits(memory.COPIES * small.size_bytes):
        memory.check_room(spec)
        return False
    peak_memory.check_forecast(ways.subject(small), spec)
    gc.collect()
    return True


def load(state: WorkerState, requests: list[dict[str, Any]], answer: Answer) -> None:
    """Import what cases need, so that measuring them can begin at once.

    What cannot be imported says so when its case is asked for.
    """
    for request in requests:
        with contextlib.suppress(BaseException):
            ways_of(state, request, answer)


def check_setup(state: WorkerState, request: dict[str, Any], answer: Answer) -> None:
    """Import what a case needs and run the user's setup; sets ``answer.outcome``."""

    def run() -> tuple[str, str | None]:
        ways_of(state, request, answer)
        return "ok", None

    guarded(state, answer, run)
