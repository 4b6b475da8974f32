"""Source text of a framework for the checks, and of a check as a script without dlprof.

A script needs the framework and the standard library only. It holds the source of the check and of
every definition that it uses, as they stand.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from functools import cache

from dlprof.conformance import CHECKS, counterpart
from dlprof.conformance import check as checks
from dlprof.conformance.check import STANDARDS, Check
from dlprof.probes import capsule
from dlprof.probes.base import DTYPES, FLAGS, ArraySpec, Probe, Protocol, Unsupported, written

KINDS = (
    *("C", "sliced", "F", "strided", "reversed", "broadcast", "readonly"),
    *("scalar", "empty", "cube", "large"),
    *FLAGS,
    *DTYPES,
)
"""The arrays of the checks: layouts, flags and dtypes of a probe, and other shapes."""
SHAPE = (2, 4)
SHAPES = {"scalar": (), "empty": (0, 3), "cube": (2, 3, 4), "large": (256, 1024)}
CALL = re.compile(r"([\w.]+)\(\{x\}(, \w+=-?\d+)?\)")
TEXT = """\
{setup}

arrays = {{
{arrays}}}


def make(kind):
    names = dict(globals())
    exec(arrays[kind], names)
    return names["x"]


class framework:
    make = make
{members}"""
HEAD = '''\
"""{framework} as {role}: {clause}

{source} ({severity}): {link}
Exit code 0: the clause holds, or the framework refuses, which the clause allows.
A traceback that ends with Violated, a crash or no end: the clause is violated.
Any other error shows nothing. Written by dlprof for {standards}.
"""

from __future__ import annotations

'''
MAIN = """\
try:
    {name}(framework)
    print("holds")
except Refused as refusal:
    print("refused, which the clause allows:", refusal)
