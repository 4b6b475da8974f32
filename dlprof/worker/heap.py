"""Where on the heap the next large block begins.

A copy may take one of several times, by the address that malloc gives it: ``tf.constant(x)`` keeps
a copy that begins at a multiple of 64 bytes, and copies any other once more. Every process has
another heap, so two processes of equal code may differ by a factor of two. Processes that are
compared have their blocks at the same offset in a page.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

PAGE_BYTES = 4096
LEAST_BYTES = 64 << 10
"""Smaller blocks come from lists of blocks of their size."""
LEAST_CHUNK_BYTES, HEADER_BYTES = 32, 8
"""Of glibc's malloc: a block and the 8 bytes before it fill a chunk of 32 bytes or more, and it
begins at a multiple of 16."""
TRIES = 16
"""A block comes from the smallest free chunk that holds it. Two tries were enough where it was
measured."""


@contextmanager
def next_block_at(offset_bytes: int, size_bytes: int) -> Iterator[None]:
    """Inside, a block of ``size_bytes`` begins so many bytes behind the start of a page.

    A small block is left where it is, and so is one that malloc maps by itself. As long as blocks
    of this size are freed before the next is made, they stay there.
    """
    held: list[int] = []
    libc = _libc() if size_bytes >= LEAST_BYTES else None
    if libc is not None:
        _place(libc, offset_bytes, size_bytes, held)
    try:
        yield
    finally:
        for block in held:
            if libc is not None:
                libc.free(block)


def _place(libc: ctypes.CDLL, offset_bytes: int, size_bytes: int, held: list[int]) -> None:
    """Shrink each block that begins elsewhere, so that what is left of its chunk begins there."""
    for _ in range(TRIES):
        block = libc.malloc(size_bytes)
        if not block:
            return
        chunk = (offset_bytes - block) % PAGE_BYTES
        if not chunk:
            libc.free(block)
            return
        chunk += PAGE_BYTES if chunk < LEAST_CHUNK_BYTES else 0
        shrunk = libc.realloc(block, chunk - HEADER_BYTES)
        held.append(shrunk or block)


def _libc() -> ctypes.CDLL | None:
    """The C library of this process, whose allocator frameworks use; None where it has no name."""
    try:
        libc = ctypes.CDLL(None)
        malloc, realloc, free = libc.malloc, libc.realloc, libc.free
    except (OSError, AttributeError):
        return None
    malloc.restype = realloc.restype = ctypes.c_void_p
    malloc.argtypes = [ctypes.c_size_t]
    realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    free.argtypes = [ctypes.c_void_p]
    return libc
