"""``dlprof jobs run``, ``list``, ``status``, ``fetch`` and ``cancel``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from dlprof.cli.options import Given, group, takes
from dlprof.cli.streams import say
from dlprof.errors import FindingsFailed, Interrupted, Unmeasured, Unsure, UsageError
from dlprof.runner import options as every
from dlprof.runner.option import Option, Text, Whole
from dlprof.text.clean import clean, counted

if TYPE_CHECKING:
    from dlprof.jobs.plan import Plan
    from dlprof.jobs.run import Run, Watch
    from dlprof.jobs.store import Record

jobs = group("Measure many environments on many machines. See docs/jobs.md.")

PLAN = typer.Argument(metavar="PLAN", help="A plan, such as plan.toml.")
PARALLEL = Option(
    "parallel",
    Whole(1, 1024),
    "Run so many surveys and checks of conformance at once on this machine.",
    every.MEASURING,
    default=1,
    metavar="N",
)
TO = Option("to", Text(), "Copy the sessions into this folder.", every.OUTPUT, metavar="FOLDER")
JOB = Option(
    "job",
    Text(),
    "Only jobs whose id, environment, scenario or machine matches.",
    every.OUTPUT,
    metavar="GLOB",
)
ANSWERS = {1: "found", 3: "unsure", 4: "unmeasured"}
"""What a job that is done tells by its exit code."""


@jobs.command()
@takes(PARALLEL)
def run(plan: Annotated[Path, PLAN], *, given: Given) -> None:
    """Run the jobs of a plan that are not done, and keep each session in its store.

    Example: dlprof jobs run plan.toml
    """
    from dlprof.jobs import run as runs

    with _watch() as watch:
        work = _work(plan, given, watch)
        try:
            runs.run(work)
        except KeyboardInterrupt:
            others = any(runs.keeps_running(work, job) for job in work.jobs(*runs.UNDER_WAY))
            told = f"; other jobs go on: dlprof jobs fetch {plan}" if others else ""
            raise Interrupted(f"stopped; finish with: dlprof jobs run {plan}{told}") from None
    say(_summary(work))
    codes = [work.records[job.id].exit_code for job in work.jobs("done")]
    bad = len(work.plan.jobs) - len(codes)
    if not codes:
        raise Unmeasured("no job is done")
    if found := codes.count(FindingsFailed.exit_code):
        raise FindingsFailed(f"{counted(found, 'job')} found what its scenario forbids")
    if bad:
        raise Unsure(f"{counted(bad, 'job')} of {len(work.plan.jobs):,} not done")
    if unsure := codes.count(Unsure.exit_code) + codes.count(Unmeasured.exit_code):
        raise Unsure(f"{counted(unsure, 'job')} could not tell all that its scenario asks")


@jobs.command("list")
@takes(JOB)
def list_(plan: Annotated[Path, PLAN], *, given: Given) -> None:
    """List the jobs of a plan, and what became of each.

    Example: dlprof jobs list plan.toml --job 'numpy-2*'
    """
    from dlprof.cli.listing import tabled

    work = _collected(plan, given)
    head = ("environment", "scenario", "machine", "state", "time", "job")
    rows = []
    for job in work.plan.jobs:
        record = work.records[job.id]
        if _matches(record, given.raw["job"]):
            names = (job.environment, job.scenario.text, job.machine)
            rows.append((*names, record.status, _time(record), job.id))
    say(tabled(head, rows))


@jobs.command()
@takes()
def status(plan: Annotated[Path, PLAN], *, given: Given) -> None:
    """Say how far a plan is, and why jobs failed.

    Example: dlprof jobs status plan.toml
    """
    say(_summary(_collected(plan, given)))


@jobs.command()
@takes(TO)
def fetch(plan: Annotated[Path, PLAN], *, given: Given) -> None:
    """Keep what an engine finished meanwhile, and copy the sessions into a folder.

    Example: dlprof jobs fetch plan.toml --to sessions
    """
    from dlprof.jobs.folder import folder_at
    from dlprof.jobs.store import Store

    work = _collected(plan, given)
    if given.raw["to"] is not None:
        folder = folder_at(given.raw["to"], "folder")
        count = 0
        for name, content in work.store.sessions(work.plan.jobs):
            count += 1
            if not Store(folder).put(name, content):
                raise UsageError(f"{folder.shown} has another file {name}: name another folder")
        say(f"{counted(count, 'session')} copied to {clean(folder.shown)}\n")
    say(_summary(work))


@jobs.command()
@takes(JOB)
def cancel(plan: Annotated[Path, PLAN], *, given: Given) -> None:
    """Cancel jobs that wait or run.

    Example: dlprof jobs cancel plan.toml --job 'old*'
    """
    from dlprof.jobs import run as runs

    work = _collected(plan, given)
    wanted = [
        job
        for job in work.jobs(*runs.UNDER_WAY)
        if _matches(work.records[job.id], given.raw["job"])
    ]
    runs.cancel_all(work, wanted)
    cancelled = [job for job in work.jobs("cancelled") if job in wanted]
    say(f"{counted(len(cancelled), 'job')} cancelled\n")
    say(_summary(work))


def _work(file: Path, given: Given, watch: Watch | None = None) -> Run:
    from dlprof.jobs.folder import folder_at
    from dlprof.jobs.plan import read
    from dlprof.jobs.run import Run
    from dlprof.jobs.store import Store

    plan = read(file)
    _check_words(plan, given.command_line)
    address = plan.written.store
    if "://" not in address:
        address = str(file.parent / address)
    store = Store(folder_at(address))
    more: dict[str, Any] = {} if watch is None else {"watch": watch}
    return Run(plan, store, given[PARALLEL], records=store.records(plan.jobs), **more)


def _collected(file: Path, given: Given) -> Run:
    from dlprof.jobs.run import collect

    work = _work(file, given)
    collect(work)
    return work


def _check_words(plan: Plan, command_line: Callable[[str], typer.Typer]) -> None:
    """Raise :class:`UsageError` for a scenario whose words its verb does not take."""
    commands: dict[str, Any] = {}
    for scenario in dict.fromkeys(job.scenario for job in plan.jobs):
        verb, *words = scenario.words
        if verb not in commands:
            group: Any = typer.main.get_command(command_line(verb))
            commands[verb] = group.commands[verb]
        try:
            commands[verb].make_context(verb, words, help_option_names=[])
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            told = str(error.format_message()).rstrip(".")
            raise UsageError(f"{plan.file}: scenario {scenario.text!r}: {told}") from None


def _matches(record: Record, glob: str | None) -> bool:
    names = (record.job, record.environment, record.scenario, record.machine)
    return glob is None or any(fnmatchcase(name, glob) for name in names)


def _time(record: Record) -> str:
    from dlprof.runner.quantity import duration_text

    return "" if record.seconds is None else duration_text(record.seconds)


def _counts(work: Run) -> str:
    """``2 waiting, 1 running, 5 done, 0 failed``, and rarer states where there are some."""
    from dlprof.jobs.store import State

    found, states = work.counts, get_args(State)
    shown = [state for state in states if found[state] or state in states[:4]]
    return ", ".join(f"{found[state]:,} {state}" for state in shown)


def _summary(work: Run) -> str:
    """How many jobs are how far, and what some found or why they failed, with what was said."""
    lines = [f"{counted(len(work.plan.jobs), 'job')}: {_counts(work)}"]
    told: dict[tuple[str, ...], list[str]] = {}
    for job in work.jobs("failed", "stopped", "lost", "foreign", "done"):
        record = work.records[job.id]
        if record.status != "done":
            title = f"{record.status}  {job.title}: {record.why or 'it did not end'}"
            told.setdefault(tuple(record.lines), []).append(title)
        elif record.exit_code in ANSWERS:
            title = f"{ANSWERS[record.exit_code]}  {job.title}"
            told.setdefault(tuple(record.lines[-1:]), []).append(title)
    for said, titles in told.items():
        lines += ["", *map(clean, titles), *(f"    {clean(line)}" for line in said)]
    lines += ["", f"The sessions are in {clean(work.store.folder.shown)}"]
    return "\n".join(lines) + "\n"


@contextmanager
def _watch() -> Iterator[Watch]:
    """Show progress on stderr: a line for each job that ended, and on a terminal one for all."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text as Line

    from dlprof.runner.quantity import duration_text

    console = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def watch(work: Run, ended: Record | None) -> None:
            left = work.left_s
            counts = _counts(work) + ("" if left is None else f", {duration_text(left)} left")
            if ended is not None:
                names = (ended.environment, ended.scenario, ended.machine, _time(ended))
                line = clean("  ".join((f"{ended.status:<7}", *filter(None, names))))
                console.print(Line(line if sys.stderr.isatty() else f"{line}  ({counts})"))
            live.update(Line(counts), refresh=sys.stderr.isatty())

        yield watch
