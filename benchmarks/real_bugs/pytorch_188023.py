"""pytorch/pytorch#188023: `torch.from_dlpack` kills the process for a negative stride."""

import subprocess
import sys

STATEMENT = """
import numpy, torch
x = numpy.arange(12.0).reshape(3, 4)[:, ::-1]
try:
    y = torch.from_dlpack(x)
except Exception as error:
    print("refused:", type(error).__name__, error)
else:
    print("result", y.tolist())
"""

if subprocess.run([sys.executable, "-c", "import numpy, torch"], check=False).returncode:
    sys.exit(2)
child = subprocess.run([sys.executable, "-c", STATEMENT], stderr=subprocess.DEVNULL, check=False)
print("exit status of the process", child.returncode)
sys.exit(child.returncode < 0)
