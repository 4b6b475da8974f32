"""Put wrappers in place, at once or when a framework is imported, and take them out again."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, update_wrapper
from operator import attrgetter
from types import ModuleType, SimpleNamespace
from typing import Any

from dlprof.tracer import calls
from dlprof.tracer.arrays import leaves, resolved
from dlprof.tracer.calls import Tracer, make
from dlprof.tracer.place import carried
from dlprof.tracer.rows import NO_LINE
from dlprof.tracer.targets import Target, declared

DEEPEST = 4
"""Levels of a framework's public modules that are searched for other names of a function."""
COMPILER = "torch._dynamo"
TABLES = (
    ("trace_rules", "get_torch_obj_rule_map"),
    ("variables.misc", "get_np_to_tnp_map"),
    ("variables.torch", "TorchInGraphFunctionVariable._get_handlers"),
)
"""Tables of functions that torch's compiler makes when it first needs them."""
SCRIPTS = "torch.jit._builtins"
"""Has a table of functions by their ids for ``torch.jit.script``, made at its import."""
THREADS = "asyncio.threads"
FRAME = "f_code", "f_lasti", "f_lineno", "f_globals", "f_back"
MISSING = object()
FILE = calls.__file__
RUNNERS = tuple(os.path.join(os.path.dirname(FILE), name) for name in ("program.py", "__main__.py"))  # noqa: PTH118, PTH120
"""Files of the frames below the first one of a program."""
CALLS_FILTER = "always", None, Warning, re.compile(re.escape(calls.__name__) + "$"), 0
"""A warnings filter that lets the wrappers' warnings through."""


