"""Check by hand that what is taken out of an OrtValue over NumPy's memory dangles; needs no dlprof.

Each way out is tried in a process of its own, since the reading may kill it.
"""

import platform
import subprocess
import sys
from importlib.metadata import version

TRY = """
import gc, numpy, onnxruntime, torch
x = numpy.arange(16384, dtype="float32")
value = onnxruntime.OrtValue.ortvalue_from_numpy(x)
result = {code}
before = numpy.array(result)
del x, value
gc.collect()
kept = [numpy.full(16384, 7, "float32") for _ in range(64)]
print("changed" if (numpy.array(result) != before).any() else "unchanged")
"""
CODES = (
    "value.numpy()",
    "numpy.asarray(value)",
    "numpy.from_dlpack(value)",
    "torch.from_dlpack(value)",
    "value.numpy().copy()",
)

for code in CODES:
    done = subprocess.run(
        [sys.executable, "-c", TRY.format(code=code)], check=False, capture_output=True, text=True
    )
    print(f"{code:30} {done.stdout.strip() or f'killed, {done.returncode}'}")
print(
    platform.python_version(),
    *(f"{name} {version(name)}" for name in ("numpy", "torch", "onnxruntime")),
)
