"""pytorch/pytorch#172611: `Tensor.__dlpack__` leaks the memory of a tensor that it refuses.

Which dtypes are refused depends on the version, so several are tried.
"""

import resource
import sys
from pathlib import Path

try:
    import torch
except ImportError as error:
    print(error)
    sys.exit(2)

CALLS = 50
SIZE_BYTES = 1 << 20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def refusals(dtype: torch.dtype) -> int:
    count = 0
    for _ in range(CALLS):
        x = torch.zeros(SIZE_BYTES, dtype=torch.uint8).view(dtype)
        try:
            x.__dlpack__()
        except (BufferError, RuntimeError):
            count += 1
    return count


refused, leaked = False, False
for name in ("float8_e4m3fn", "bits8", "bits16"):
    dtype = getattr(torch, name, None)
    if dtype is None:
        continue
    try:
        if refusals(dtype) < CALLS:
            print(name, "is accepted")
            continue
    except RuntimeError as error:
        print(name, "cannot be made:", error)
        continue
    before = resident_bytes()
    refusals(dtype)
    slope = (resident_bytes() - before) / CALLS
    print(f"{name}: {slope:,.0f} bytes stay for each refusal of a tensor of {SIZE_BYTES:,} bytes")
    refused = True
    leaked |= slope > SIZE_BYTES / 2
sys.exit(1 if leaked else 0 if refused else 2)