"""


@dataclass(frozen=True)
class Binding:
    """A framework as source text that defines the class ``framework``.

    ``arrays`` are statements by kind that make ``x``. ``members`` are expressions: ``take`` makes
    the framework's array of ours, ``export`` makes a capsule of the framework's, and ``values``,
    ``shape``, ``dtype`` and ``writable`` read its array. ``from_dlpack`` is a function, or None.
    """

    name: str
    setup: str
    arrays: dict[str, str]
    members: dict[str, str]
    device: str = "cpu"

    def text(self, kinds: Container[str] = KINDS) -> str:
        """Return the source text, with arrays of these kinds."""
        members = "".join(f"    {name} = {code}\n" for name, code in self.members.items())
        arrays = "".join(
            f"    {kind!r}: {text!r},\n" for kind, text in self.arrays.items() if kind in kinds
        )
        return TEXT.format(setup=self.setup, arrays=arrays, members=members)


def binding(probe: Probe, device: str = "cpu") -> Binding:
    """Raises :class:`Unsupported` if the probe does not say how to read its arrays."""
    idioms = probe.idioms(device, "float32")
    if missing := {"values", "shape", "dtype"} - set(idioms):
        raise Unsupported(f"its probe has no idiom {', '.join(sorted(missing))}")
    function, takes_objects = importer(probe)
    exports = [way for way in probe.exports if device in (way.devices or probe.devices)]
    capsules = [way.code for way in exports if way.protocol is Protocol.DLPACK_CAPSULE]
    gives_objects = any(way.protocol is Protocol.DLPACK and way.code == "{x}" for way in exports)
    if function is None and not capsules and not gives_objects:
        raise Unsupported("its probe declares no way in or out by DLPack")
    idiom = {name: written(code, "x", "float32") for name, code in idioms.items()}
    members = {
        "values": f"lambda x: {idiom['values']}.reshape(-1).tolist()",
        "shape": f"lambda x: tuple({idiom['shape'].removeprefix('tuple')})",
        "dtype": f"lambda x: {idiom['dtype']}",
        "writable": f"lambda x: {idiom.get('writable')}",
        "takes_objects": str(takes_objects),
        "gives_objects": str(gives_objects),
        "is_immutable": str("write" not in idioms),
        "narrows": str(tuple(probe.narrows)),
        "from_dlpack": str(function),
    }
    if function:
        argument = "x" if takes_objects else "x.__dlpack__()"
        members["take"] = f"lambda x, **keywords: {function}({argument}, **keywords)"
    if gives_objects:
        members["export"] = "lambda x, **keywords: x.__dlpack__(**keywords)"
    elif capsules:
        call = written(capsules[0], "x", "float32").removesuffix(")")
        members["export"] = f"lambda x, **keywords: {call}{', ' * (call[-1] != '(')}**keywords)"
    arrays = {kind: text for kind in KINDS if (text := array_text(probe, kind, device))}
    return Binding(probe.name, probe.setup, arrays, members, device)


def importer(probe: Probe) -> tuple[str | None, bool]:
    """Return the function that takes arrays in, or None, and whether it takes objects."""
    for protocol in (Protocol.DLPACK, Protocol.DLPACK_CAPSULE):
        for way in (way for way in probe.imports if way.returns_array):
            if (found := CALL.fullmatch(way.code)) and protocol in way.protocols:
                call = f"(lambda x, **keywords: {found[1]}(x{found[2]}, **keywords))"
                return call if found[2] else found[1], protocol is Protocol.DLPACK
    return None, False


def array_text(probe: Probe, kind: str, device: str) -> str:
    """Return source text of an array of this kind; empty if the framework has none."""
    spec = ArraySpec(SHAPES.get(kind, SHAPE), "float32", device=device)
    if kind in DTYPES:
        spec = replace(spec, dtype=kind)
    elif kind not in SHAPES:
        dtype = "complex64" if kind == "conjugated" else "float32"
        spec = replace(spec, dtype=dtype, layout=kind)
    if kind in FLAGS and kind not in probe.flags:
        return ""
    try:
        return probe.create(spec)
    except Unsupported:
        return ""


def script(check: Check, bound: Binding, version: str = "") -> str:
    """Return the text of the script. ``version`` is the framework's."""
    imports, definitions = _definitions()
    source = inspect.getsource(check.run)
    (function,) = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    used = _names([*function.body, function.args]) | {"Refused"}
    chosen: set[str] = set()
    while missing := used & definitions.keys() - chosen:
        chosen |= missing
        used |= _names(definitions[name][0] for name in missing)
    nodes = [node for name, (node, _) in definitions.items() if name in chosen]
    texts = [text for name, (_, text) in definitions.items() if name in chosen]
    texts.append(f"\n\n{ast.get_source_segment(source, function)}\n\n")
    words = {
        part.value
        for node in (*nodes, function)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }
    facts = {
        **vars(check),
        "framework": f"{bound.name} {version}".rstrip(),
        "link": check.link,
        "standards": STANDARDS,
    }
    lines = sorted({imports[name] for name in used & imports.keys()})
    end = MAIN.format(name=check.run.__name__)
    whole = "\n".join([*lines, *dict.fromkeys(texts), bound.text(words), end])
    return HEAD.format(**facts) + whole.replace("KIND = CPU", f"KIND = {bound.device.upper()}")


@cache
def _definitions() -> tuple[dict[str, str], dict[str, tuple[ast.AST, str]]]:
    """Return the imports of the standard library, and all definitions with their source, by name.

    Checks are left out: a variable may have the name of one.
    """
    imports: dict[str, str] = {}
    found: dict[str, tuple[ast.AST, str]] = {}
    modules = dict.fromkeys(inspect.getmodule(check.run) for check in CHECKS.values())
    for module in (capsule, counterpart, checks, *filter(None, modules)):
        source = inspect.getsource(module)
        for node in ast.parse(source).body:
            text = ast.get_source_segment(source, node) or ""
            if isinstance(node, ast.Import | ast.ImportFrom):
                if not text.startswith(("from dlprof", "from __future__")):
                    imports |= {alias.asname or alias.name: text for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                if isinstance(node, ast.ClassDef) or not node.decorator_list:
                    found[node.name] = node, f"\n\n{text}\n\n"
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= dict.fromkeys(_names(targets), (node, text))
    return imports, found


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}
