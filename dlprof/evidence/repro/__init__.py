"""One finding as one Python file that shows it by itself, for whoever has the frameworks.

The file needs the frameworks of its case and the standard library. It ends with exit code 1 where
the problem is there, 0 where it is gone and 2 where it cannot tell. Each module has one kind of
effect; :mod:`.effects` says which rule shows by which.
All of it is a pure function of a session: nothing is run or imported.
"""

from __future__ import annotations

from dlprof.evidence.repro.effects import EFFECTS
from dlprof.evidence.repro.program import Reproducer, reproducer

__all__ = ["EFFECTS", "Reproducer", "reproducer"]
