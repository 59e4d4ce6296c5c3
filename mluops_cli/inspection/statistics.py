"""Statistics of a tensor's stored values, block by block: a gigabyte takes no more memory than a kilobyte."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import xxhash

from schemas.casefiles.tensors import TensorRecord

_BLOCK: Final = 1 << 18  # elements per step

Metrics = dict[str, Any]


def statistics_of(record: TensorRecord) -> Metrics:
    """Return min, max and mean of the finite values, the numbers of zeros, nan and inf, and the xxh3_128 of the bytes.

    Real and imaginary parts of a complex tensor are values of their own, as are the halves of int31.
    InputError where the values can't be read.
    """
    found = _Statistics()
    for values in record.blocks():
        for at in range(0, values.size, _BLOCK):
            found.add(values[at : at + _BLOCK])
    return found.metrics()


class _Statistics:
    """The statistics of the blocks so far."""

    def __init__(self) -> None:
        self.low, self.high, self.total = math.inf, -math.inf, 0.0
        self.size = self.finite = self.zeros = self.nans = 0
        self.hash = xxhash.xxh3_128()

    def add(self, values: np.ndarray[Any, Any]) -> None:
        """Add one block."""
        self.hash.update(np.ascontiguousarray(values).view(np.uint8).data)
        block = values.view(values.real.dtype) if values.dtype.kind == "c" else values
        self.size += block.size
        self.zeros += block.size - int(np.count_nonzero(block))
        if block.dtype.kind not in "iub":
            with np.errstate(invalid="ignore"):
                block = block.astype(np.float64)
            self.nans += int(np.count_nonzero(np.isnan(block)))
            finite = np.isfinite(block)
            block = block if finite.all() else block[finite]
        self.finite += block.size
        if block.size:
            self.low = min(self.low, block.min().item())
            self.high = max(self.high, block.max().item())
            with np.errstate(over="ignore"):
                self.total += float(block.sum(dtype=np.float64))

    def metrics(self) -> Metrics:
        """Return the statistics of all blocks."""
        low, high = (self.low, self.high) if self.finite else (math.nan, math.nan)
        return {
            "min": low,
            "max": high,
            "mean": self.total / self.finite if self.finite else math.nan,
            "zeros": self.zeros,
            "nan": self.nans,
            "inf": self.size - self.finite - self.nans,
            "hash": self.hash.hexdigest(),
        }
