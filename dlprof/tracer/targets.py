"""The functions to wrap, read from the source text of the probes' exports and imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dlprof.probes.base import Probe, Protocol
from dlprof.probes.builtin import ALL

ARRAY = "x"
"""The name of the array in a conversion's text: ``torch.from_numpy(x)``."""
METHODS = {Protocol.DLPACK: "__dlpack__", Protocol.ARRAY_INTERFACE: "__array__"}
"""Methods by which a consumer takes an array that is exported as it is."""
HOST_ONLY = {Protocol.NUMPY, Protocol.ARRAY_INTERFACE, Protocol.BUFFER}
"""Protocols whose arrays are in host memory."""
MOVES = {"cuda": (("cuda", False), ("to", True))}
"""Methods of a result that copy it to another device, and whether they may do something else."""
READS = {
    "item": "x.item()",
    "tolist": "x.tolist()",
    "__float__": "float(x)",
    "__int__": "int(x)",
    "__bool__": "bool(x)",
    "__index__": "operator.index(x)",
    "__complex__": "complex(x)",
    "__format__": "format(x)",
    "__str__": "str(x)",
    "__repr__": "repr(x)",
}
"""Methods that read an array's values into Python's own objects, and wait for them."""
EITHER = "gives", "takes", "takes_buffers", "uploads"
"""Abilities of a function that any of the conversions by it has."""


@dataclass(frozen=True)
class Target:
    """A function of a module, or a method of a framework's array type.

    ``owner`` is the module or the class by its dotted name, such as ``jax.numpy``.
    """

    framework: str
    owner: str
    name: str
    conversion: str
    """The text in reports: ``jnp.asarray(x)``, ``x.numpy()``."""
    is_method: bool = False
    gives: bool = False
    """Whether it exports arrays of its own framework."""
    takes: bool = False
    """Whether it imports arrays of others."""
    takes_buffers: bool = False
    """Whether it imports plain host memory."""
    is_move: bool = False
    """Whether it converts only if the result is on another device."""
    uploads: bool = False
    """Whether it may copy host memory to a device with a queue."""
    takes_capsules: bool = False
    """Whether it takes arrays by capsules of DLPack alone."""
    reads: bool = False
    """Whether it reads an array's values into Python's own objects."""
    position: int = 0
    """The place of the array among the arguments."""
    is_launch: bool = False
    """Whether it launches a kernel, which converts each of the arguments."""
    compiles: bool = False
    """Whether it returns compiled functions that take host arrays as arguments."""


NO_PROBE = (
    Target("torch", "torch.Tensor", "__new__", "torch.Tensor(x)", takes=True, position=1),
    Target(
        *("torch", "torch.Tensor", "new_tensor", "t.new_tensor(x)"),
        is_method=True,
        takes=True,
        position=1,
    ),
    Target(
        *("torch", "torch.Tensor", "copy_", "t.copy_(x)"),
        is_method=True,
        gives=True,
        is_move=True,
        uploads=True,
        position=1,
    ),
    Target(
        *("numba", "numba.cuda.dispatcher._LaunchConfiguration", "__call__", "kernel[…](x)"),
        is_method=True,
        takes=True,
        is_launch=True,
    ),
    Target("jax", "jax", "jit", "jax.jit(f)(x)", compiles=True),
    Target(  # by which as_numpy_iterator() of a dataset converts
        *("tensorflow", "tensorflow.__internal__.EagerTensor", "_numpy", "x._numpy()"),
        is_method=True,
        gives=True,
    ),
)
"""Functions that convert and that no measurement needs."""

UNSEEN = {
    "torch": (
        *("torch.FloatTensor(a)", "torch.stack([x, x])", "x.clone()", "x.contiguous()"),
        *("x.double()", "x.to(torch.float64)", "x.copy_(x)"),
    ),
    "jax": ("jnp.add(a, 1)", "a + x", "numpy.add(x, 1)", "jax.vmap(f)(a)"),
    "tensorflow": ("tf.add(a, 1)", "a + x", "tf.function(f)(a)", "tf.Variable(a)"),
    "onnxruntime": ("session.run(…)",),
}
"""Forms that convert or copy and have no row, by the framework in which they occur."""
ALWAYS_UNSEEN = ("a.copy()", "a.astype(t)", "a[indices]", "frame.values")
"""Copies of NumPy and pandas, which occur with any framework."""


