"""The lists of ``dlprof probes`` and ``dlprof paths`` as text."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from dlprof.cli.show import colour, width
from dlprof.plan.catalog import Catalog, ProbeInfo
from dlprof.plan.pairing import Axes, Path
from dlprof.text.clean import clean, first_line


def probes_text(catalog: Catalog, verified: Mapping[str, dict[str, Any]]) -> str:
    """One line per framework; ``verified`` holds by name what a worker found by importing it."""
    table = plain_table("framework", "version", "devices", "out", "in", "C exchange API")
    for probe in catalog.probes:
        found = verified.get(probe.name)
        table.add_row(
            "/".join((probe.name, *probe.aliases)),
            probe.version or ("found" if probe.found else f"pip install {probe.requirement}"),
            _devices(probe, catalog, found),
            str(len(probe.exports)),
            str(len(probe.imports)),
            _exchange(probe, found),
        )
    lines = text_of(table)
    for source, fault in catalog.faults.items():
        lines += f"\n{clean(source)} cannot be used: {first_line(fault)}\n"
    no_cuda = catalog.interpreter.get("no_cuda")
    lines += f"\nNo CUDA device: {no_cuda}\n" if no_cuda else ""
    for name, found in verified.items():
        if found.get("error"):
            lines += f"{name}: {first_line(str(found['error']))}\n"
    return (
        lines if verified else lines + "Nothing was imported; --verify imports each in a worker.\n"
    )


def _devices(probe: ProbeInfo, catalog: Catalog, found: Mapping[str, Any] | None) -> str:
    if not probe.found:
        return "-"
    if found is not None:
        usable = [name for name, state in found.get("devices", {}).items() if state == "usable"]
        return " ".join(usable) or "none"
    missing = "cuda" if catalog.interpreter.get("no_cuda") else ""
    return " ".join(device for device in probe.devices if device != missing) or "none here"


def _exchange(probe: ProbeInfo, found: Mapping[str, Any] | None) -> str:
    answer = probe.c_exchange_api if found is None else found.get("c_exchange_api")
    return "?" if answer is None else "yes" if answer else "no"


def paths_text(producer: str, consumer: str, found: Mapping[str, Sequence[Path]]) -> str:
    """The paths of each device as code."""
    parts = [
        _paths_on(f"{producer} → {consumer} on {device}", paths) for device, paths in found.items()
    ]
    every = [path for paths in found.values() for path in paths]
    return "\n".join([*parts, *_explained(every)])


def _code(path: Path) -> str:
    """As a user would type it for the array that is measured where nobody asks for another."""
    return path.written(Axes().dtypes[0], Axes().shapes[0])


def _explained(paths: Sequence[Path]) -> list[str]:
    """What stands in the code besides the array; a setup that several need is told once."""
    needed: dict[str, str] = {}
    for path in paths:
        setup = path.import_.setup.strip()
        if setup:
            needed.setdefault(setup, _code(path))
    told = [f"{code} needs:\n{indent(setup, '    ')}\n" for setup, code in needed.items()]
    if any(_code(path) != path.code for path in paths):
        told.append("dtype and shape stand there as for an array of float32, 1024x1024\n")
    return told


def _paths_on(title: str, paths: Sequence[Path]) -> str:
    """A row for each path; where the code is too long for that, a line of its own."""
    if not paths:
        return f"{title}: no common protocol\n"
    rows = [(_code(path), path.protocol, path.name, path.promise or "") for path in paths]
    columns = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(columns) + 2 * len(columns) > width():
        lines = [f"{code}\n    {', '.join(filter(None, rest))}" for code, *rest in rows]
        return "\n".join([title, *lines]) + "\n"
    table = plain_table(title, "protocol", "name", "says")
    for row in rows:
        table.add_row(*row)
    return text_of(table)


def plain_table(*titles: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")
    for index, title in enumerate(titles):
        table.add_column(title, overflow="fold", no_wrap=False, ratio=1 if index == 0 else None)
    return table


def text_of(renderable: RenderableType) -> str:
    target = io.StringIO()
    console = Console(
        file=target,
        width=width(),
        force_terminal=colour(),
        no_color=not colour(),
        highlight=False,
        emoji=False,
        markup=False,
    )
    console.print(renderable)
    return "\n".join(line.rstrip() for line in target.getvalue().splitlines()) + "\n"
