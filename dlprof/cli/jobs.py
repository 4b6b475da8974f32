"""``dlprof jobs run`` and ``dlprof jobs status``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli.streams import complain, say
from dlprof.errors import FindingsFailed, Unmeasured, Unsure
from dlprof.text.clean import clean, counted

if TYPE_CHECKING:
    from dlprof.jobs.plan import Job, JobsPlan, Task

jobs = typer.Typer(
    help="Measure scenarios in many environments. See docs/jobs.md.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PLAN = typer.Argument(metavar="PLAN", help="A plan, such as plan.toml.")


@jobs.command()
def run(plan: Annotated[Path, PLAN]) -> None:
    """Run the jobs of a plan that are not done, and keep a session for each.

    Example: dlprof jobs run plan.toml
    """
    from dlprof.jobs.plan import ENGINES, read

    found, all_jobs = read(plan)
    tasks = _tasks(found, all_jobs, plan.parent.resolve())
    for job in ENGINES[found.engine.name](tasks, found.engine.options) if tasks else ():
        complain(f"{_state(job)}  {clean(job.title)}")
    say(_summary(all_jobs))
    done = [job for job in all_jobs if job.is_done]
    codes = [job.exit_code for job in done]
    if not done:
        raise Unmeasured("no job is done")
    if failed := codes.count(FindingsFailed.exit_code):
        raise FindingsFailed(f"{counted(failed, 'job')} found what its scenario forbids")
    if len(done) < len(all_jobs):
        raise Unsure(f"{counted(len(all_jobs) - len(done), 'job')} of {len(all_jobs):,} not done")
    if any(codes):
        raise Unsure("a job could not check its whole scenario")


@jobs.command()
def status(plan: Annotated[Path, PLAN]) -> None:
    """List the jobs of a plan, which are done, and why others failed.

    Example: dlprof jobs status plan.toml
    """
    from dlprof.jobs.plan import read

    say(_summary(read(plan)[1]))


def _tasks(plan: JobsPlan, all_jobs: Sequence[Job], folder: Path) -> list[Task]:
    """Make the environments of the jobs that are not done. A failure costs only its own jobs."""
    from dlprof.jobs.plan import Unmade, interpreter

    store = folder / plan.store
    store.mkdir(parents=True, exist_ok=True)
    place = store.with_name(f"{store.name}.environments")
    tasks: list[Task] = []
    for name, environment in plan.environments.items():
        open_jobs = [job for job in all_jobs if job.environment == name and not job.is_done]
        for job in open_jobs:
            job.check_places()
        if not open_jobs:
            continue
        try:
            python = interpreter(environment, place, folder)
        except Unmade as error:
            for job in open_jobs:
                job.log.write_text(f"no environment: {error}\nexit code {error.exit_code}\n")
        else:
            tasks += [(job, python) for job in open_jobs]
    return tasks


def _state(job: Job) -> str:
    if job.is_done:
        return "done"
    return "failed" if job.exit_code is not None else "open"


def _summary(entries: Sequence[Job]) -> str:
    """Return a line for each job, and the last message of each failed one."""
    lines = []
    for job in entries:
        lines.append(f"{_state(job):<6}  {job.title}  {job.session.name}")
        if job.exit_code:
            lines.append(f"        exit code {job.exit_code}: {job.last_line}")
    done = sum(job.is_done for job in entries)
    lines.append(f"{done:,} of {counted(len(entries), 'job')} done, in {entries[0].session.parent}")
    return "\n".join(map(clean, lines)) + "\n"
