"""microsoft/onnxruntime#24095: `from_dlpack` kills the process for anything but a capsule.

The binding reads what it is given as a legacy capsule, unchecked.
"""

import subprocess
import sys

SETUP = """
import numpy, onnxruntime
from onnxruntime.capi._pybind_state import OrtValue
x = numpy.ones(3, numpy.float32)
try:
    y = {statement}
except Exception as error:
    print("refused:", type(error).__name__)
else:
    print("result", y.numpy().tolist())
"""
STATEMENTS = (
    "OrtValue.from_dlpack(x, False)",
    "OrtValue.from_dlpack(x.__dlpack__(max_version=(1, 0)), False)",
    "onnxruntime.OrtValue.from_dlpack(x)",
)

if subprocess.run([sys.executable, "-c", "import numpy, onnxruntime"], check=False).returncode:
    sys.exit(2)
killed = False
for statement in STATEMENTS:
    print(statement, flush=True)
    child = subprocess.run([sys.executable, "-c", SETUP.format(statement=statement)], check=False)
    print("    exit status of the process", child.returncode, flush=True)
    killed |= child.returncode < 0
sys.exit(killed)
