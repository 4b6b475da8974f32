"""The options of :mod:`dlprof.plan.options` as parameters of verbs."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.models

from dlprof.cli import files
from dlprof.errors import UsageError
from dlprof.plan import options
from dlprof.plan.option import Option, Several, Switch, Text

MEASURED_KEYS = {option.key for option in options.MEASURED}

SessionFile = Annotated[
    Path,
    typer.Argument(
        parser=files.session,
        metavar="SESSION",
        help="A session file; LAST is the newest, - is stdin.",
    ),
]
PRODUCER = typer.Argument(help="The framework that owns the array; several with commas between.")
CONSUMER = typer.Argument(help="The framework that takes it in; several as well.")
WRITTEN = replace(options.SESSION, help="Write it here; - prints it, as without.", metavar="FILE|-")
REGRESSIONS = replace(
    options.FAIL_ON,
    help="What is a regression: ready:5%,200ns, host:10%, error, warning, copy, dangling, ….",
    metavar="WHAT",
)
COMPARISON_JSON = replace(options.JSON, help=options.JSON.help.replace("session", "comparison"))
COMPARISONS = (
    COMPARISON_JSON,
    options.HTML,
    options.MARKDOWN,
    options.JUNIT,
    options.GITHUB,
    options.FULL,
)
ANY_PYTHON = Option(
    "any_python",
    Switch(),
    "Compare also sessions of two versions of Python.",
    options.MEASURING,
    default=False,
)
NOISE = Option("noise", Text(), "What dlprof calibrate wrote.", options.MEASURING, metavar="FILE")


def takes(*wanted: Option) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb these options behind its own parameters; it gets them as ``given``."""

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def called(**arguments: Any) -> None:
            raw = {option.key: arguments.pop(option.key) for option in wanted}
            # Typer gives an empty list for an option that was not typed.
            raw = {key: None if value in ([], ()) else value for key, value in raw.items()}
            verb(**arguments, given=Given(wanted, raw))

        own = dict(inspect.signature(verb, eval_str=True).parameters)
        del own["given"]
        keyword = inspect.Parameter.KEYWORD_ONLY
        every = [
            *(one for one in own.values() if _is_argument(one)),
            *map(_parameter, wanted),  # whose panels stand in one order in every help
            *(one.replace(kind=keyword) for one in own.values() if not _is_argument(one)),
        ]
        called.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in every}
        return called

    return decorate


def _is_argument(parameter: inspect.Parameter) -> bool:
    declared = getattr(parameter.annotation, "__metadata__", ())
    return any(isinstance(one, typer.models.ArgumentInfo) for one in declared)


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = str | None
    flags = option.flags
    if isinstance(option.kind, Switch):
        kind = bool | None
        flags = (f"{flags[0]}/--no-{flags[0][2:]}",) if option.default else flags
    elif isinstance(option.kind, Several):
        kind = list[str] | None
    declared = typer.Option(
        *flags, metavar=option.metavar, help=help_text(option), rich_help_panel=option.panel
    )
    return inspect.Parameter(
        option.key,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind, declared],
    )


def help_text(option: Option) -> str:
    """What it is for, and its default."""
    repeated = isinstance(option.kind, Several) and option.key != options.PYTHON.key
    text = f"{option.help.removesuffix('.')}; may be repeated." if repeated else option.help
    if not option.default_text or (isinstance(option.kind, Switch) and not option.default):
        return text
    return f"{text} Default: {option.default_text}."


@dataclass(frozen=True)
class Given:
    """What was typed of the options that a verb takes."""

    options: tuple[Option, ...]
    raw: Mapping[str, Any]
    begun_ns: int = field(default_factory=time.time_ns)
    """When the command began: what another one wrote since then is not replaced."""

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """The values of what was typed. Raises :class:`UsageError`."""
        known = {one.key: one for one in self.options}
        return options.read({key: self.raw[key] for key in known}, typed=True, known=known)

    def settled(self, preset: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Every option, given or not."""
        return options.settle(self.values, preset=preset)

    def check_none(self, reason: str, others: Mapping[str, object] | None = None) -> None:
        """Raise :class:`UsageError` for options of a measurement where they have no meaning.

        ``others`` are more of them by what they are called; None is not given.
        """
        measured = {one.name: self.raw[one.key] for one in self.options if one.key in MEASURED_KEYS}
        found = [name for name, raw in {**(others or {}), **measured}.items() if raw is not None]
        if found:
            raise UsageError(f"{reason}: leave {', '.join(found)} out")

    @property
    def output(self) -> Path | None:
        """The file or folder of ``-o``. Raises :class:`UsageError` for what is none."""
        name = self.raw["output"]
        (option,) = (one for one in self.options if one.key == "output")
        if name == "" or (name == "-" and "-" not in str(option.metavar)):
            raise UsageError(f"-o {name!r} is no file: name one; --json - prints a session")
        return None if name is None else Path(name)


def page() -> str:
    """The reference of all options, for docs/options.md."""
    taken = dict(_verbs())
    lines = [
        "# Options",
        "",
        "`dlprof list --options` writes this page.",
        "Each option has one name, one default and one check, on the command line, in a",
        "[scenario](scenarios.md) and in [Python](python-api.md).",
        "A list may also be written in the singular: `shape` and `shapes`.",
    ]
    for panel in dict.fromkeys(option.panel for option in options.OPTIONS.values()):
        lines += ["", f"## {panel}", "", "| option | key | default | meaning | verbs |"]
        lines += ["|---|---|---|---|---|"]
        lines += [_row(one, taken) for one in options.OPTIONS.values() if one.panel == panel]
    return "\n".join(lines) + "\n"


def _verbs() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every verb with its parameters."""
    from dlprof.cli import VERBS, verb_named

    for name in VERBS:
        verb = verb_named(name)
        if not isinstance(verb, typer.Typer):
            yield name, inspect.signature(verb).parameters
            continue
        for command in verb.registered_commands:
            if command.callback is not None:
                own = f"{name} {command.callback.__name__}"
                yield own, inspect.signature(command.callback).parameters


def _row(option: Option, taken: Mapping[str, Mapping[str, Any]]) -> str:
    flags = ", ".join(f"`{flag}`" for flag in option.flags)
    value = f" {option.metavar}" if option.metavar else ""
    measured = option.key in MEASURED_KEYS
    key = f"`{option.key}`" if measured else ""
    where = " (not in a scenario)" if measured and option not in options.IN_FILE else ""
    verbs = ", ".join(f"`{verb}`" for verb, known in taken.items() if option.key in known)
    cells = (
        f"{flags}{value}",
        f"{key}{where}",
        option.default_text,
        f"{option.help} {option.details}".rstrip(),
        verbs,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
