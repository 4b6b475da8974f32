"""Options as parameters of verbs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from dlprof.cli import streams
from dlprof.errors import UsageError
from dlprof.runner import options
from dlprof.runner.options import Export, Option, Several, Switch, read_value

SessionFile = Annotated[
    Path,
    typer.Argument(
        parser=streams.session,
        metavar="SESSION",
        help="A session file; LAST is the newest, - is stdin.",
    ),
]
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
    options.EXPORT,
    options.GITHUB,
    options.FULL,
)


def takes(*wanted: Option) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb these options after its arguments; it gets them as ``given``."""

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def called(**arguments: Any) -> None:
            raw = {option.key: arguments.pop(option.key) for option in wanted}
            # Typer gives an empty list for an option that was not typed.
            raw = {key: None if value in ([], ()) else value for key, value in raw.items()}
            verb(**arguments, given=Given(wanted, raw))

        parameters = dict(inspect.signature(verb, eval_str=True).parameters)
        del parameters["given"]
        in_panels = sorted(wanted, key=lambda option: options.PANELS.index(option.panel))
        all_parameters = [*parameters.values(), *map(_parameter, in_panels)]
        called.__signature__ = inspect.Signature(all_parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {item.name: item.annotation for item in all_parameters}
        called.options = wanted  # type: ignore[attr-defined]
        return called

    return decorate


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = str | None
    if isinstance(option.kind, Switch):
        kind = bool | None
    elif isinstance(option.kind, Several):
        kind = list[str] | None
    elif isinstance(option.kind, Export):
        kind = tuple[str, str] | None
    declared = typer.Option(
        *option_flags(option),
        metavar=option.metavar,
        help=help_text(option),
        rich_help_panel=option.panel,
    )
    return inspect.Parameter(
        option.key,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind, declared],
    )


def option_flags(option: Option) -> tuple[str, ...]:
    """Return the flags as typer and the reference have them: ``--diagnose/--no-diagnose``."""
    if isinstance(option.kind, Switch) and option.default:
        return (f"{option.name}/--no-{option.name.removeprefix('--')}",)
    return option.flags


def help_text(option: Option) -> str:
    """Return its help, with its default."""
    text = option.help
    if isinstance(option.kind, Several):
        text = f"{text.removesuffix('.')}; may be repeated."
    if not option.default_text or (isinstance(option.kind, Switch) and not option.default):
        return text
    return f"{text} Default: {option.default_text}."


@dataclass(frozen=True)
class Given:
    """The options of a verb, with the values on the command line."""

    options: tuple[Option, ...]
    raw: Mapping[str, Any]

    def __getitem__(self, option: Option) -> Any:
        """Return the value of an option, or its default as the verb declares it."""
        declared = next((item for item in self.options if item.key == option.key), option)
        raw = self.raw.get(declared.key)
        return declared.initial if raw is None else read_value(declared, raw, declared.name)

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """The values of the options that were given. Raises :class:`UsageError`."""
        known = {option.key: option for option in self.options}
        return options.read({key: self.raw[key] for key in known}, typed=True, known=known)

    def settled(self, preset: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the values of all options: given ones before ``preset`` before defaults."""
        layers = options.read(preset or {}), self.values
        return options.settle(*layers, known=self.options)

    @property
    def output(self) -> Path | None:
        """The file or folder of ``-o``. Raises :class:`UsageError` if its name is unfit."""
        name = self.raw[options.SESSION.key]
        if name in ("", "-"):
            raise UsageError(f"-o {name!r} is no file: name one, or leave it out")
        return None if name is None else Path(name)
