"""A framework whose names and messages are GitHub workflow commands."""

import runpy
from pathlib import Path

from dlprof.probes.base import Export, Import, Protocol

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]

SAID = "::error::x\n  ::set-output name=a::b\n##[error]y"
SETUP = f"""
import ctypes, os

SAID = {SAID!r}

def refuse(x):
    raise TypeError(SAID)

def refuse_by_name(x):
    raise type(SAID, (Exception,), {{}})(SAID)

def crash(x):
    for stream in (1, 2):
        os.write(stream, b"\\n" + SAID.encode() + b"\\n")
    os._exit(3)

def leave(x):
    raise SystemExit(SAID)

def warn(x):
    import warnings
    warnings.warn(SAID)
    print(SAID, flush=True)
    return type(x).from_buffer(x)
"""
CALLS = ("refuse", "refuse_by_name", "crash", "leave", "warn")


class Commands(Fake):
    name = "commands"
    aliases = ()
    setup = SETUP
    exports = (Export("::error::x ##[error]", Protocol.NATIVE, "{x}"),)
    imports = tuple(
        Import(f"::error::{name}", (Protocol.NATIVE,), f"{name}({{x}})") for name in CALLS
    )
