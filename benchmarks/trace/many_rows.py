"""Time of a trace with 100, 1,000 and 10,000 lines that convert: it grows with their number.

Each program has that many lines in one function, and each line runs once. The time of the program
without a trace is subtracted. The last column is the time for each row, in ms.

    python benchmarks/trace/many_rows.py
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = (100, 1_000, 10_000)
HEAD = "import numpy, torch\nX = numpy.ones(4)\ndef convert():\n"
LINE = "    torch.from_numpy(X)\n"


def seconds(*command):
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def main():
    print("  rows    program      trace    per row")
    with tempfile.TemporaryDirectory() as folder:
        for rows in ROWS:
            program = Path(folder) / f"rows{rows}.py"
            program.write_text(f"{HEAD}{LINE * rows}convert()\n", encoding="utf-8")
            alone = seconds(sys.executable, program)
            trace = (sys.executable, "-m", "dlprof", "trace", "-o", f"{program}.json", program)
            took = seconds(*trace) - alone
            print(f"{rows:6,} {alone:8.2f} s {took:8.2f} s {1e3 * took / rows:7.2f} ms")


if __name__ == "__main__":
    main()