class Installed:
    """The wrappers of one tracer. ``everywhere`` also replaces names in other modules."""

    def __init__(self, tracer: Tracer, everywhere: bool = False) -> None:
        self._tracer, self._everywhere = tracer, everywhere
        self._waiting: dict[str, list[Target]] = defaultdict(list)
        for target in declared():
            self._waiting[target.owner.partition(".")[0]].append(target)
        self._open_imports: set[str] = set()
        """Modules that are being imported."""
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        """Owner, name, the value before, and the value now."""
        self._originals: dict[int, tuple[Any, Any]] = {}
        """By the id of a function: the function and its wrapper."""

    def start(self) -> None:
        """Wrap imported modules now, and others when they are imported."""
        sys.meta_path.insert(0, self)
        self._warnings = Warnings()
        if THREADS in sys.modules:
            self._carry_lines()
        if COMPILER in sys.modules:
            self._compiler_imported()
        for root in list(self._waiting):
            if root in sys.modules:
                self._imported(root)

    def stop(self) -> None:
        """Put everything back."""
        self._warnings.stop()
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._take_out()
        self._replaced.clear()
        if self._everywhere:  # modules imported in the meantime hold wrappers
            wrappers = {id(wrapper): original for original, wrapper in self._originals.values()}
            for module in _outside_modules(""):
                for name, value in list(_namespace(module).items()):
                    if id(value) in wrappers:
                        _namespace(module)[name] = wrappers[id(value)]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of the other finders, with calls around the module's execution."""
        root = name.partition(".")[0]
        if name == COMPILER:
            before, after = self._take_out, self._compiler_imported
        elif name == THREADS:
            before, after = (lambda: None), self._carry_lines
        elif any(f"{item.owner}.".startswith(f"{name}.") for item in self._waiting.get(root, ())):
            before, after = partial(self._open_imports.add, name), partial(self._executed, name)
        else:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                _call_around(spec.loader, before, after)
                return spec
        return None

    def _executed(self, name: str) -> None:
        self._open_imports.discard(name)
        root = name.partition(".")[0]
        if root not in self._open_imports:
            self._imported(root)

    def _take_out(self) -> None:
        for owner, name, before, _ in reversed(self._replaced):
            if before is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

    def _compiler_imported(self) -> None:
        """Put wrappers back when the tables of torch's compiler have the originals."""
        for module, name in TABLES:
            with suppress(KeyError, AttributeError):  # versions have other tables
                attrgetter(name)(sys.modules[f"{COMPILER}.{module}"])()
        rules: Any = sys.modules.get(f"{COMPILER}.trace_rules", object)
        for found in list(vars(rules).values()):
            if type(found).__name__ == "FunctionIdSet":
                found()
        with suppress(AttributeError):  # it would compile the wrappers, and warn
            rules.add("dlprof")
        for owner, name, _, value in self._replaced:
            setattr(owner, name, value)

    def _carry_lines(self) -> None:
        """Let calls by ``asyncio.to_thread`` stand on the line that makes them."""
        original = sys.modules[THREADS].to_thread

        def to_thread(*args: Any, **kwargs: Any) -> Any:
            frame: Any = sys._getframe(1)  # noqa: SLF001 - CPython's own way
            # A copy: the frame goes on before the thread calls.
            caller = SimpleNamespace(**{name: getattr(frame, name) for name in FRAME})
            return original(carried, caller, *args, **kwargs)

        wrapper = update_wrapper(to_thread, original)
        self._originals[id(original)] = original, wrapper
        for name in (THREADS, "asyncio"):
            if hasattr(sys.modules[name], "to_thread"):
                self._replace(sys.modules[name], "to_thread", wrapper)

    def _imported(self, root: str) -> None:
        """Wrap a framework's functions that exist by now. An error does not fail the import."""
        self._tracer.lines.start()
        try:
            self._wrap(root)
        except Exception as error:  # noqa: BLE001 - the program goes on
            self._tracer.rows.trouble(root, error)

    def _wrap(self, root: str) -> None:
        wrappers: dict[int, tuple[Any, Any]] = {}
        for target in list(self._waiting[root]):
            owner = resolved(target.owner)
            original = None if owner is None else getattr(owner, target.name, None)
            is_object = original is getattr(object, target.name, None)
            if is_object or isinstance(original, type) or not callable(original):
                continue
            self._waiting[root].remove(target)
            if self._place(owner, target, original):
                wrappers[id(original)] = self._originals[id(original)]
        for alias in self._aliases(root, wrappers) if wrappers else ():
            self._replace(*alias)
        table = getattr(sys.modules.get(SCRIPTS), "_builtin_table", None) or {}
        for place, (_, wrapper) in wrappers.items():
            if place in table:
                table[id(wrapper)] = table[place]

    def _place(self, owner: Any, target: Target, original: Any) -> bool:
        """Wrap one function. Return whether other names of it should be replaced as well."""
        if id(original) in self._originals:  # another target by another name
            self._replace(owner, target.name, self._originals[id(original)][1])
            return False
        if any(original is wrapper for _, wrapper in self._originals.values()):
            return False
        wrapper = (
            _counting_jit(original, self._tracer)
            if target.compiles
            else make(original, target, self._tracer)
        )
        if isinstance(owner, type) and not target.is_method:
            self._replace(owner, target.name, staticmethod(wrapper))
            return False
        if not self._replace(owner, target.name, wrapper) or target.is_method:
            return False
        self._originals[id(original)] = original, wrapper
        return True

    def _replace(self, owner: Any, name: str, value: Any) -> bool:
        before = vars(owner).get(name, MISSING)
        try:
            setattr(owner, name, value)
        except (AttributeError, TypeError):  # a type of C that is never changed
            return False
        self._replaced.append((owner, name, before, value))
        return True

    def _aliases(
        self, root: str, wrappers: dict[int, tuple[Any, Any]]
    ) -> Iterator[tuple[ModuleType, str, Any]]:
        """Yield other names of wrapped functions."""
        modules = dict.fromkeys(_public(sys.modules[root]))
        if self._everywhere:
            modules |= dict.fromkeys(_outside_modules(root))
        for module in modules:
            for name, value in list(_namespace(module).items()):
                found = wrappers.get(id(value))
                if found is not None and found[0] is value:
                    yield module, name, found[1]


