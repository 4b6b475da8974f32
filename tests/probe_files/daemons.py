"""A framework whose conversions leave a daemon: in its own session, and ignoring SIGTERM.

Each daemon writes its number into the file that ``DLPROF_TEST_DAEMONS`` names.
"""

import runpy
from pathlib import Path

from dlprof.probes.base import Import, Protocol

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]

DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(3600)
"""

SETUP = f"""
import ctypes, os, subprocess, sys, time
DAEMON = {DAEMON!r}
started = []

def daemon(x):
    if not started:
        started.append(os.environ["DLPROF_TEST_DAEMONS"])
        # Without the environment of the worker: no variable tells where it comes from.
        subprocess.run([sys.executable, "-c", DAEMON, *started], env={{}})
        while not os.path.exists(started[0]):
            time.sleep(0.01)
    return type(x).from_buffer_copy(x)

def daemon_and_crash(x):
    daemon(x)
    ctypes.string_at(0)
"""


class Daemons(Fake):
    name = "daemons"
    aliases = ()
    setup = SETUP
    imports = tuple(
        Import(name, (Protocol.NATIVE,), name + "({x})") for name in ("daemon", "daemon_and_crash")
    )
