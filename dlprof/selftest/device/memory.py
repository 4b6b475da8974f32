"""Device memory of one synthetic framework, handed out again once nobody holds it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlprof.device.cuda import Gpu

GRAIN_BYTES = 512
"""Sizes are multiples of it, as those of other frameworks' allocators."""


@dataclass(eq=False)
class Block:
    """Device memory; goes back to its pool with its last owner."""

    pool: Pool
    address: int
    size_bytes: int
    stream: int

    def __del__(self) -> None:
        self.pool.take_back(self)


class Pool:
    """Blocks by size and stream; nothing is given back to the driver, whose free waits for work.

    A block is handed out again on its own stream only: what was queued there for its former owner
    runs before whatever the next one queues. The one given back last goes out first, so that a
    result without an owner is overwritten soon.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.bytes_in_use = 0
        self._gpu = gpu
        self._free: defaultdict[tuple[int, int], list[int]] = defaultdict(list)

    def take(self, size_bytes: int, stream: int) -> Block:
        """A block of at least ``size_bytes`` for work on ``stream``."""
        size = max(1, -(-size_bytes // GRAIN_BYTES)) * GRAIN_BYTES
        free = self._free[size, stream]
        address = free.pop() if free else self._gpu.allocate(size)
        self.bytes_in_use += size
        return Block(self, address, size, stream)

    def take_back(self, block: Block) -> None:
        self.bytes_in_use -= block.size_bytes
        self._free[block.size_bytes, block.stream].append(block.address)