def _counting_jit(original: Callable[..., Any], tracer: Tracer) -> Callable[..., Any]:
    """Return ``jax.jit``, whose functions count the NumPy arrays among their arguments.

    JAX converts them in code of C++, so there is no time, and no view or copy.
    """

    def jit(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if hasattr(made, "lower"):
            return _counted(made, tracer)
        return lambda function: _counted(made(function), tracer)  # jit(static_argnums=0)

    return update_wrapper(jit, original)


def _counted(function: Any, tracer: Tracer) -> Any:
    array_type = sys.modules["numpy"].ndarray

    def compiled(*args: Any, **kwargs: Any) -> Any:
        found = [x for x in leaves([*args, *kwargs.values()]) if type(x) is array_type]
        if found and tracer.is_active:
            _count(found, tracer)
        return function(*args, **kwargs)

    wrapper = update_wrapper(compiled, function)
    for name in dir(function):
        if not name.startswith("__"):
            setattr(wrapper, name, getattr(function, name))
    return wrapper


def _count(arrays: list[Any], tracer: Tracer) -> None:
    frame = tracer.places.line_frame(sys._getframe(2))  # noqa: SLF001 - CPython's own way
    place = (frame.f_code.co_filename, frame.f_lineno) if frame else (NO_LINE, 0)
    numbers = tracer.rows.arguments.setdefault(place, [0, 0])
    if not numbers[0]:
        taken = [(array.ctypes.data, array.nbytes) for array in arrays]
        for row in list(tracer.rows.rows.values()):
            row.is_argument |= any(map(row.gave, taken))
    numbers[0] += 1
    numbers[1] += sum(array.nbytes for array in arrays)
    tracer.rows.write_again()


def _call_around(loader: Any, before: Callable[[], None], after: Callable[[], None]) -> None:
    """Call ``before`` and ``after`` around the loader's execution of its module."""
    execute = getattr(loader, "exec_module", None)
    # A finder that asks the others, as numba-cuda's does, finds a loader twice.
    if execute is None or getattr(execute, "__module__", "") == __name__:
        return

    def executed(module: ModuleType) -> None:
        del loader.exec_module
        before()
        try:
            execute(module)
        finally:
            after()

    try:
        loader.exec_module = executed
    except AttributeError:
        return


def _public(module: ModuleType) -> Iterator[ModuleType]:
    """Yield a framework's module and the modules that its users reach by public names."""
    level, known, root = [module], {module}, module.__name__
    for _ in range(DEEPEST):
        yield from level
        names = [item for above in level for item in list(_namespace(above).items())]
        level = []
        for name, member in names:
            is_module = issubclass(type(member), ModuleType)  # isinstance would wake lazy objects
            if not is_module or name.startswith("_") or member in known:
                continue
            if str(_namespace(member).get("__name__")).partition(".")[0] == root:
                known.add(member)
                level.append(member)


def _namespace(module: ModuleType) -> dict[str, Any]:
    """Return the names of a module, without waking one that loads lazily."""
    found: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return found


def _outside_modules(root: str) -> Iterator[ModuleType]:
    """Yield the modules outside a framework: the user's, and those of packages."""
    for name, module in list(sys.modules.items()):
        if issubclass(type(module), ModuleType) and name.partition(".")[0] not in (root, "dlprof"):
            yield module


class Warnings:
    """Shows warnings of a traced call at the user's line, as without the tracer.

    A warning names a frame by its level, and one level is the wrapper's. Such a warning is given
    again at the line that called the wrapper, with the program's filters and registry.
    """

    def __init__(self) -> None:
        warnings.filters.insert(0, CALLS_FILTER)  # type: ignore[attr-defined]
        self._show = warnings._showwarnmsg  # type: ignore[attr-defined]  # noqa: SLF001
        warnings._showwarnmsg = self.show  # type: ignore[attr-defined]  # noqa: SLF001
        _filters_changed()

    def stop(self) -> None:
        with suppress(ValueError):
            warnings.filters.remove(CALLS_FILTER)  # type: ignore[attr-defined]
        if warnings._showwarnmsg == self.show:  # type: ignore[attr-defined]  # noqa: SLF001
            warnings._showwarnmsg = self._show  # type: ignore[attr-defined]  # noqa: SLF001
        _filters_changed()

    def show(self, message: Any) -> None:
        if message.filename in RUNNERS:
            message.filename, message.lineno = "sys", 1  # as Python does without a frame
        frame: Any = sys._getframe(1) if message.filename == FILE else None  # noqa: SLF001
        while frame is not None and frame.f_code.co_filename != FILE:
            frame = frame.f_back
        while frame is not None and frame.f_code.co_filename == FILE:
            frame = frame.f_back
        if frame is None:
            self._show(message)
            return
        # Both records would silence the warning when it is given again.
        vars(calls).pop("__warningregistry__", None)
        once = (str(message.message), message.category)
        getattr(warnings, "onceregistry", {}).pop(once, None)
        warnings.warn_explicit(
            message.message,
            message.category,
            frame.f_code.co_filename,
            frame.f_lineno,
            frame.f_globals.get("__name__") or "<sys>",
            frame.f_globals.setdefault("__warningregistry__", {}),
            None,
            message.source,
        )


def _filters_changed() -> None:
    """Make :mod:`warnings` forget what it decided by earlier filters."""
    getattr(warnings, "_filters_mutated", lambda: None)()