def declared() -> list[Target]:
    """Return the targets of all probes, each once, and the forms that no probe has."""
    frameworks = {probe.module: probe.name for probe in reversed(ALL)}
    found: dict[tuple[str, str], Target] = {}
    for probe in ALL:
        for target in (*_export_targets(probe, frameworks), *_import_targets(probe, frameworks)):
            key = target.owner, target.name
            found[key] = _merged(found[key], target) if key in found else target
    reads = [
        Target(probe.name, owner, name, text, is_method=True, gives=True, reads=True)
        for probe in ALL
        if probe.name != "numpy" and (owner := array_type_name(probe))  # NumPy's never wait
        for name, text in READS.items()
    ]
    return [*found.values(), *reads, *NO_PROBE]


def _merged(target: Target, other: Target) -> Target:
    first, second = vars(target), vars(other)
    either = {name: first[name] or second[name] for name in EITHER}
    both = {name: first[name] and second[name] for name in ("is_move", "takes_capsules")}
    return replace(target, **either, **both)


def _export_targets(probe: type[Probe], frameworks: Mapping[str, str]) -> Iterator[Target]:
    """Yield the targets of the exports: methods of the array, and functions of any framework."""
    for export in probe.exports:
        method = METHODS.get(export.protocol)
        if method is not None and export.code == "{x}":
            yield from _method(probe, method)
        for call in _calls(export.code):  # a method of the array, or of a result of such a method
            if ast.unparse(call.func).startswith("_x_."):
                yield from _method(probe, call.func.attr, is_move=call.func.attr == "to")
        yield from _functions(probe, export.code, (export.protocol,), frameworks)


def _import_targets(probe: type[Probe], frameworks: Mapping[str, str]) -> Iterator[Target]:
    """Yield the targets of the imports: functions, and methods of a result that move it."""
    for way in probe.imports:
        uploads = way.promise != "view" and "cuda" in probe.devices
        yield from _functions(
            probe, way.code, way.protocols, frameworks, way.setup, is_import=True, uploads=uploads
        )
        for call in _calls(way.code):
            if isinstance(call.func, ast.Attribute):
                for name, is_move in MOVES.get(call.func.attr, ()):
                    yield from _method(probe, name, is_move, uploads=True)


def _method(
    probe: type[Probe], name: str, is_move: bool = False, uploads: bool = False
) -> Iterator[Target]:
    array_type = array_type_name(probe)
    if array_type:
        yield Target(
            probe.name,
            array_type,
            name,
            f"{ARRAY}.{name}()",
            is_method=True,
            gives=True,
            is_move=is_move,
            uploads=uploads,
        )


def _functions(
    probe: type[Probe],
    code: str,
    protocols: Iterable[Protocol],
    frameworks: Mapping[str, str],
    setup: str = "",
    is_import: bool = False,
    uploads: bool = False,
) -> Iterator[Target]:
    """Yield the functions of modules that ``code`` calls with the array as an argument.

    ``uploads`` is true if ``code`` may copy host memory to a device.
    """
    modules = {**_imported(probe.setup), **_imported(setup)}
    for index, call in enumerate(_calls(code)):  # the outermost is the first
        name = ast.unparse(call.func)
        names = name.split(".")
        takes_array = "_x_" in map(ast.unparse, call.args)
        if not takes_array or "(" in name or len(names) == 1 or names[0] not in modules:
            continue
        owner = ".".join((modules[names[0]], *names[1:-1]))
        framework = frameworks.get(owner.partition(".")[0], probe.name)
        yield Target(
            framework,
            owner,
            names[-1],
            f"{name}({ARRAY})",
            gives=framework == probe.name and code in {export.code for export in probe.exports},
            takes=framework != probe.name or code in {way.code for way in probe.imports},
            takes_buffers=Protocol.BUFFER in protocols or "frombuffer" in names[-1],
            uploads=uploads and index == 0 and not HOST_ONLY.isdisjoint(protocols),
            takes_capsules=is_import
            and Protocol.DLPACK in protocols
            and {*protocols} <= {Protocol.DLPACK, Protocol.DLPACK_CAPSULE},
        )


def array_type_name(probe: type[Probe]) -> str:
    """Return the dotted name of the class of a framework's arrays; empty if none is declared."""
    name = probe.array_type
    is_own = name.partition(".")[0] == probe.module.partition(".")[0]
    return name if is_own and all(part.isidentifier() for part in name.split(".")) else ""


def _calls(code: str) -> list[Any]:
    text = code.format(x="_x_", dtype="float32", shape="(1,)")
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]


def _imported(setup: str) -> dict[str, str]:
    """Return the names that a setup's imports bind to modules."""
    found = {}
    for node in ast.parse(setup).body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                found[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom):
            found.update({a.asname or a.name: f"{node.module}.{a.name}" for a in node.names})
    return found
