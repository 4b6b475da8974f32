"""Run a program as Python does, and trace the processes that it starts."""

from __future__ import annotations

import atexit
import builtins
import functools
import itertools
import json
import os
import runpy
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from multiprocessing import util
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any

from dlprof.tracer.calls import Tracer
from dlprof.tracer.install import Installed
from dlprof.tracer.place import Places
from dlprof.tracer.rows import Rows

FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - few imports
MAIN = os.path.join(FOLDER, "__main__.py")  # noqa: PTH118
ENDS = ("_exit", "abort", "execv", "execve")
"""Functions of ``os`` that end a process or its program at once."""
POOLS = ("multiprocessing.pool", "torch.multiprocessing.pool")
STARTS = ("from multiprocessing.spawn", "from multiprocessing.forkserver")
"""Beginnings of the text that a new process of :mod:`multiprocessing` runs."""
BEGIN = """\
import sys
path = sys.path[:]
sys.path[:] = [*filter(None, path), {root!r}]
from dlprof.tracer.program import start
start(*{arguments!r})
sys.path[:] = path
del path, start
"""
"""Text put before it. No file of the working folder takes the place of a standard module."""
FLAGS = frozenset(("-u", "-B", "-O", "-OO", "-b", "-d", "-q", "-v"))
"""Options of Python that do not change where dlprof is found."""


def start(folder: str, include: tuple[str, ...] = (), events: bool = False) -> Tracer:
    """Trace this process from now on, and the Python programs that it starts."""
    tracer = Tracer(Places(include), Rows(folder, events))
    Installed(tracer).start()
    atexit.register(tracer.finish)
    os.register_at_fork(after_in_child=functools.partial(_begin_child, tracer))
    for name in ENDS:
        setattr(os, name, _finish_first(tracer, getattr(os, name)))
    _follow_pools(tracer)
    _follow_spawned((folder, include, events))
    _follow_programs({"folder": folder, "include": include, "events": events})
    tracer.rows.write()  # later it may not be allowed to
    return tracer


def _begin_child(tracer: Tracer) -> None:
    """Write a file at once: a child may be killed before it would write its first."""
    tracer.begin_again()
    if sys._getframe(1).f_code.co_filename != subprocess.__file__:  # noqa: SLF001 - else it becomes another program
        tracer.rows.write()


def _finish_first(tracer: Tracer, end: Callable[..., Any]) -> Callable[..., Any]:
    def finish_and_end(*args: Any, **kwargs: Any) -> Any:
        tracer.finish()
        try:
            return end(*args, **kwargs)
        finally:  # there is no such program
            tracer.rows.has_ended = False

    functools.update_wrapper(finish_and_end, end)
    finish_and_end.__module__ = os.__name__  # where it is replaced, and so found by a pickle
    return finish_and_end


def _follow_pools(tracer: Tracer) -> None:
    """Write the counts of a pool's worker before the pool ends it by a signal."""
    original = BaseProcess._bootstrap  # type: ignore[attr-defined]  # noqa: SLF001

    def end(number: int, _: object) -> None:
        tracer.finish()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    def bootstrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        is_worker = getattr(self._target, "__module__", "") in POOLS
        if is_worker and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, end)
        return original(self, *args, **kwargs)

    BaseProcess._bootstrap = functools.wraps(original)(bootstrap)  # type: ignore[attr-defined]  # noqa: SLF001


def _follow_spawned(arguments: tuple[object, ...]) -> None:
    """Processes that ``multiprocessing`` starts anew begin with the tracer."""
    original = util.spawnv_passfds
    begin = BEGIN.format(root=os.path.dirname(os.path.dirname(FOLDER)), arguments=arguments)  # noqa: PTH120

    def spawned(path: Any, words: Any, descriptors: Any) -> int:
        words, is_found = list(words), os.fsdecode(path) == sys.executable
        for index, word in enumerate(words):
            # The process that tracks resources runs no code of the program.
            if is_found and str(word).startswith(STARTS):
                words[index] = begin + word
        return int(original(path, words, descriptors))

    util.spawnv_passfds = spawned  # type: ignore[assignment]


def _follow_programs(options: dict[str, object]) -> None:
    """Trace what :mod:`subprocess` starts in this interpreter, as ``torchrun`` does."""
    original = subprocess.Popen.__init__

    def init(self: Any, args: Any, *positional: Any, **kwargs: Any) -> None:
        is_plain = not (positional[1:] or kwargs.get("executable") or kwargs.get("shell"))
        words = traced_words(args, options) if is_plain else args
        original(self, words, *positional, **kwargs)
        self.args = args  # as errors name it

    subprocess.Popen.__init__ = functools.wraps(original)(init)  # type: ignore[method-assign]


def traced_words(args: Any, options: dict[str, object]) -> Any:
    """Return ``python script.py ...`` as the tracer runs it, and anything else as it is."""
    if not isinstance(args, (list, tuple)) or not args or args[0] != sys.executable:
        return args
    index = 1
    while index < len(args) and args[index] in FLAGS:
        index += 1
    as_module = args[index : index + 1] in (["-m"], ("-m",))
    program = args[index + as_module :]
    if not program or str(program[0]).startswith("-"):
        return args
    return [*args[:index], MAIN, json.dumps({**options, "as_module": as_module}), *program]


def run(words: list[str], as_module: bool) -> None:
    """Run the script or module ``words[0]`` with its arguments, as ``python`` would."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    sys.argv[:] = words
    try:
        if as_module:
            sys.path[0] = os.getcwd()  # noqa: PTH109 - as Python has it
            runpy._run_module_as_main(words[0])  # type: ignore[attr-defined]  # noqa: SLF001
        else:
            _run_script(words[0], main)
    except SystemExit:
        raise
    except BaseException:
        _hide_frames()
        raise


def _run_script(path: str, main: types.ModuleType) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(path))  # noqa: PTH120
    path = os.path.abspath(path)  # noqa: PTH100
    with open(path, "rb") as file:  # noqa: PTH123
        text = file.read()
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    main.__dict__["__cached__"] = None
    code = compile(text, path, "exec", dont_inherit=True)  # without this file's future
    exec(code, main.__dict__)  # noqa: S102 - it is the program


def _hide_frames() -> None:
    """Call the program's ``sys.excepthook`` without the tracer's frames, and once."""
    original: Callable[..., Any] = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.excepthook = original
        frames = [*_frames(trace)]
        for frame, after in itertools.pairwise([*frames, None]):
            frame.tb_next = after
        error.__traceback__ = sys.last_traceback = frames[0] if frames else None
        original(kind, error, error.__traceback__)

    sys.excepthook = hook


def _frames(trace: TracebackType | None) -> Iterator[Any]:
    """Yield the program's own frames of a traceback."""
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(FOLDER):
            yield trace
        trace = trace.tb_next
