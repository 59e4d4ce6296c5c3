"""At which run a latency went to another level, and stayed there.

Latencies scatter by factors, so their logarithms are cut into pieces of constant mean: the cut that is the best one
for least squares, with a penalty for each piece (PELT, by ruptures). A single odd run is no level: it is replaced by
the median of its neighbours first (a Hampel filter).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mluops_cli.results.compare import NOTABLE
from schemas.errors import UnavailableError

FEWEST: Final = 10  # runs below which scatter and change can't be told apart
_LEVEL: Final = 3  # runs that make a level
_REACH: Final = 2  # neighbours on each side that say whether a run is odd
_ODD: Final = 5.0  # standard deviations from their median
_CLIPPED: Final = 3.0  # standard deviations beyond which a difference doesn't count as scatter
_PENALTY: Final = 6.0  # of a piece, in variances times log(runs): no false change in 500 drawn histories
_LEAST_SCATTER: Final = NOTABLE / 3  # relative; a history of equal figures would make a change of any
_NORMAL: Final = 1.4826  # standard deviation of a normal distribution / its median absolute deviation


class ChangePoint(NamedTuple):
    """The index of the first run on a new level, and the medians of the level before and of this one."""

    first: int
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """after / before."""
        return self.after / self.before


def change_points(values: Sequence[float]) -> list[ChangePoint]:
    """Return the changes of level of more than 3 % in a history of positive values, in their order.

    UnavailableError where ruptures is missing. Too short a history has none.
    """
    if len(values) < FEWEST:
        return []
    logs = np.log(np.asarray(values, np.float64))
    scatter = max(_scatter(logs), _LEAST_SCATTER)
    starts = [0, *_cut(_without_odd(logs, scatter), _PENALTY * scatter**2 * math.log(len(logs)))]
    ends = [*starts[1:], len(values)]
    levels = [float(np.median(values[start:end])) for start, end in zip(starts, ends, strict=True)]
    found = (ChangePoint(*each) for each in zip(starts[1:], levels[:-1], levels[1:], strict=True))
    return [change for change in found if abs(change.ratio - 1) > NOTABLE]


def _scatter(logs: NDArray[np.float64]) -> float:
    """The standard deviation from run to run; of differences, so that changes of level don't count.

    The median of differences tells which are odd; the mean square of the others is more precise than a median.
    """
    differences = np.diff(logs)
    limit = _CLIPPED * _NORMAL * float(np.median(np.abs(differences)))
    return math.sqrt(float(np.mean(np.minimum(np.abs(differences), limit) ** 2)) / 2)


def _without_odd(logs: NDArray[np.float64], scatter: float) -> NDArray[np.float64]:
    result: NDArray[np.float64] = logs.copy()
    for index in range(len(logs)):
        middle = float(np.median(logs[max(0, index - _REACH) : index + _REACH + 1]))
        if abs(logs[index] - middle) > _ODD * scatter:
            result[index] = middle
    return result


def _cut(logs: NDArray[np.float64], penalty: float) -> list[int]:
    """The first indices of all pieces but the first."""
    try:
        import ruptures
    except ImportError as error:
        raise UnavailableError(f"changes of latencies need ruptures: pip install 'mluops[history]' ({error})") from None
    search: Any = ruptures.Pelt(model="l2", min_size=_LEVEL, jump=1)
    return [int(end) for end in search.fit_predict(logs, penalty)[:-1]]
