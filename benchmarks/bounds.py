"""Error bounds: their cost at gen against the reference kernel's, and of judging with a bound against without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from benchmarks.measure import Row, peak, ratio
from benchmarks.references import drawn, reference
from generators.operator_registry import operator_named
from generators.specs.expansion import expand_operator
from mluops_cli.judging.bounds import bound_ratio
from mluops_cli.judging.metrics import compare
from schemas.criteria import Criterion

_CASES: Final = {
    "roi_crop_forward": "roi_crop_5",
    "roi_crop_backward": "roi_crop_5",
    "voxel_pooling_forward": "bevdepth",
}
_ELEMENTS: Final = 16 << 20
_CRITERIA: Final = tuple(Criterion(name, 0.05, "benchmark") for name in ("diff1", "diff2"))


def rows() -> Iterator[Row]:
    """The rows of the table."""
    for op, name in _CASES.items():
        operator = operator_named(op)
        case = next(each for each in expand_operator(op, {"network"}) if each.name == name)
        inputs, env = drawn(case, operator)
        baseline = operator.reference(inputs, env)
        plain = reference(operator, inputs, env)

        def bounds() -> None:
            operator.error_bound(inputs, env, baseline=baseline)  # noqa: B023 - called before the next case

        yield ratio(f"{case.id}: error bounds / reference", bounds, plain, 2, 3)
        yield Row(f"{case.id}: memory of error bounds / reference", peak(bounds) / peak(plain), "x", 1.5)
    right = np.random.default_rng(0).uniform(1, 2, _ELEMENTS).astype(np.float32)
    output = right * (np.float32(1) + np.random.default_rng(1).uniform(-1e-7, 1e-7, _ELEMENTS).astype(np.float32))
    bound = np.full(_ELEMENTS, 1e-5, np.float32)

    def judge() -> None:
        assert compare(right, output, _CRITERIA, "float").passed

    def judge_with_bound() -> None:
        judge()
        assert bound_ratio(right, output, bound).ratio < 1

    size = f"{_ELEMENTS >> 20} M"
    yield ratio(f"judging {size} float with an error bound / without", judge_with_bound, judge, 1.5, 5)
