"""One run: the cases of a request, and their session file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dlprof import inference
from dlprof.errors import MissingFramework, Unmeasured, UsageError
from dlprof.probes.base import PINNED, Protocol
from dlprof.runner import pairing, survey
from dlprof.runner import session as sessions
from dlprof.runner.axes import NO_TIMES
from dlprof.runner.catalog import (
    Catalog,
    ProbeInfo,
    environment,
)
from dlprof.runner.interrupts import uninterrupted
from dlprof.runner.machine import Meter
from dlprof.runner.pairing import Case
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Request
from dlprof.runner.rounds import Runner
from dlprof.runner.schedule import shared_sample_ns
from dlprof.runner.session import pair_text
from dlprof.runner.session_file import SessionFile
from dlprof.runner.worker_client import Workers
from dlprof.text.clean import listed

WAITS = ("host-sync", "device-sync")
QUEUES, MOST_QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS", "32"
"""Streams that share a queue of the device wait for each other, which looks like an order. By
default there are 8 queues, and 32 at most (CUDA C++ Programming Guide, environment variables).
"""

TUNABLES = "GLIBC_TUNABLES"
STEADY_TUNABLES = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824"
"""No block below 1 GiB is mapped anew: fresh pages cost a fault each (glibc manual)."""


@dataclass(frozen=True)
class Plan:
    """The cases of a request, with variables for them, and reasons for what is left out."""

    cases: list[Case]
    variables: dict[str, str]
    device_choice: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A pair on a device, and the reason for it."""

    producer: ProbeInfo
    consumer: ProbeInfo
    device: str
    reason: str
    paths: list[pairing.Path]

    @property
    def pair(self) -> tuple[str, str]:
        return self.producer.name, self.consumer.name


def plan(request: Request, catalog: Catalog) -> Plan:
    """Return the cases of a request, without pairs that cannot be measured here.

    Raises :class:`~dlprof.errors.Unmeasured` if nothing is left, and
    :class:`~dlprof.errors.UsageError` if no path matches.
    """
    if request.simulated and any(file.startswith(inference.PREFIX) for file in request.probe_files):
        raise UsageError(f"steps of inference need {NO_TIMES}")
    found, refused = _targets(request, catalog)
    cases = list(_all_cases(found, request))
    paths = [path for target in found for path in target.paths]
    unmatched = [glob for glob in request.globs if not pairing.choose(paths, [glob])]
    no_path = f"no path matches {', '.join(map(repr, unmatched or request.globs))}"
    if not cases:
        raise UsageError(
            f"{no_path}; 'dlprof list paths PRODUCER CONSUMER' lists them"
            if request.globs
            else "the frameworks share no protocol on this device"
        )
    measured = {case.pair for case in cases}
    without = dict.fromkeys(
        pair_text(target.pair) for target in found if target.pair not in measured
    )
    left_out = (
        *([f"no path exists: {', '.join(without)}"] if without else []),
        *refused,
        *([no_path] if unmatched else []),
    )
    reasons = dict.fromkeys(f"on {target.device}: {target.reason}" for target in found)
    variables = {
        name: os.environ.get(name, value)  # the user may have set it
        for target in found
        for probe in (target.producer, target.consumer)
        for name, value in probe.variables.items()
    }
    if any(target.device == "cuda" for target in found):
        variables[QUEUES] = os.environ.get(QUEUES, MOST_QUEUES)
    steady = STEADY_TUNABLES if request.settings.in_turns else ""
    if tunables := os.environ.get(TUNABLES, steady):
        variables[TUNABLES] = tunables
    variables |= {
        name: text for name, text in os.environ.items() if name.startswith(sessions.CONDITIONS)
    }
    variables |= catalog.variables
    if catalog.simulated:
        reasons = {"on simulated CUDA devices: asked for": None}
    return Plan(cases, variables, "; ".join(reasons), tuple(dict.fromkeys(left_out)))


def _targets(request: Request, catalog: Catalog) -> tuple[list[Target], list[str]]:
    """Return each pair on each wanted device, and reasons; raises the first if it has no pair."""
    found: dict[tuple[str, str, str], Target] = {}
    refused: dict[str, Unmeasured] = {}
    for producer, consumer in request.pairs:
        try:
            pair = catalog.installed(producer), catalog.installed(consumer)
        except MissingFramework as error:
            refused.setdefault(str(error), error)
            continue
        for choice in request.axes.devices:
            try:
                if PINNED in request.axes.layouts:
                    device, reason = _pinned_device(pair[0], catalog)
                else:
                    device, reason = pairing.choose_device(*pair, catalog, choice)
            except Unmeasured as error:
                refused.setdefault(f"{pair_text((pair[0].name, pair[1].name))}: {error}", error)
                continue
            paths = pairing.choose(pairing.paths(*pair, device), request.globs)
            if catalog.interpreter.get("no_cuda"):
                paths = [path for path in paths if path.import_.result_device != "cuda"]
            uploads = [path for path in paths if path.import_.result_device == "cuda"]
            if choice == "cuda" and device == "cpu":
                paths = uploads or paths
            target = Target(*pair, device, reason, paths)
            found.setdefault((*target.pair, device), target)
    if refused and not found:
        raise next(iter(refused.values()))
    return list(found.values()), list(refused)


