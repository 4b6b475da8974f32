"""Host memory without a framework, which programs fill before a framework takes it in.

Such memory is bytes without shape and dtype; the import says both. So its probes answer neither.
The values are made in blocks, so that no second array of their size is ever alive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dlprof.probes.base import (
    BITS,
    BUFFER,
    DTYPES,
    NUMPY,
    ArraySpec,
    Export,
    Unsupported,
    corners,
    numbers,
)
from dlprof.probes.numpy import HostArrays

BLOCK_BYTES = 1 << 20
_VALUES = "numpy.frombuffer({x}, dtype='{dtype}')"
_FILL = """\
view, at = memoryview({memory}).cast('B'), 0
for piece in pieces:
    view[at:at + len(piece)] = piece
    at += len(piece)
view.release()
del view, pieces, block
"""


class HostMemory(HostArrays):
    """The common part of all kinds: the buffer protocol, and the values as bytes."""

    distributions: ClassVar[tuple[str, ...]] = ()
    setup = "import numpy"
    layouts: ClassVar[tuple[str, ...]] = ("C",)
    host_text = _VALUES
    exports: ClassVar[tuple[Export, ...]] = (
        Export("buffer", BUFFER, "{x}"),
        Export("frombuffer", NUMPY, f"{_VALUES}.reshape({{shape}})", promise="view"),
    )

    def create(self, spec: ArraySpec) -> str:
        if spec.layout not in self.layouts:
            raise Unsupported(f"{self.name} has no layout {spec.layout}")
        if spec.elements == 0:
            raise Unsupported(f"{self.name} without bytes has nothing to convert")
        if spec.dtype in BITS:
            raise Unsupported(f"NumPy, which makes the values, has no dtype {spec.dtype}")
        return pieces(spec) + self.memory(spec)

    def memory(self, spec: ArraySpec) -> str:
        """Return source text that makes ``x`` of ``pieces``."""
        raise NotImplementedError

    def host_array(self, array: Any) -> Any:
        import numpy as np

        return np.frombuffer(array, dtype=np.uint8)

    def to_numpy(self, array: Any) -> Any:
        return self.host_array(array)

    def shape(self, array: Any) -> tuple[int, ...] | None:
        return None

    def dtype(self, array: Any) -> str | None:
        return None

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        found = super().idioms(device, dtype)
        return {name: text for name, text in found.items() if name not in ("shape", "dtype")}


def pieces(spec: ArraySpec) -> str:
    """Return source text that makes ``pieces``: bytes that together are the values of ``spec``."""
    if spec.corners:
        return f"pieces = [{corners(spec.dtype).text(spec.elements)}.tobytes()]\nblock = None\n"
    pattern = numbers(spec)
    period_bytes = pattern.modulus * DTYPES[spec.dtype]
    periods = max(1, BLOCK_BYTES // period_bytes)
    whole, remainder = divmod(spec.size_bytes, periods * period_bytes)
    return (
        f"block = ((numpy.arange({pattern.modulus}) + {pattern.offset!r}){pattern.times})"
        f".astype('{spec.dtype}').tobytes() * {periods}\n"
        f"pieces = [block] * {whole} + [block[:{remainder}]]\n"
    )


class Bytes(HostMemory):
    name = "bytes"
    module = "builtins"
    immutable = True
    layouts = ("C", "readonly")

    def create(self, spec: ArraySpec) -> str:
        if spec.size_bytes == 1:
            raise Unsupported("a single byte is an object that all of the interpreter shares")
        return super().create(spec)

    def memory(self, spec: ArraySpec) -> str:
        return "x = b''.join(pieces)\ndel pieces, block\n"


class ByteArray(HostMemory):
    name = "bytearray"
    module = "builtins"

    def memory(self, spec: ArraySpec) -> str:
        return "x = bytearray().join(pieces)\ndel pieces, block\n"


class Array(HostMemory):
    name = "array"
    aliases = ("array.array",)
    module = "array"
    setup = "import array\nimport numpy"

    def memory(self, spec: ArraySpec) -> str:
        # Their letters are NumPy's; array.array refuses the letter of a dtype that it lacks.
        code = f"numpy.dtype('{spec.dtype}').char"
        text = f"x = array.array({code}, [0]) * {spec.elements}\n"
        return text + _FILL.format(memory="x")


class Mmap(HostMemory):
    """A mapping of a file that was just written, so that its pages are in memory."""

    name = "mmap"
    module = "mmap"
    setup = "import mmap\nimport numpy\nimport tempfile"
    layouts = ("C", "aligned", "readonly")

    def memory(self, spec: ArraySpec) -> str:
        access = "ACCESS_READ" if spec.layout == "readonly" else "ACCESS_WRITE"
        return (
            "with tempfile.TemporaryFile() as file:\n"
            "    file.writelines(pieces)\n"
            "    file.flush()\n"
            f"    x = mmap.mmap(file.fileno(), {spec.size_bytes}, access=mmap.{access})\n"
            # A page that was never looked at is no page of this process yet.
            "numpy.frombuffer(x, dtype='uint8')[::mmap.PAGESIZE].max()\n"
            "del file, pieces, block\n"
        )


class ArrowBuffer(HostMemory):
    """A buffer of Arrow's own memory pool."""

    name = "pyarrow-buffer"
    module = "pyarrow"
    distributions = ("pyarrow",)
    setup = "import numpy\nimport pyarrow"
    layouts = ("C", "aligned", "readonly")

    def memory(self, spec: ArraySpec) -> str:
        text = f"x = pyarrow.allocate_buffer({spec.size_bytes})\n" + _FILL.format(memory="x")
        return text + ("x = pyarrow.py_buffer(bytes(x))\n" if spec.layout == "readonly" else "")


HOST: tuple[type[HostMemory], ...] = (Bytes, ByteArray, Array, Mmap, ArrowBuffer)
