"""A framework as the checks see it: source text, so that a script can hold it as well."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

from dlprof.probes.base import DTYPES, FLAGS, ArraySpec, Probe, Protocol, Unsupported, written

KINDS = (
    *("C", "sliced", "F", "strided", "reversed", "broadcast", "readonly"),
    *("scalar", "empty", "cube", "large"),
    *FLAGS,
    *DTYPES,
)
"""The arrays that checks ask for: layouts, flags and dtypes of a probe, and other shapes."""
SHAPE = (2, 4)
SHAPES = {"scalar": (), "empty": (0, 3), "cube": (2, 3, 4), "large": (256, 1024)}
CALL = re.compile(r"([\w.]+)\(\{x\}\)")
TEXT = """\
{setup}

arrays = {{
{arrays}}}


def make(kind):
    names = dict(globals())
    exec(arrays[kind], names)
    return names["x"]


class framework:
    arrays = arrays
    make = make
"""


@dataclass(frozen=True)
class Binding:
    """What the checks know of a framework.

    ``arrays`` are statements by kind that make ``x``. ``codes`` are expressions of ``x``:
    ``take`` makes the framework's array of ours, ``export`` makes a capsule of the framework's,
    and ``values``, ``shape``, ``dtype`` and ``writable`` read its array. ``facts`` are constants;
    ``from_dlpack`` is the name of a function, or None, and ``newest`` are the keywords for a
    capsule of the newest version.
    """

    setup: str
    arrays: dict[str, str]
    codes: dict[str, str]
    facts: dict[str, object]

    def text(self, kinds: Container[str] = KINDS) -> str:
        """Return source text that defines the class ``framework``, with arrays of these kinds."""
        facts = {name: value for name, value in self.facts.items() if name != "from_dlpack"}
        lines = [f"    {name} = {value!r}" for name, value in facts.items()]
        for name, code in self.codes.items():
            whole = with_keywords(code) if name in ("take", "export") else code
            lines.append(f"    {name} = lambda x, **how: {whole}")
        lines.append(f"    from_dlpack = {self.facts['from_dlpack']}")
        arrays = "".join(
            f"    {kind!r}: {text!r},\n" for kind, text in self.arrays.items() if kind in kinds
        )
        return TEXT.format(setup=self.setup, arrays=arrays) + "\n".join(lines) + "\n"


def with_keywords(code: str) -> str:
    """The call ``code`` with the keywords ``how`` as well."""
    begin = code.removesuffix(")")
    return f"{begin}**how)" if begin.endswith("(") else f"{begin}, **how)"


def binding(probe: Probe) -> Binding:
    """Raises :class:`Unsupported` if the probe does not say how to read its arrays."""
    idioms = probe.idioms("cpu", "float32")
    if missing := {"values", "shape", "dtype"} - set(idioms):
        raise Unsupported(f"its probe has no idiom {', '.join(sorted(missing))}")
    function, takes_objects = importer(probe)
    capsules = [way.code for way in probe.exports if way.protocol is Protocol.DLPACK_CAPSULE]
    gives_objects = any(
        way.protocol is Protocol.DLPACK and way.code == "{x}" for way in probe.exports
    )
    if function is None and not capsules and not gives_objects:
        raise Unsupported("its probe declares no way in or out by DLPack")
    idiom = {name: written(code, "x", "float32") for name, code in idioms.items()}
    codes = {
        "values": f"{idiom['values']}.reshape(-1).tolist()",
        "shape": f"tuple({idiom['shape'].removeprefix('tuple')})",
        "dtype": idiom["dtype"],
        "writable": idiom.get("writable", "None"),
    }
    if function:
        codes["take"] = f"{function}(x)" if takes_objects else f"{function}(x.__dlpack__())"
    if gives_objects:
        codes["export"] = "x.__dlpack__()"
    elif capsules:
        codes["export"] = written(capsules[0], "x", "float32")
    facts = {
        "name": probe.name,
        "takes_objects": takes_objects,
        "gives_objects": gives_objects,
        "is_immutable": "write" not in idioms,
        "narrows": tuple(probe.narrows),
        "from_dlpack": function,
        "newest": {"max_version": (1, 3)},
    }
    arrays = {kind: text for kind in KINDS if (text := made(probe, kind))}
    return Binding(probe.setup, arrays, codes, facts)


def importer(probe: Probe) -> tuple[str | None, bool]:
    """The function that takes arrays in, and whether it takes objects; None if there is none."""
    for protocol in (Protocol.DLPACK, Protocol.DLPACK_CAPSULE):
        for way in probe.imports:
            found = CALL.fullmatch(way.code)
            if found and protocol in way.protocols and way.returns_array:
                return found[1], protocol is Protocol.DLPACK
    return None, False


def made(probe: Probe, kind: str) -> str:
    """Source text of an array of this kind; empty if the framework has none."""
    if kind in DTYPES:
        spec = ArraySpec(SHAPE, kind)
    elif kind in SHAPES:
        spec = ArraySpec(SHAPES[kind], "float32")
    else:
        dtype = "complex64" if kind == "conjugated" else "float32"
        spec = ArraySpec(SHAPE, dtype, kind)
        if kind in FLAGS and kind not in probe.flags:
            return ""
    try:
        return probe.create(spec)
    except Unsupported:
        return ""
