"""A framework as the checks see it: source text, so that a script can hold it as well."""

from __future__ import annotations

import re

from dlprof.probes.base import DTYPES, FLAGS, ArraySpec, Probe, Protocol, Unsupported, written

KINDS = (
    *("C", "sliced", "F", "strided", "reversed", "broadcast", "readonly"),
    *("scalar", "empty", "large"),
    *FLAGS,
    *DTYPES,
)
"""The arrays that checks ask for: layouts, flags and dtypes of a probe, and other shapes."""
SHAPE = (2, 4)
SHAPES = {"scalar": (), "empty": (0, 3), "large": (256, 1024)}
CALL = re.compile(r"([\w.]+)\(\{x\}\)")
TEXT = """\
class framework:
    name = {name!r}
    takes_objects = {takes_objects}
    is_immutable = {is_immutable}
    narrows = {narrows}
    arrays = {arrays}

    @staticmethod
    def make(kind):
        names = dict(globals())
        exec(framework.arrays[kind], names)
        return names["x"]

    @staticmethod
    def values(x):
        found = {values}
        return found.reshape(-1).tolist() if hasattr(found, "reshape") else list(found)

    from_dlpack = staticmethod({from_dlpack}) if {has_import} else None
    to_dlpack = staticmethod(lambda x: {to_dlpack})
    shape = staticmethod(lambda x: tuple({shape}))
    dtype = staticmethod(lambda x: {dtype})
    writable = staticmethod(lambda x: {writable})
"""


def binding(probe: Probe, kinds: tuple[str, ...] = KINDS) -> str:
    """Source text that defines the class ``framework``, with the arrays of ``kinds``.

    Raises :class:`Unsupported` if the probe does not say how to read its arrays.
    """
    idioms = probe.idioms("cpu", "float32")
    if missing := {"values", "shape", "dtype"} - set(idioms):
        raise Unsupported(f"its probe has no idiom {', '.join(sorted(missing))}")
    call, takes_objects = importer(probe)
    capsules = [way.code for way in probe.exports if way.protocol is Protocol.DLPACK_CAPSULE]
    if call is None and not capsules and not gives_objects(probe):
        raise Unsupported("its probe declares no way in or out by DLPack")
    arrays = {kind: text for kind in kinds if (text := made(probe, kind))}
    idiom = {name: written(code, "x", "float32") for name, code in idioms.items()}
    text = TEXT.format(
        name=probe.name,
        takes_objects=takes_objects,
        is_immutable="write" not in idioms,
        narrows=dict(probe.narrows),
        arrays="{\n" + "".join(f"        {k!r}: {v!r},\n" for k, v in arrays.items()) + "    }",
        values=idiom["values"],
        from_dlpack=call or "len",
        has_import=call is not None,
        to_dlpack=written(capsules[0], "x", "float32") if capsules else "None",
        shape=idiom["shape"],
        dtype=idiom["dtype"],
        writable=idiom.get("writable", "None"),
    )
    return f"{probe.setup}\n\n\n{text}"


def importer(probe: Probe) -> tuple[str | None, bool]:
    """The function that takes arrays in, and whether it takes objects; None if there is none."""
    for protocol in (Protocol.DLPACK, Protocol.DLPACK_CAPSULE):
        for way in probe.imports:
            found = CALL.fullmatch(way.code)
            if found and protocol in way.protocols and way.returns_array:
                return found[1], protocol is Protocol.DLPACK
    return None, False


def gives_objects(probe: Probe) -> bool:
    return any(way.protocol is Protocol.DLPACK and way.code == "{x}" for way in probe.exports)


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
