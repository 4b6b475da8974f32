"""A counterpart whose fields are constants: its memory and its structure line by line."""

from __future__ import annotations

import ast
import inspect
import struct
from typing import Any

from dlprof.conformance import counterpart
from dlprof.conformance.counterpart import FORMS, NEW, Source
from dlprof.conformance.inline import Given

OF_INSTANCES = {"memory", "tensor", "head", "end", "given"}
"""Attributes of :class:`Source` that a flat one has not."""
MANY = 32
DELETER = "deleter = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value"
"""It does nothing: no check with a flat producer looks at what is deleted."""
MEMORY = "memory = mmap.mmap(-1, 4096)\nat = ctypes.addressof(ctypes.c_char.from_buffer(memory))"
CLASS = '''
class Source:
    """A DLManagedTensorVersioned; its last 64 bytes are a DLManagedTensor."""
    data = at
    device = {device!r}
    __dlpack_device__ = lambda self: {device!r}
    capsule = lambda self, name: new_capsule(at + (1024 if name == {new!r} else 1056), name, None)
'''


def flat(definitions: list[Any], body: list[Any]) -> tuple[list[Any], list[Any]]:
    """The same with a flat producer, if all producers have the same constant fields and no
    statement looks at what became of a capsule.
    """
    sources = [one for one in definitions if _name(one) == "Source"]
    others = [one for one in definitions if one not in sources]
    nodes = [node for whole in (*others, *body) for node in ast.walk(whole)]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    classes = {"Source", *(node.name for node in nodes if isinstance(node, ast.ClassDef))}
    calls = [
        node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) in classes
    ]
    texts = {ast.unparse(ast.Call(ast.Name("dict"), one.args, one.keywords)) for one in calls}
    if not sources or attributes & OF_INSTANCES or len(texts) != 1 or not _are_constant(calls):
        return definitions, body
    bound = _bound(calls[0])
    for call in calls:
        call.args, call.keywords = [], []
    packed: list[Any] = ast.parse(_text(bound)).body
    made = packed[-1]
    needless = {"__dlpack_device__"} if "device" in attributes else {"device"}
    needless |= {"data"} - attributes
    made.body = [one for one in made.body if _name(one) not in needless]
    methods = [one for one in sources[0].body if _name(one).startswith("__dlpack")]
    made.body += [_as_lambda(one) for one in methods if _name(one) not in map(_name, made.body)]
    for place, kind in enumerate(body):
        if isinstance(kind, ast.ClassDef) and _is_only(kind, nodes):
            own = set(map(_name, kind.body))
            made.name = kind.name
            made.body = [one for one in made.body if _name(one) not in own] + kind.body
            body = [*body[:place], packed.pop(), *body[place + 1 :]]
    at = definitions.index(sources[0])
    return [*definitions[:at], *packed, *definitions[at + 1 :]], _without_name(body)


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


def _as_lambda(method: Any) -> ast.stmt:
    """A method that is one expression."""
    (returned,) = method.body
    return ast.Assign([ast.Name(method.name)], ast.Lambda(method.args, returned.value), lineno=0)


def _are_constant(calls: list[ast.Call]) -> bool:
    """Whether the arguments have no names but those of constants."""
    given = [one for call in calls for one in (*call.args, *call.keywords)]
    names = [one.id for some in given for one in ast.walk(some) if isinstance(one, ast.Name)]
    return all(name.isupper() for name in names)


def _bound(call: ast.Call) -> Any:
    """The arguments of :class:`Source` in a call."""
    bind = ast.Call(ast.Name("bind"), call.args, call.keywords)
    names = {**vars(counterpart), "bind": inspect.signature(Source).bind}
    return eval(ast.unparse(bind), names)  # noqa: S307 - it is the text of a check


def _without_name(body: list[Any]) -> list[Any]:
    """The body with the call itself where the next ``try`` alone uses ``source``."""
    names = [one.id for whole in body for one in ast.walk(whole) if isinstance(one, ast.Name)]
    for at, made in enumerate(body[:-1]):
        is_next = names.count("source") == 2 and isinstance(body[at + 1], ast.Try)  # noqa: PLR2004
        if _name(made) == "source" and is_next:
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
    said = {name: str(value) for name, value in values.items()}
    for name in ("data", "shape", "strides"):
        if values[name]:
            said[name] = f"at + {values[name] - source.data}".removesuffix(" + 0")
    if values["deleter"]:
        said["deleter"] = "deleter"
    lines = [DELETER] if values["deleter"] else []
    lines.append(MEMORY)
    if numbers:
        lines.append(_packed(f"{len(numbers)}{given['form']}", 0, _listed(numbers)))
    if sizes:
        lines.append(_packed(f"{len(sizes)}q", 2048, _listed(sizes)))
    lines.append(_packed(f"{form}PP", 1024, ", ".join([*said.values(), "0", said["deleter"]])))
    return "\n".join(lines) + CLASS.format(device=source.device, new=NEW)


def _packed(form: str, place: int, values: str) -> str:
    return f"struct.pack_into({form!r}, memory, {place}, {values})"


def _listed(values: tuple[Any, ...]) -> str:
    if len(values) > MANY:
        return f"*{values[:1]} * {len(values)}"
    return ", ".join(map(str, values))
