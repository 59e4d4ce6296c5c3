"""Output buffers: pre-filled with a sentinel the operator can't produce, guarded, looked at after every call."""

from __future__ import annotations

import mmap
from typing import Any, Final

import ml_dtypes
import numpy as np
import xxhash

from mluops_cli.implementations.memory import Guarded
from schemas.dtypes import DTYPES, DType
from schemas.tensors import span
from schemas.values import part_dtype, shaped

Array = np.ndarray[Any, Any]

_BLOCK: Final = 1 << 16  # elements compared at once when a sentinel is looked for in a baseline
_CANDIDATES: Final = 8


class OutputBuffer:
    """The memory of one output: an array of the tensor's shape and strides for the implementation to write into.

    baseline (None where nothing is compared) is what the sentinel has to differ from. fill is the value that the
    contract says the caller sets instead of a sentinel.
    """

    def __init__(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        baseline: Array | None,
        fill: int | None,
    ) -> None:
        part, per_element = part_dtype(dtype)
        assert part.storage is not None
        count = span(shape, strides) * per_element
        self._memory = Guarded(count * part.storage.itemsize)
        self._flat = self._memory.bytes.view(part.storage)
        self._baseline = baseline
        self._fill = fill
        self.sentinel: Any = None  # the value, or None where it differs from element to element
        self.array: Array = shaped(self._flat, dtype, shape, strides)

    def prepare(self, repeat: int) -> None:
        """Fill it for a call, each repeat (from 0) with another value."""
        self._memory.restore()
        if self._fill is not None:
            self.sentinel = self._fill
            self._flat[...] = self._fill
            return
        for value in sentinels(self._flat.dtype, repeat):
            if self._baseline is None or not _holds(self._baseline, value):
                self.sentinel = value
                self._flat[...] = value
                return
        # Every candidate occurs (bool, 8 bits): each element starts as something else than it should become.
        self.sentinel = None
        assert self._baseline is not None
        raw = self._flat.view(np.uint8)
        raw[...] = 0
        np.copyto(self.array, self._baseline)
        flip = 1 if self._flat.dtype == np.bool_ else (0x5A, 0xA5)[repeat % 2]
        np.bitwise_xor(raw, flip, out=raw)

    def damage(self) -> str | None:
        """What was written outside of it, None where nothing was."""
        return self._memory.damage()


def sentinels(storage: np.dtype[Any], repeat: int) -> list[Any]:
    """Values of a dtype that operators hardly produce, in an order that begins elsewhere for every repeat."""
    kind = "f" if storage in _MLDTYPES else storage.kind
    if kind == "b":
        values: list[Any] = [np.False_, np.True_]
    elif kind in "fc":
        # Large enough for any tolerance to notice, small enough for sums not to overflow.
        narrow = storage.itemsize <= 2 and storage != _BFLOAT16
        finfo: Any = ml_dtypes.finfo
        high = float(finfo(storage).max) if narrow else 1e30
        values = [storage.type(-high * 0.8 ** (i + 1)) for i in range(_CANDIDATES)]
    else:
        info = np.iinfo(storage)
        step = max(1, (int(info.max) - int(info.min)) // 251)
        values = [storage.type(int(info.min) + step * (3 + 5 * i)) for i in range(_CANDIDATES)]
    turn = repeat % len(values)
    return values[turn:] + values[:turn]


def digest(array: Array) -> int:
    """A hash of what an array shows, to tell whether it was written to."""
    dense: Any = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    return xxhash.xxh3_64_intdigest(dense.reshape(-1).view(np.uint8))


def is_mapped(array: Array) -> bool:
    """Whether the memory at the end of the chain of views is a file's map: the system forbids writing to ours."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.base is None:
            return False
        base = base.base
    return isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)


def _holds(array: Array, value: Any) -> bool:
    flat = np.ascontiguousarray(array).reshape(-1).view(value.dtype)
    return any(bool((flat[at : at + _BLOCK] == value).any()) for at in range(0, flat.size, _BLOCK))


_BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)
_MLDTYPES: Final = frozenset(
    dtype.storage for dtype in DTYPES.values() if dtype.storage is not None and dtype.storage.kind == "V"
)
