"""From a chart to an inline SVG that takes its colours and its font from the page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

from dlprof.reports.html.theme import COLOURS, config

SPACE = "http://www.w3.org/2000/svg"
DROPPED = ("aria-hidden", "aria-label", "aria-roledescription", "role", "pointer-events", "cursor")
PAINTS = ("fill", "stroke")
ELEMENTS = frozenset(
    ("svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clipPath", "title", "desc")
)
"""All that a chart needs; anything else is a surprise and is left out."""
PLAIN_FONT = "sans-serif"
VARIABLE = {colour: f"var(--{name})" for name, colour in COLOURS.items()}


def chart(values: Sequence[Mapping[str, Any]]) -> Any:
    """A chart of rows of data, before it is told what to draw."""
    import altair

    made: Any = altair
    return made.Chart(made.Data(values=values))


def draw(drawn: Any, name: str, label: str) -> Markup:
    """The SVG of an altair chart; ``name`` is unique on the page, ``label`` says what it shows."""
    import vl_convert

    spec = drawn.to_dict(validate=False) | {"config": config(), "background": "transparent"}
    return themed(vl_convert.vegalite_to_svg(spec), name, label)


def themed(svg: str, name: str, label: str) -> Markup:
    """The SVG with variables for colours, ids of its own, and one label for a screen reader."""
    # The text is our own renderer's, and nothing in it is fetched: entities cannot be declared.
    root = ET.fromstring(svg)  # noqa: S314
    _prune(root)
    for element in root.iter():
        _dress(element, name)
    root.set("role", "img")
    root.set("aria-label", label)
    root.attrib.pop("version", None)
    text = ET.tostring(root, encoding="unicode")
    return Markup(re.sub(r' xmlns(:\w+)?="[^"]*"', "", text))  # noqa: S704 - built by ElementTree


def _prune(parent: ET.Element) -> None:
    for child in list(parent):
        if child.tag.removeprefix(f"{{{SPACE}}}") in ELEMENTS and child.get("display") != "none":
            _prune(child)
        else:
            parent.remove(child)


def _dress(element: ET.Element, name: str) -> None:
    element.tag = element.tag.removeprefix(f"{{{SPACE}}}")
    for key, value in list(element.attrib.items()):
        if key in DROPPED or key.startswith(("{", "on")):
            del element.attrib[key]
        elif key in PAINTS:
            element.set(key, VARIABLE.get(value, value))
        elif key == "id":
            element.set(key, f"{name}-{value}")
        elif value.startswith("url(#"):
            element.set(key, f"url(#{name}-{value.removeprefix('url(#')}")
    if element.get("font-family") == PLAIN_FONT:
        del element.attrib["font-family"]
    if element.tag == "g":
        element.attrib.pop("class", None)
