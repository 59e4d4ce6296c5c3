"""The verdict on one call, from its status or from the comparisons of its outputs: one word and one reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.comparison import Comparison
from mluops_cli.judging.measurement import DenominatorCache
from mluops_cli.judging.metrics import compare
from mluops_cli.judging.weakness import swallowed, weakness
from schemas.criteria import Criterion
from schemas.status import NOT_SUPPORTED, SUCCESS

EXPECTED: Final = "expected "  # begins the reason of a wrong status


@dataclass(frozen=True, slots=True)
class OutputUnderTest:
    """One output of a call with what it is judged by.

    expected_zero_fraction is the contract's. shares_baseline: the implementation returned the baseline's own memory.
    caches and signed_zero are those of compare. undecided: a mask of the elements that are not judged; output holds
    those of the baseline there.
    """

    name: str
    baseline: Array
    output: Array
    criteria: Sequence[Criterion]
    dtype: str
    expected_zero_fraction: float = 0.0
    shares_baseline: bool = False
    caches: dict[str, DenominatorCache] | None = None
    signed_zero: bool = False
    undecided: Array | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Status (pass, fail, empty, mistrusted, skip), the reason unless it is a plain pass, the outputs' comparisons."""

    status: str
    reason: str = ""
    outputs: dict[str, Comparison] = field(default_factory=dict)

    def as_record(self) -> dict[str, Any]:
        """Return the verdict as JSON data."""
        outputs = {name: comparison.as_record() for name, comparison in self.outputs.items()}
        return {"status": self.status, "reason": self.reason, "outputs": outputs}


def judge_status(expected: Sequence[str], got: str, *, beyond_design: bool = False) -> Verdict | None:
    """Return the verdict on the operator's status; None where it is SUCCESS as expected and the outputs decide.

    beyond_design: no design demands the expected statuses, so any answer passes.
    """
    if got in expected:
        return None if got == SUCCESS else Verdict("pass")
    if beyond_design:
        return Verdict("pass", f"answered {got}, not {' or '.join(expected)}: no design demands that")
    if got == NOT_SUPPORTED and SUCCESS in expected:
        return Verdict("skip", "the implementation says NOT_SUPPORTED")
    return Verdict("fail", f"{EXPECTED}{' or '.join(expected)}, got {got}")


def judge_case(
    outputs: Sequence[OutputUnderTest], *, exempt: bool = False, loose_nan: bool = False, threads: int = 1
) -> Verdict:
    """Judge every output of one call.

    exempt: baselines may be constant or zero (suites boundary and zero_element); sentinels show there that the outputs
    were stored.
    """
    if not outputs:
        return Verdict("mistrusted", "nothing was compared")
    compared = {
        item.name: compare(
            item.baseline,
            item.output,
            item.criteria,
            item.dtype,
            loose_nan=loose_nan,
            signed_zero=item.signed_zero,
            threads=threads,
            caches=item.caches,
        )
        for item in outputs
    }
    failures = [f"{name}: {found.reason}" for name, found in compared.items() if not (found.empty or found.passed)]
    if failures:
        return Verdict("fail", "; ".join(failures), compared)
    if all(found.empty for found in compared.values()):
        return Verdict("empty", "every output has zero elements", compared)
    doubts = [doubt for item in outputs if (doubt := _doubt(item, compared[item.name], exempt))]
    return Verdict("mistrusted" if doubts else "pass", "; ".join(doubts), compared)


def _doubt(item: OutputUnderTest, found: Comparison, exempt: bool) -> str:
    """Return why a pass of this output proves nothing; empty where it does."""
    if found.empty:
        return ""
    if item.shares_baseline:
        return f"{item.name}: the implementation returned the baseline's own memory"
    if not found.judged:
        return f"{item.name}: nothing was compared"
    baseline = item.baseline
    if item.undecided is not None:
        if item.undecided.all():
            return f"{item.name}: every element is undecided"
        baseline = np.where(item.undecided, baseline.dtype.type(0), baseline)
    text = "" if exempt else weakness(baseline, item.dtype, item.expected_zero_fraction)
    text = text or swallowed(baseline, item.criteria, item.dtype)
    return f"{item.name}: {text}" if text else ""
