"""A framework with one import for each kind of bad luck, and two that work."""

import runpy
from pathlib import Path

from dlprof.probes.base import Import, Protocol

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]

SETUP = """
import ctypes, os, sys, threading, time

def crash(x):
    ctypes.string_at(0)

def leave(x):
    os._exit(0)

def hang(x):
    ctypes.PyDLL(None).sleep(3600)  # with the GIL

def refuse(x):
    raise TypeError("this framework does not take that")

def flood(x):
    os.write(1, b"out" * 100_000)
    os.write(2, b"err" * 100_000)
    return type(x).from_buffer_copy(x)

def fork_a_child_that_stays(x):
    if os.fork() == 0:
        time.sleep(3600)
    return type(x).from_buffer_copy(x)

def start_threads(x):
    thread = threading.Thread(target=time.sleep, args=(3600,), daemon=True)
    if threading.active_count() < 8:
        thread.start()
    return type(x).from_buffer_copy(x)

def write_into_every_pipe(x):
    for fd in range(3, 32):
        try:
            os.write(fd, b'\\n[]\\nnull\\n{"id": []}\\n' + b"[" * 50_000 + b"\\n\\xff\\xfe\\n")
            os.write(fd, b'{"id": 1, "part": "values"}\\n{"id": 1, "part": "failed"}\\n')
        except OSError:
            pass
    return type(x).from_buffer_copy(x)

calls = {}

def later(x, act):
    # Everything before the timed loop needs fewer calls, the timed loop needs many more.
    calls[act] = calls.get(act, 0) + 1
    return act(x) if calls[act] > 50 else type(x).from_buffer_copy(x)
"""

AT_ONCE = (
    *("crash", "leave", "hang", "flood"),
    *("fork_a_child_that_stays", "start_threads", "write_into_every_pipe"),
)
LATER = ("crash", "refuse")


class Unlucky(Fake):
    name = "unlucky"
    aliases = ()
    setup = SETUP
    imports = (
        *Fake.imports,
        *(Import(name, (Protocol.NATIVE,), name + "({x})") for name in AT_ONCE),
        *(Import(f"later_{name}", (Protocol.NATIVE,), f"later({{x}}, {name})") for name in LATER),
    )
