"""Whether work is queued on a CUDA stream, by the driver that the program has loaded."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

NOT_READY = 600
"""``CUDA_ERROR_NOT_READY``."""


@cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def is_busy(stream: int) -> bool | None:
    """None if the driver does not say: also for a stream that is captured, which a query ends."""
    driver, capturing = _driver(), ctypes.c_int()
    if driver is None:
        return None
    handle = ctypes.c_void_p(stream)
    if driver.cuStreamIsCapturing(handle, ctypes.byref(capturing)) or capturing.value:
        return None
    return {0: False, NOT_READY: True}.get(driver.cuStreamQuery(handle))
