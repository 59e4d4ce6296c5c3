"""Values of an input that a `dist` says exactly, so that no file has to hold them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_EXACT: Final = 2**11  # whole numbers up to here are exact in every floating dtype that NumPy has


def as_dist(array: NDArray[Any]) -> dict[str, Any] | None:
    """`constant` or `sequence` where it draws exactly these values, else None."""
    if not array.size:
        return {"constant": 0}
    if array.dtype.kind not in "fiu":
        return None
    flat = array.reshape(-1)
    first = flat[0].item()
    if (flat == flat[0]).all() and not np.signbit(flat[flat == 0].astype(np.float64)).any():
        return {"constant": _plain(first)}
    if not np.isfinite(flat).all() or abs(flat).max() > _EXACT or (np.rint(flat) != flat).any():
        return None
    step = int(flat[1]) - int(first)
    whole = flat.astype(np.int64)
    same = (whole == int(first) + step * np.arange(flat.size)).all()
    negative_zero = np.signbit(flat[flat == 0].astype(np.float64)).any()
    return {"sequence": [int(first), step]} if same and not negative_zero else None


def _plain(number: float) -> float | int:
    """A whole number without its point, where that is exact."""
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) <= _EXACT else number
