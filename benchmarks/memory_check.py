"""Decide view or copy without dlprof; ``truth.py`` runs this program.

It reads lines of JSON, ``[producer, consumer, code, shape, layout]``. For each it makes the array
and converts it. Then it inverts the first and the last element at the producer's address, and reads
them at the consumer's. The answer is a line, ``{"verdict": "view"}``, ``{"verdict": "copy"}`` or
``{"refused": reason}``.
"""

from __future__ import annotations

import ctypes
import json
import math
import sys
from typing import Any

SETUP = {
    "numpy": "import numpy",
    "torch": "import torch",
    "tensorflow": "import tensorflow as tf, numpy",
    "jax": "import jax, jax.numpy as jnp, numpy",
    "onnxruntime": "import onnxruntime, numpy",
}

# Make "x" of "n" elements: on a 64-byte boundary if "off" is 0, one element after it if "off" is 1.
# JAX and ONNX Runtime have only arrays on the boundary.
MAKE = {
    "numpy": (
        "r = numpy.zeros(4 * n + 128, 'uint8')\n"
        "o = -r.ctypes.data % 64 + 4 * off\n"
        "x = r[o:o + 4 * n].view('float32').reshape(shape)"
    ),
    "torch": "x = torch.zeros(n + 1)[off:n + off].reshape(shape)",
    "tensorflow": "x = tf.reshape(tf.zeros(n + 1)[off:n + off] if off else tf.zeros(n), shape)",
    "jax": "x = jnp.zeros(n).reshape(shape).block_until_ready()",
    "onnxruntime": (
        "x = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, numpy.float32, 'cpu', 0)\n"
        "x.update_inplace(numpy.zeros(shape, 'float32'))"
    ),
}


def address(framework: str, array: Any) -> int:
    """Return the address of the first element."""
    if framework == "torch":
        return int(array.data_ptr())
    if framework == "jax":
        return int(array.block_until_ready().unsafe_buffer_pointer())
    if framework == "onnxruntime":
        return int(array.data_ptr())
    if framework == "tensorflow":
        import numpy as np

        return int(np.asarray(memoryview(array)).ctypes.data)
    return int(array.ctypes.data)


def verdict(producer: str, consumer: str, code: str, shape: list[int], layout: str) -> str:
    """Return ``view`` or ``copy``. Raises whatever the frameworks raise."""
    elements, offset = math.prod(shape), int(layout == "sliced")
    names: dict[str, Any] = {"n": elements, "off": offset, "shape": tuple(shape)}
    for text in (SETUP[producer], SETUP[consumer], MAKE[producer]):
        exec(text, names)
    source = address(producer, names["x"])
    if (source % 64 != 0) != bool(offset):
        raise RuntimeError(f"{producer} has no {layout} arrays")
    result = eval(code, names)
    target = address(consumer, result)
    changed = [_shows(source + at, target + at) for at in (0, 4 * (elements - 1))]
    if all(changed) != any(changed):
        raise RuntimeError("one end of the array is shared, the other is not")
    return "view" if all(changed) else "copy"


def _shows(written: int, watched: int) -> bool:
    before = ctypes.string_at(watched, 4)
    word = ctypes.c_uint32.from_address(written)
    word.value ^= 0xFFFFFFFF
    try:
        return ctypes.string_at(watched, 4) != before
    finally:
        word.value ^= 0xFFFFFFFF


def main() -> None:
    for line in sys.stdin:
        try:
            answer = {"verdict": verdict(*json.loads(line))}
        except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
            answer = {"refused": f"{type(refusal).__name__}: {refusal}"}
        print("\n" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