def _pinned_device(producer: ProbeInfo, catalog: Catalog) -> tuple[str, str]:
    """Return the host, and the reason. Raises :class:`Unmeasured` without page-locked arrays."""
    if no_cuda := catalog.interpreter.get("no_cuda"):
        raise Unmeasured(f"no page-locked memory here: {no_cuda}. {pairing.SIMULATE}")
    if PINNED not in producer.flags:
        makers = listed(probe.name for probe in catalog.probes if PINNED in probe.flags)
        raise Unmeasured(f"{producer.name} has no page-locked arrays. These have: {makers}")
    return "cpu", "page-locked memory belongs to the host"


def _all_cases(targets: Sequence[Target], request: Request) -> Iterator[Case]:
    axes, settings = request.axes, request.settings
    for target in () if settings.survey_alone else targets:
        pair = target.producer, target.consumer
        for shape, dtype, layout in product(axes.shapes, axes.dtypes, axes.layouts):
            for path in target.paths:
                yield Case(*pair, path, shape, dtype, layout, target.device)
    for target in targets if settings.survey else ():
        for path in target.paths:  # a path that one array breaks shows that at its next array
            if path.protocol in (Protocol.STEP, Protocol.PROGRAM):
                continue
            # The protocol hands over plain memory, and the import says what is in it.
            flags = () if path.protocol == Protocol.BUFFER else target.producer.flags
            flags = tuple(flag for flag in flags if flag != PINNED)
            for spec in survey.arrays(flags, target.device):
                small = spec.shape, spec.dtype, spec.layout, spec.device
                yield Case(target.producer, target.consumer, path, *small, surveyed=True)


class Measurement:
    """A run in one interpreter. Answers in the session file ``path`` are not measured again.

    Raises :class:`UsageError` if the file cannot be written or holds something else.
    """

    def __init__(
        self,
        request: Request,
        catalog: Catalog,
        path: Path,
        watcher: Watcher,
        pool: Workers | None = None,
    ) -> None:
        self._plan = plan(request, catalog)
        self.cases = self._plan.cases
        sample_ns = shared_sample_ns(request.settings, self.cases)
        self.request = replace(request, settings=replace(request.settings, sample_ns=sample_ns))
        self.catalog = catalog
        self.path = path
        self.watcher = watcher
        self._pool = pool
        self._meter = Meter()
        self.file = SessionFile(path, self._header())
        self._end = {"complete": False, **self.file.end}

    def run(self) -> None:
        """Measure what is missing of rounds, survey and diagnosis. Raises :class:`Unsaved`."""
        if self.file.is_complete:
            return
        with self.running() as runner:
            runner.run()
            self._end["way_back"] = self._way_back()
            self.stop_with(runner, complete=True)

    @contextmanager
    def running(self) -> Iterator[Runner]:
        """Yield a runner for the cases; then write to the session file how it ended.

        Raises :class:`Unsaved` if the session file can no longer be written.
        """
        runner = Runner(
            self._pool or Workers(self.catalog.python, self._plan.variables),
            self.cases,
            self.request.settings,
            self.file,
            self.watcher,
            self.catalog.can_trace,
        )
        try:
            yield runner
        finally:
            with uninterrupted():
                runner.close()
                wall_s, self._end["foreign_cores"] = self._meter.read()
                self._end["wall_s"] = round(wall_s, 3)
                self.file.finish(self._end)

    def stop_with(self, runner: Runner, complete: bool) -> None:
        """Note how many rounds were measured, and whether that is all."""
        self._end |= {"complete": complete, "rounds": runner.rounds_done}

    def session(self) -> sessions.Session:
        """Return the session so far, without findings."""
        return self.file.session(self._end)

    def results(self) -> list[sessions.Result]:
        return self.session().results

    def close(self) -> None:
        self.file.close()

    def _header(self) -> dict[str, Any]:
        request = self.request
        return {
            "schema": sessions.SCHEMA,
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "command": list(request.command),
            "request": {key: value for key, value in asdict(request).items() if key != "command"},
            "environment": environment(self.catalog, self._plan.variables),
            "device_choice": self._plan.device_choice,
            "simulated": self.catalog.simulated,
            "left_out": list(self._plan.left_out),
            "cases": [case.record() for case in self.cases],
        }

    def _way_back(self) -> dict[str, str] | None:
        """Return a view in the other direction with its order, if no path does without a wait."""
        request, ok = self.request, [one for one in self.results() if one.status == "ok"]
        orders = [one.ordering for one in ok if one.ordering is not None]
        is_plain = len(request.pairs) == 1 and not (request.globs or request.probe_files)
        is_alone = is_plain and len(orders) == len(ok) > 0
        waits = all(order.says(*WAITS) for order in orders)
        if not (is_alone and waits and any(order.evidence.waits_for_later for order in orders)):
            return None
        consumer, producer = (self.catalog.installed(name) for name in request.pairs[0])
        paths = pairing.paths(producer, consumer, ok[0].case.device)
        views = tuple(path.name for path in paths if path.promise == "view")
        if ok[0].case.device not in producer.devices or not views:
            return None
        settings = replace(request.settings, rounds=0, survey=False)
        pairs = ((producer.name, consumer.name),)
        back = replace(request, pairs=pairs, globs=views, settings=settings)
        with TemporaryDirectory(prefix="dlprof-", ignore_cleanup_errors=True) as folder:
            measurement = Measurement(back, self.catalog, Path(folder) / "back.json", self.watcher)
            with closing(measurement):
                measurement.run()
            results = measurement.results()
        known = ((one.case.code, one.ordering) for one in results if one.status == "ok")
        found = [{"code": code, "order": str(order.verdict)} for code, order in known if order]
        return found[0] if found else None
