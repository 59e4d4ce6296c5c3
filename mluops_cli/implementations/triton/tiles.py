"""The sizes of tiles: powers of two, as Triton wants them; the bits of what is copied."""

from __future__ import annotations

from typing import Any

import torch
import triton

_LEAST = 16
_IDLE = 1.25


def power_of_two(size: int, most: int) -> int:
    """Return the least power of two that is at least size, at most `most`, itself one."""
    least: int = triton.next_power_of_2(max(1, size))
    return min(most, least)


def width(size: int, most: int) -> int:
    """Return a power of two of at most `most` whose multiple covers the size with at most a quarter more.

    Parts of 16 and less may cover more.
    """
    wide = power_of_two(size, most)
    while wide > _LEAST and triton.cdiv(size, wide) * wide > size * _IDLE:
        wide //= 2
    return wide


def bits_of(tensor: Any) -> Any:
    """Return a tensor of 2 or 4 bytes per element as integers of that size."""
    return tensor.view({2: torch.int16, 4: torch.int32}[tensor.element_size()])
