"""From an altair chart to inline SVG that takes its colors and its font from the page.

One SVG serves light and dark. Vega knows no CSS variables, so each variable stands for itself as a
color that nothing else uses, and the SVG gets the variable in its place.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

VARIABLES = ("ink", "muted", "grid", "plain", "error", "warning", "info")
COLORS = {name: f"#0a0b{index:02x}" for index, name in enumerate(VARIABLES, start=1)}
VARIABLE_OF = {color: f"var(--{name})" for name, color in COLORS.items()}
SPACE = "{http://www.w3.org/2000/svg}"
ELEMENTS = frozenset(("svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clipPath"))
DROPPED = ("aria-hidden", "aria-roledescription", "class", "cursor", "pointer-events", "role")
CONFIG = {
    "font": "sans-serif",
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "ticks": False,
        "aria": False,
        "gridColor": COLORS["grid"],
        "labelColor": COLORS["muted"],
        "labelFontSize": 12,
        "labelPadding": 6,
    },
    "legend": {
        "aria": False,
        "title": None,
        "orient": "top",
        "direction": "horizontal",
        "labelColor": COLORS["ink"],
        "labelFontSize": 12,
        "symbolFillColor": COLORS["muted"],
        "symbolOpacity": 1,
        "columnPadding": 18,
        "layout": {"top": {"margin": 28, "anchor": "middle"}},
    },
    "text": {"color": COLORS["ink"]},
}


def to_svg(chart: Any, name: str, label: str) -> Markup:
    """The chart drawn; ``name`` makes its ids unique on the page, ``label`` says what it shows."""
    import vl_convert

    spec = chart.to_dict(validate=False) | {"config": CONFIG}
    # The text is vl-convert's own, and entities cannot be declared in it.
    root = ET.fromstring(vl_convert.vegalite_to_svg(spec))  # noqa: S314
    _dress(root, name)
    root.set("role", "img")
    root.set("aria-label", label)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - ElementTree escapes


def _dress(element: ET.Element, name: str) -> None:
    """Keep what a chart needs, with the page's colors; a description becomes a title."""
    element.tag = element.tag.removeprefix(SPACE)
    title = element.attrib.pop("aria-label", "")
    for key, value in list(element.attrib.items()):
        if key in DROPPED or key.startswith(("{", "on")) or value == "sans-serif":
            del element.attrib[key]
        elif key == "id":
            element.set(key, f"{name}-{value}")
        elif value.startswith("url(#"):
            element.set(key, f"url(#{name}-{value.removeprefix('url(#')}")
        else:
            element.set(key, VARIABLE_OF.get(value, value))
    for child in list(element):
        if child.tag.removeprefix(SPACE) in ELEMENTS and child.get("display") != "none":
            _dress(child, name)
        else:
            element.remove(child)
    if title and element.tag == "path":
        ET.SubElement(element, "title").text = title
