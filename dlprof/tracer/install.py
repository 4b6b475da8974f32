"""Put wrappers in place, at once or when a framework is imported, and take them out again."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from operator import attrgetter
from types import ModuleType
from typing import Any

from dlprof.tracer.arrays import resolved
from dlprof.tracer.state import Tracer
from dlprof.tracer.targets import Target, declared
from dlprof.tracer.warned import WarnedAt
from dlprof.tracer.wrappers import make

DEEPEST = 4
"""Levels of a framework's public modules that are searched for other names of a function."""
COMPILER = "torch._dynamo"
TABLES = (
    ("trace_rules", "get_torch_obj_rule_map"),
    ("variables.misc", "get_np_to_tnp_map"),
    ("variables.torch", "TorchInGraphFunctionVariable._get_handlers"),
)
"""Where torch's compiler looks functions up, made at its first look."""
SCRIPTS = "torch.jit._builtins"
"""Where the compiler of ``torch.jit.script`` looks functions up by their ids, in a table made when
torch is imported."""
MISSING = object()


class Installed:
    """The wrappers of one tracer. ``everywhere`` also replaces what other modules took out."""

    def __init__(self, tracer: Tracer, everywhere: bool = False) -> None:
        self._tracer, self._everywhere = tracer, everywhere
        self._waiting: dict[str, list[Target]] = defaultdict(list)
        for target in declared():
            self._waiting[target.root].append(target)
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        """Owner, name, what was there before, and what is there now."""
        self._originals: dict[int, tuple[Any, Any]] = {}
        """By the id of a function: the function and its wrapper."""
        self._kept: list[Any] = []
        """Wrappers that a table knows by their ids."""

    def start(self) -> None:
        """Wrap what is imported, and see what will be."""
        sys.meta_path.insert(0, self)
        self._warned = WarnedAt()
        for root in list(self._waiting):
            if root in sys.modules:
                self._imported(root)

    def stop(self) -> None:
        """Everything as it was."""
        self._warned.stop()
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._take_out()
        self._replaced.clear()
        if self._everywhere:
            self._take_out_of_new_modules()

    def _take_out_of_new_modules(self) -> None:
        """What was imported meanwhile has taken wrappers out of the frameworks."""
        wrappers = {id(wrapper): original for original, wrapper in self._originals.values()}
        for module in _others(""):
            for name, value in list(_namespace(module).items()):
                if id(value) in wrappers:
                    _namespace(module)[name] = wrappers[id(value)]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec that the other finders give, with a call when the module was executed."""
        root = name.partition(".")[0]
        if name == COMPILER:
            return self._found(name, path, target, self._compiler_imported, self._take_out)
        if root not in self._waiting or not self._is_awaited(name):
            return None
        return self._found(name, path, target, partial(self._imported, root))

    def _found(
        self,
        name: str,
        path: Any,
        target: Any,
        after: Callable[[], None],
        before: Callable[[], None] = lambda: None,
    ) -> Any:
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                _call_around(spec.loader, before, after)
                return spec
        return None

    def _take_out(self) -> None:
        """Everything as it was, for a while."""
        for owner, name, before, _ in reversed(self._replaced):
            if before is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

    def _compiler_imported(self) -> None:
        """Torch's compiler has looked for the functions that it knows, and found the originals."""
        for module, name in TABLES:
            with suppress(KeyError, AttributeError):  # versions have other tables
                attrgetter(name)(sys.modules[f"{COMPILER}.{module}"])()
        rules = vars(sys.modules.get(f"{COMPILER}.trace_rules", object))
        for found in list(rules.values()):
            if type(found).__name__ == "FunctionIdSet":
                found()
        for owner, name, _, value in self._replaced:
            setattr(owner, name, value)

    def _is_awaited(self, name: str) -> bool:
        return any(
            f"{one.owner}.".startswith(f"{name}.") for one in self._waiting[name.partition(".")[0]]
        )

    def _imported(self, root: str) -> None:
        """Wrap what is there by now of a framework. A failure is no failure of the import."""
        try:
            self._wrap(root)
        except Exception as error:  # noqa: BLE001 - the program goes on
            self._tracer.rows.trouble(root, error)

    def _wrap(self, root: str) -> None:
        module = sys.modules.get(root)
        spec = getattr(module, "__spec__", None)
        is_begun = getattr(spec, "_initializing", False) and not _is_done(spec)
        if module is None or is_begun:
            return
        made = {}
        for target in list(self._waiting[root]):
            owner = resolved(target.owner)
            original = None if owner is None else getattr(owner, target.name, None)
            if original is None or isinstance(original, type) or not callable(original):
                continue
            self._waiting[root].remove(target)
            if self._place(owner, target, original):
                made[id(original)] = self._originals[id(original)]
        if made:
            for other in self._aliases(module, made):
                self._replace(*other)
            self._tell_scripts(made)

    def _tell_scripts(self, made: dict[int, tuple[Any, Any]]) -> None:
        table = getattr(sys.modules.get(SCRIPTS), "_builtin_table", None) or {}
        for place, (_, wrapper) in made.items():
            if place in table:
                table[id(wrapper)] = table[place]
                self._kept.append(wrapper)  # no other object gets its id

    def _place(self, owner: Any, target: Target, original: Any) -> bool:
        """Wrap one; whether other names of it are to be replaced as well."""
        if id(original) in self._originals:  # another target by another name
            self._replace(owner, target.name, self._originals[id(original)][1])
            return False
        if any(original is wrapper for _, wrapper in self._originals.values()):
            return False
        wrapper = make(original, target, self._tracer)
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
        self, module: ModuleType, made: dict[int, tuple[Any, Any]]
    ) -> Iterator[tuple[ModuleType, str, Any]]:
        """Other names of wrapped functions."""
        modules = dict.fromkeys(_public(module))
        if self._everywhere:
            modules |= dict.fromkeys(_others(module.__name__))
        for other in modules:
            for name, value in list(_namespace(other).items()):
                found = made.get(id(value))
                if found is not None and found[0] is value:
                    yield other, name, found[1]


def _is_done(spec: Any) -> bool:
    return bool(getattr(spec.loader, "_dlprof_done", False))


def _call_around(loader: Any, before: Callable[[], None], after: Callable[[], None]) -> None:
    """Have the two called before and after the loader executes its module."""
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
            loader._dlprof_done = True  # noqa: SLF001 - the spec says so only after its import
            after()
        del loader._dlprof_done  # noqa: SLF001

    try:
        loader.exec_module = executed
    except AttributeError:
        return


def _public(module: ModuleType) -> Iterator[ModuleType]:
    """A framework's module and the modules that its users reach by public names."""
    level, seen, root = [module], {module}, module.__name__
    for _ in range(DEEPEST):
        yield from level
        level = [
            one
            for above in level
            for name, one in list(_namespace(above).items())
            if issubclass(type(one), ModuleType)  # isinstance would wake lazy objects
            and not name.startswith("_")
            and str(_namespace(one).get("__name__")).partition(".")[0] == root
            and one not in seen
            and not seen.add(one)  # type: ignore[func-returns-value]
        ]


def _namespace(module: ModuleType) -> dict[str, Any]:
    """The names of a module, without waking one that loads when it is asked."""
    found: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return found


def _others(root: str) -> Iterator[ModuleType]:
    """The modules outside the framework: the user's, and those of packages."""
    for name, module in list(sys.modules.items()):
        if issubclass(type(module), ModuleType) and name.partition(".")[0] not in (root, "dlprof"):
            yield module
