"""The self-test: faults are what they are called, leave nothing behind, and judges with a blind spot are found out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.fault_injection.detectability import Detectability, Ranges
from mluops_cli.judging.fault_injection.injected_faults import INJECTED_FAULTS, InjectionTarget, NotInjectable
from mluops_cli.judging.fault_injection.verification import Trial, try_faults
from mluops_cli.judging.verdict import OutputUnderTest, Verdict, judge_case
from schemas.criteria import Criterion

EXACT = (Criterion("diff3", 0.0),)
ROUGH = (Criterion("diff1", 3e-3), Criterion("diff2", 3e-3))
TYPES = {
    "float": "f4", "double": "f8", "half": "f2", "bfloat16": ml_dtypes.bfloat16, "complex_float": "c8",
    "complex_half": "f2", "int8": "i1", "uint8": "u1", "int32": "i4", "int64": "i8", "uint16": "u2", "bool": "?",
}  # fmt: skip


def baseline(dtype: str = "float", shape: tuple[int, ...] = (6, 5, 8), seed: int = 0) -> Array:
    values = np.random.default_rng(seed).uniform(-50, 50, (*shape, 2) if dtype == "complex_half" else shape)
    storage = np.dtype(TYPES[dtype])
    if storage.kind == "b":
        return values > 0
    if storage.kind == "u":
        values = np.abs(values) * 2
    return values.astype(storage)


def make_target(b: Array, output: Array | None = None, exact: bool = True) -> InjectionTarget:
    output = b.copy() if output is None else output
    left = np.array([-99], b.dtype) if b.dtype.kind in "fi" else None
    return InjectionTarget(b, output, left, exact, 0, b.size // 2, b.size - 1)


def injected(fault: str, b: Array, **options: Any) -> tuple[Array, Ranges]:
    it = make_target(b, **options)
    touched = INJECTED_FAULTS[fault](it)
    return it.output, touched


def trials(
    b: Array,
    criteria: Sequence[Criterion] = EXACT,
    dtype: str = "float",
    judge: Callable[[list[OutputUnderTest]], Verdict] = judge_case,
) -> dict[str, Trial]:
    exact = all(each.threshold == 0 for each in criteria)
    it = make_target(b, exact=exact)
    item = OutputUnderTest("y", b, it.output, criteria, dtype)
    found = list(try_faults({"y": (it, Detectability(b, criteria, dtype))}, lambda name: judge([item])))
    assert np.array_equal(it.output.view(np.uint8), b.view(np.uint8)), "a fault was not undone"
    return {trial.fault: trial for trial in found}


def test_faults_are_what_they_are_called() -> None:
    b = baseline()
    flat = b.reshape(-1)
    for fault, at in (("first element", 0), ("middle element", 120), ("last element", 239)):
        output, touched = injected(fault, b)
        assert np.flatnonzero(output.reshape(-1) != flat).tolist() == [at]
        assert touched == [(at, at + 1)]
    assert (injected("last tile zeroed", b)[0].reshape(-1)[180:] == 0).all()
    assert (injected("stale sentinel", b)[0].reshape(-1)[180:] == -99).all()
    assert np.array_equal(injected("shifted by one", b)[0].reshape(-1), np.roll(flat, 1))
    assert np.allclose(injected("scaled by 1 %", b)[0], b * 1.01, rtol=1e-6)
    assert np.array_equal(injected("transposed", b)[0], b.swapaxes(0, 1).reshape(b.shape))
    rows = injected("two rows swapped", b)[0].reshape(-1, 8)
    assert np.array_equal(rows[[0, -1]], b.reshape(-1, 8)[[-1, 0]])
    assert np.array_equal(rows[1:-1], b.reshape(-1, 8)[1:-1])
    output, [(at, _)] = injected("one ULP", b)
    assert output.reshape(-1)[at] == np.nextafter(flat[at], np.float32(np.copysign(np.inf, flat[at])))
    assert np.count_nonzero(np.isnan(injected("NaN for a number", b)[0])) == 1
    holes = b.copy()
    holes[1, 2, 3] = np.nan
    assert injected("a number for NaN", holes)[0][1, 2, 3] == 0
    whole = baseline("int32")
    output, _ = injected("index off by one", whole)
    assert output.reshape(-1)[-1] == whole.reshape(-1)[-1] + 1


@pytest.mark.parametrize("dtype", TYPES)
def test_every_dtype_is_caught_at_threshold_0(dtype: str) -> None:
    found = trials(baseline(dtype), dtype=dtype)
    assert not [trial for trial in found.values() if trial.missed]
    caught = {fault for fault, trial in found.items() if trial.caught}
    expected = {"first element", "middle element", "last element", "stale sentinel", "two rows swapped", "transposed"}
    assert expected <= caught
    assert ("NaN for a number" in caught) == (np.dtype(TYPES[dtype]).kind in "fcV")
    assert ("index off by one" in caught) == (np.dtype(TYPES[dtype]).kind in "iu")


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (1, 1), (3, 1), (1, 9), (4097, 3)])
def test_odd_shapes(shape: Any) -> None:
    assert not [trial for trial in trials(baseline(shape=shape)).values() if trial.missed]


def test_strided_outputs() -> None:
    b = baseline()
    memory = np.full((6, 5, 16), 7, np.float32)
    output = memory[:, :, ::2]
    output[...] = b
    it = make_target(b, output)
    item = OutputUnderTest("y", b, output, EXACT, "float")
    found = list(try_faults({"y": (it, Detectability(b, EXACT, "float"))}, lambda name: judge_case([item])))
    assert all(trial.caught for trial in found if trial.injected)
    assert sum(trial.injected for trial in found) >= 11
    assert np.array_equal(output, b)
    assert (memory[:, :, 1::2] == 7).all()


def test_what_can_not_be_injected_says_why() -> None:
    found = trials(np.zeros(3, np.float32))
    why = {fault: trial.reason for fault, trial in found.items() if not trial.injected}
    assert why["last tile zeroed"] == "changes no value that counts"
    assert why["transposed"] == "has one axis"
    assert why["one ULP"] == "has no number but 0"
    assert why["two rows swapped"] == "the rows are alike"
    assert why["index off by one"] == "holds no integers"
    assert why["a number for NaN"] == "has neither NaN nor Inf"
    assert trials(baseline(), ROUGH)["one ULP"].reason == "is judged with a tolerance"


def test_what_a_tolerance_can_not_see_is_named() -> None:
    """One element of 1.5 million is off by as much as there are values: diff1 and diff2 stay below 3e-3."""
    found = trials(baseline(shape=(1500, 1000)), ROUGH)
    unseen = {fault: trial.reason for fault, trial in found.items() if trial.word == "unseen"}
    assert set(unseen) == {"first element", "middle element", "last element"}
    assert all("diff1 = " in why and "diff2 = " in why and "<= 0.003" in why for why in unseen.values())
    assert found["scaled by 1 %"].caught


# What a judge may overlook -> which faults reveal it.
BLIND: dict[str, tuple[Callable[[Array, Array], tuple[Array, Array]], set[str] | None]] = {
    "last": (lambda b, m: (b[:-1], m[:-1]), {"last element"}),
    "first": (lambda b, m: (b[1:], m[1:]), {"first element"}),
    "nan": (lambda b, m: (b, np.where(np.isnan(m), b, m)), {"NaN for a number"}),
    "order": (lambda b, m: (np.sort(b), np.sort(m)), {"two rows swapped", "shifted by one", "transposed"}),
    "ulp": (lambda b, m: (b, np.where(np.isclose(m, b, rtol=1e-6, atol=0), b, m)), {"one ULP"}),
    "scale": (lambda b, m: (b, np.where(np.isclose(m, b, rtol=0.02, atol=0), b, m)), {"scaled by 1 %", "one ULP"}),
    "stale": (lambda b, m: (b, np.where(m == -99, b, m)), {"stale sentinel"}),
    "zeros": (lambda b, m: (b, np.where(m == 0, b, m)), {"last tile zeroed", "a number for NaN"}),
    "everything": (lambda b, m: (b, b), None),
}


@pytest.mark.parametrize("spot", BLIND)
def test_a_blind_spot_is_found_out(spot: str) -> None:
    see, tell = BLIND[spot]

    def judge(items: list[OutputUnderTest]) -> Verdict:
        (item,) = items
        b, m = see(item.baseline.reshape(-1), item.output.reshape(-1))
        return judge_case([OutputUnderTest("y", b, m.copy(), EXACT, "float")])

    b = baseline()
    b[0, 0, 1] = np.nan
    found = trials(b, judge=judge)
    missed = {fault for fault, trial in found.items() if trial.missed}
    assert missed == (tell if tell is not None else {fault for fault, trial in found.items() if trial.injected})


def test_not_injected_leaves_the_output_alone() -> None:
    for fault, inject in INJECTED_FAULTS.items():
        it = make_target(np.zeros((), np.bool_))
        with suppress(NotInjectable):
            it.undo(inject(it))
        assert not it.output.any(), fault
