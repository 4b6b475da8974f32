"""The fake framework, whose documentation promises a copy where it gives a view."""

import runpy
from pathlib import Path

from dlprof.probes.base import Import, Protocol

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]


class Liar(Fake):
    name = "liar"
    aliases = ()
    imports = (
        Import("take", (Protocol.NATIVE,), "type({x}).from_buffer({x})", promise="copy"),
        Fake.imports[1],
    )
