"""A counterpart whose fields are constants: its memory and its structure line by line."""

from __future__ import annotations

import ast
import inspect
import struct
from typing import Any

from dlprof.conformance import counterpart
from dlprof.conformance.counterpart import FORMS, NEW, OLD, Source
from dlprof.conformance.inline import Given

OF_INSTANCES = {"memory", "tensor", "head", "end", "given"}
"""Attributes of :class:`Source` that a flat one has not."""
REPEATING = (ast.For, ast.ListComp, ast.GeneratorExp, ast.DictComp)
"""A consumer may change the structure of a capsule: each capsule needs its own."""
MANY = 32
DELETER = """\
deleter = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value
'# a function that changes nothing'"""
"""No check with a flat producer looks at what is deleted."""
MEMORY = """\
at = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(('valloc', ctypes.CDLL(None)))(4096)
'# never freed'"""
STRUCTURE = """\
'## A DLManagedTensorVersioned: version, manager_ctx, deleter, flags, and a DLTensor: data, device,'
'## ndim, dtype, shape, strides, byte_offset. manager_ctx and deleter follow: from the DLTensor on,'
'## it is a DLManagedTensor, too.'
"""
CAPSULES = {
    NEW: f"new_capsule(at + 3072, {NEW!r}, None)",
    OLD: f"new_capsule(at + 3104, {OLD!r}, None)",
}
CLASS = f"""
class Source:
    __dlpack_device__ = lambda self: {{device!r}}
    capsule = lambda self, name: new_capsule(at + (3072 if name == {NEW!r} else 3104), name, None)
    __dlpack__ = lambda self, *, max_version=None, **_: (
        {CAPSULES[NEW]} if max_version and max_version[0] >= 1 else {CAPSULES[OLD]}
    )
"""


def flat(definitions: list[Any], body: list[Any]) -> tuple[list[Any], list[Any]]:
    """The same with a flat producer, if one with constant fields is made once and no statement
    looks at what became of a capsule.
    """
    sources = [one for one in definitions if _name(one) == "Source"]
    others = [one for one in definitions if one not in sources]
    nodes = [node for whole in (*others, *body) for node in ast.walk(whole)]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    classes = {"Source", *(node.name for node in nodes if isinstance(node, ast.ClassDef))}
    calls = [
        node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) in classes
    ]
    repeated = [
        one.id
        for node in nodes
        if isinstance(node, REPEATING)
        for one in ast.walk(node)
        if isinstance(one, ast.Name)
    ]
    is_many = len(calls) != 1 or not classes.isdisjoint(repeated) or "source" in repeated
    if not sources or attributes & OF_INSTANCES or is_many or not _is_constant(calls[0]):
        return definitions, body
    bound = _bound(calls[0])
    calls[0].args, calls[0].keywords = [], []
    packed: list[Any] = ast.parse(_text(bound)).body
    made = packed[-1]
    others, body = (list(map(_Flat().visit, some)) for some in (others, body))
    body = list(map(_Flat().visit, _without_name(body)))
    nodes = [node for whole in (*others, *body) for node in ast.walk(whole)]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    made.body = [one for one in made.body if _name(one) != "capsule" or "capsule" in attributes]
    for place, kind in enumerate(body):
        if isinstance(kind, ast.ClassDef) and _is_only(kind, nodes):
            own = set(map(_name, kind.body))
            made.name = kind.name
            made.body = [one for one in made.body if _name(one) not in own] + kind.body
            body = [*body[:place], packed.pop(), *body[place + 1 :]]
    at = definitions.index(sources[0])
    return [*others[:at], *packed, *others[at:]], body


def _is_only(kind: ast.ClassDef, nodes: list[ast.AST]) -> bool:
    """Whether a class has Source as its base, and all other statements do without that."""
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    own = {one.id for one in ast.walk(kind) if isinstance(one, ast.Name)}
    bases = list(map(ast.unparse, kind.bases))
    return bases == ["Source"] and names.count("Source") == 1 and "super" not in own


def _name(node: Any) -> str:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0])
    return getattr(node, "name", "")


class _Flat(ast.NodeTransformer):
    """Capsules of a known name, and the address of the data, without the object that has them."""

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        return ast.Name("at", node.ctx) if ast.unparse(node) == "source.data" else node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        if node.func.attr == "__dlpack__" and ast.unparse(node.func.value) == "Source()":
            name = None if node.keywords else OLD
        elif node.func.attr != "capsule":
            name = None
        return ast.parse(CAPSULES[name], mode="eval").body if name in CAPSULES else node


def _is_constant(call: ast.Call) -> bool:
    """Whether the arguments have no names but those of constants."""
    given = [*call.args, *call.keywords]
    names = [one.id for some in given for one in ast.walk(some) if isinstance(one, ast.Name)]
    return all(name.isupper() for name in names)


def _bound(call: ast.Call) -> Any:
    """The arguments of :class:`Source` in a call."""
    bind = ast.Call(ast.Name("bind"), call.args, call.keywords)
    names = {**vars(counterpart), "bind": inspect.signature(Source).bind}
    return eval(ast.unparse(bind), names)  # noqa: S307 - it is the text of a check


def _without_name(body: list[Any]) -> list[Any]:
    """The body with the call itself where the next statement alone uses ``source``."""
    names = [one.id for whole in body for one in ast.walk(whole) if isinstance(one, ast.Name)]
    for at, made in enumerate(body[:-1]):
        own = [one.id for one in ast.walk(body[at + 1]) if isinstance(one, ast.Name)]
        if _name(made) == "source" and names.count("source") == 2 and "source" in own:  # noqa: PLR2004
            given = Given({"source": made.value}, [])
            return [*body[:at], *map(given.visit, body[at + 1 :])]
    return body


def _text(bound: inspect.BoundArguments) -> str:
    """Statements with the numbers of a source that has these arguments."""
    source = Source(*bound.args, **bound.kwargs)
    bound.apply_defaults()
    given = bound.arguments
    numbers, sizes = given["numbers"], given["shape"] + given["strides"]
    form, names = FORMS[NEW]
    values = dict(zip(names.split(), struct.unpack(form, source.head + source.tensor), strict=True))
    data = f"{len(numbers)}{given['form']}"
    begin = struct.calcsize(f"{data}0q") - 2048  # the shape follows the data at once
    places = {"data": 0, "shape": begin, "strides": begin}
    said = {name: str(value) for name, value in values.items()}
    for name, shift in places.items():
        if values[name]:
            said[name] = f"at + {values[name] - source.data + shift}".removesuffix(" + 0")
    if values["deleter"]:
        said["deleter"] = "deleter"
    lines = [DELETER] if values["deleter"] else []
    lines.append(MEMORY)
    if numbers or sizes:
        lines.append(_moved("at", f"{data}{len(sizes)}q", _listed(numbers), _listed(sizes)))
    lines.append(STRUCTURE + _moved("at + 3072", f"{form}PP", *said.values(), "0", said["deleter"]))
    return "\n".join(lines) + CLASS.format(device=source.device)


def _moved(place: str, form: str, *values: str) -> str:
    listed = ", ".join(filter(None, values))
    return f"ctypes.memmove({place}, struct.pack({form!r}, {listed}), {struct.calcsize(form)})"


def _listed(values: tuple[Any, ...]) -> str:
    if len(values) > MANY:
        return f"*{values[:1]} * {len(values)}"
    return ", ".join(map(str, values))
