"""How well a call uses its device: efficiencies against peaks, the bottleneck, and the standard of acceptance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from generators.contracts.binding import Bound
from generators.contracts.model import Contract
from generators.contracts.operator import Array
from mluops_cli.core.peaks import Peaks

# OPERATORS.md, theoretical work: the share of its peak that the bottleneck side must reach, by suite.
STANDARD: Final[Mapping[str, float]] = {"network": 0.6, "general": 0.3}
IO_ALONE: Final = frozenset({"pure_io", "index"})  # categories judged by their io efficiency alone
POSSIBLE: Final = 1.05  # of a peak: whoever is faster was measured wrongly, or the peak was


@dataclass(frozen=True, slots=True)
class Work:
    """Theoretical work of one call: bytes and operations, None where nobody tells."""

    io_bytes: float | None
    ops: float | None


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Shares of the peaks, None where the work or the peak is unknown or nothing."""

    io: float | None
    compute: float | None

    @property
    def bottleneck(self) -> str | None:
        """io or compute: the side that is used more."""
        if self.io is None and self.compute is None:
            return None
        return "io" if (self.io or 0.0) > (self.compute or 0.0) else "compute"

    @property
    def impossible(self) -> str:
        """The side that is faster than it can be, in words; empty where none is."""
        for side, value in (("io", self.io), ("compute", self.compute)):
            if value is not None and value > POSSIBLE:
                return f"{side} efficiency {value:.1%} of the peak"
        return ""


def work_of(bound: Bound, inputs: Mapping[str, Array | None], baseline: Mapping[str, Array]) -> Work:
    """What the case file says, else what the operator says."""
    node = bound.file.node
    stored = [getattr(node, name) or None for name in ("theory_io_size", "theory_compute_ops")]
    operator = bound.operator
    if operator is None or None not in stored or any(array is None for array in inputs.values()):
        return Work(stored[0], stored[1])
    shapes = {name: record.shape for name, record in (*bound.inputs.items(), *bound.outputs.items())}
    env = operator.contract.bind(shapes, bound.params)
    given = {name: array for name, array in inputs.items() if array is not None}
    outputs = dict(baseline)
    if set(outputs) != set(bound.outputs):
        return Work(stored[0], stored[1])
    io, ops = operator.theory_io_bytes(env, given, outputs), operator.theory_ops(env, given, outputs)
    return Work(stored[0] or io, stored[1] or ops)


def efficiency_of(work: Work, latency_us: float, peaks: Peaks) -> Efficiency:
    """work / (latency * peak) of both sides."""

    def share(amount: float | None, peak: float | None) -> float | None:
        return amount / (latency_us * 1e-6 * peak) if amount and peak and latency_us > 0 else None

    return Efficiency(share(work.io_bytes, peaks.bandwidth), share(work.ops, peaks.ops))


def shortfall(contract: Contract | None, suite: str, found: Efficiency) -> str:
    """Why the standard isn't met, as a sentence; empty where it is, or where there is none for the suite."""
    if contract is None or suite not in STANDARD:
        return ""
    either = contract.either_efficiency
    least = STANDARD[suite] if either is None else either
    if either is None and contract.category in IO_ALONE:
        what, value = "io efficiency", found.io
    else:
        what, value = f"{found.bottleneck} efficiency", max(found.io or 0.0, found.compute or 0.0)
    if value is None or found.bottleneck is None:
        return f"the efficiency of this case is unknown, at least {least:.0%} must be reached ({suite})"
    return "" if value >= least else f"{what} is {value:.1%}, at least {least:.0%} must be reached ({suite})"
