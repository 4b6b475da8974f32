"""``dlprof list`` and ``dlprof explain``, which measure nothing."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from textwrap import fill, indent
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli import VERBS, verb_named
from dlprof.cli.options import Given, option_flags, takes
from dlprof.cli.streams import color, say, width
from dlprof.errors import SessionError, UsageError
from dlprof.runner import files, options
from dlprof.runner.axes import simulated_in
from dlprof.runner.options import Choice, Option
from dlprof.runner.quantity import duration_text
from dlprof.text.clean import clean, first_line

if TYPE_CHECKING:  # `dlprof --help` does not wait for them
    from dlprof.runner.catalog import Catalog
    from dlprof.runner.pairing import Path

SUBJECTS = ("frameworks", "paths", "sessions", "options")
SUBJECT = typer.Argument(
    metavar="WHAT",
    help="frameworks (default), paths (of a producer and a consumer), sessions or options.",
    show_default=False,
)

SCHEMA = Option(
    "schema",
    Choice(("session", "trace")),
    "Print the JSON schema of what --json writes.",
    options.OUTPUT,
    metavar="session|trace",
)


@takes(options.DEVICES, *options.INTERPRETER, SCHEMA)
def list_(
    subject: Annotated[str, SUBJECT] = "frameworks",
    producer: Annotated[str | None, typer.Argument(help="Owns the array.")] = None,
    consumer: Annotated[str | None, typer.Argument(help="Takes the array in.")] = None,
    *,
    given: Given,
) -> None:
    """List frameworks, paths between two of them, kept sessions, or options; measure nothing.

    Example: dlprof list paths torch jax
    """
    if given[SCHEMA]:
        say(json_schema(given[SCHEMA]), is_json=True)
        return
    if subject not in SUBJECTS:
        raise UsageError(f"cannot list {subject!r}: expected {', '.join(SUBJECTS)}")
    if subject == "paths":
        if producer is None or consumer is None:
            raise UsageError("name a producer and a consumer: dlprof list paths torch jax")
        say(_paths(producer, consumer, given))
    elif producer is not None:
        raise UsageError(f"dlprof list {subject} takes no framework")
    elif subject == "sessions":
        say(_sessions())
    elif subject == "options":
        say(page())
    else:
        say(_frameworks(_catalog(given)))


def _paths(producer: str, consumer: str, given: Given) -> str:
    """Return the paths of each device as code, with the setup that they need."""
    from dlprof.runner import pairing
    from dlprof.runner.session import pair_text

    devices = given.settled()["devices"]
    catalog = _catalog(given)
    pair = catalog.find(producer), catalog.find(consumer)
    if simulated_in(devices):
        devices = ["cuda"]
    elif devices == ("auto",):
        devices = [name for name in ("cpu", "cuda") if name in pair[0].devices]
    parts = []
    setups: dict[str, str] = {}  # a setup of several paths appears once
    for device in devices:
        title = f"{pair_text((pair[0].name, pair[1].name))} on {device}"
        paths = pairing.paths(*pair, device)
        rows = [(_code(path), path.protocol, path.name, path.promise or "") for path in paths]
        table = _tabled((title, "protocol", "name", "says"), rows)
        parts.append(table if rows else f"{title}: no common protocol\n")
        for path in paths:
            if setup := path.import_.setup.strip():
                setups.setdefault(setup, _code(path))
    parts += [f"{code} needs:\n{indent(setup, '    ')}\n" for setup, code in setups.items()]
    return "\n".join(parts)


def explain(
    rule: Annotated[
        str | None, typer.Argument(help="A rule, a word or a layout: DLP003, copy, negated.")
    ] = None,
) -> None:
    """Explain a rule: what it finds, how dlprof knows, and what to do; or a layout of arrays.

    Without one it lists all rules, and for a word such as copy or wait the rules about it.
    """
    from dlprof.judge import about, index, page
    from dlprof.probes.base import FLAGS, LAYOUTS
    from dlprof.report.terminal import render_page

    if meaning := {**LAYOUTS, **FLAGS}.get(rule or ""):
        say(f"{rule}: {meaning}\n")
    elif rule is None or (rules := about(rule)):
        for found in about("") if rule is None else rules:
            line = f"{found.id}  {found.name:<20}{index(found.id)}"
            say(f"{fill(line, width(), subsequent_indent=' ' * 28)}\n")
    else:
        say(render_page(page(rule), width(), color()))


def page() -> str:
    """Return the reference of all options, for docs/options.md.

    An option that verbs declare differently has a row for each declaration.
    """
    verbs: dict[Option, list[str]] = {}
    for verb in VERBS:
        for option in getattr(verb_named(verb), "options", ()):
            verbs.setdefault(option, []).append(verb)
    order = list(dict.fromkeys((*options.OPTIONS, *(option.key for option in verbs))))
    lines = [
        "# Options",
        "",
        "`dlprof list options` writes this page. In a [scenario](scenarios.md) and in",
        "[Python](python-api.md) an option has the same name with underscores: `sample_ms`.",
    ]
    for panel in options.PANELS:
        lines += ["", f"## {panel}", "", "| option | default | meaning | verbs |"]
        lines += ["|---|---|---|---|"]
        panel_options = [option for option in verbs if option.panel == panel]
        for option in sorted(panel_options, key=lambda option: order.index(option.key)):
            lines.append(_row(option, verbs[option]))
    return "\n".join(lines) + "\n"


def json_schema(name: str) -> str:
    """Return the JSON schema of a session or a trace, for docs/schema."""
    from pydantic.json_schema import GenerateJsonSchema

    from dlprof.runner.session import Session
    from dlprof.runner.trace import Trace

    model = Session if name == "session" else Trace
    content = {"$schema": GenerateJsonSchema.schema_dialect, **model.model_json_schema()}
    return json.dumps(content, indent=1) + "\n"


def _row(option: Option, verbs: Sequence[str]) -> str:
    flags = ", ".join(f"`{flag}`" for flag in option_flags(option))
    value = f" {option.metavar}" if option.metavar else ""
    cells = (f"{flags}{value}", option.default_text, option.help, ", ".join(verbs))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _sessions() -> str:
    """Return a line for each kept session, with the number that names it on the command line."""
    from dlprof.runner import session_file

    kept = files.kept_sessions()
    if not kept:
        return "No session is kept: dlprof run keeps one.\n"
    rows = []
    for number, path in enumerate(kept, start=1):
        try:
            command = shlex.join(("dlprof", *session_file.load(path).command))
        except SessionError:
            command = "cannot be read"
        end = path.stem.rpartition("-")[2]
        side = f" {end.upper()}" if end in ("base", "head") else ""
        age = duration_text(time.time() - path.stat().st_mtime)
        rows.append((str(number), f"{age} ago{side}", command))
    room = width() - len("session") - max(len(row[1]) for row in rows) - 6
    fitted = [(*row[:2], clean(row[2], room)) for row in rows]
    folder = clean(str(kept[0].parent))
    table = _tabled(("session", "age", "command"), fitted)
    return f"{table}\n`dlprof report 2` prints session 2.\nThe files are in {folder}.\n"


def _catalog(given: Given) -> Catalog:
    from dlprof.runner.catalog import inspect_interpreter

    values = given.settled()
    return inspect_interpreter(values["python"], values["probes"])


def _frameworks(catalog: Catalog) -> str:
    """Return a line per framework, and the reasons why others cannot be used."""
    rows = []
    no_cuda = catalog.interpreter.get("no_cuda")
    for probe in catalog.probes:
        devices = [device for device in probe.devices if device != "cuda" or not no_cuda]
        row = (
            "/".join((probe.name, *probe.aliases)),
            probe.version or ("found" if probe.found else f"pip install {probe.requirement}"),
            " ".join(devices) or "none here" if probe.found else "-",
            str(len(probe.exports)),
            str(len(probe.imports)),
        )
        rows.append(row)
    titles = ("framework", "version", "devices", "out", "in")
    faults = catalog.faults.items()
    lines = [f"{source} cannot be used: {first_line(fault)}" for source, fault in faults]
    lines += [f"No CUDA device: {no_cuda}"] if no_cuda else []
    return _tabled(titles, rows) + "".join(f"\n{line}\n" for line in lines)


def _code(path: Path) -> str:
    """Return the code as typed for the array that is measured by default."""
    return path.written("float32", (1024, 1024))


def _tabled(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return plain columns that fit the terminal."""
    from rich.table import Table

    from dlprof.report.terminal import printed

    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return printed(table, width(), color())
