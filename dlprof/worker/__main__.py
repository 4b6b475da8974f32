"""Start of a worker: ``python .../dlprof/worker/__main__.py REQUESTS_FD REPLIES_FD``.

Runs under any interpreter, also without dlprof: only the folder of this package becomes importable,
and its ``__init__`` does not run. So nothing else of the parent's environment leaks in. A Python
that dlprof cannot measure, even Python 2, can read this file and say so.
"""

import sys

OLDEST = (3, 10)
SET_PARENT_DEATH_SIGNAL = 1

if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit("Python " + sys.version.split()[0] + " is too old: dlprof measures 3.10 and newer")
    # Python puts this folder first in sys.path; names such as values.py must not shadow anything.
    if not getattr(sys.flags, "safe_path", False):
        sys.path.pop(0)
    import ctypes
    import faulthandler
    import signal

    faulthandler.enable()  # no option on the command line: Python 2 would not even start
    # The parent may be killed while this process is inside a framework that hangs and never looks
    # at the pipe again. Linux only; elsewhere the pipe has to do.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    from pathlib import Path
    from types import ModuleType

    package = ModuleType("dlprof")
    package.__path__ = [str(Path(__file__).absolute().parent.parent)]
    sys.modules["dlprof"] = package

    from dlprof.worker.serve import serve

    serve(int(sys.argv[1]), int(sys.argv[2]))
