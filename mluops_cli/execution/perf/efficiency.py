"""Efficiencies of a call against the peaks of its device, the bottleneck, and the acceptance standard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from generators.contracts.bound_case import BoundCase
from generators.contracts.model import Contract
from generators.contracts.operator import Array
from mluops_cli.core.hardware.peaks import Peaks
from mluops_cli.core.units import format_fraction

# Design documents, section on performance: the fraction of its peak that the bottleneck must reach, by suite.
STANDARD: Final[Mapping[str, float]] = {"network": 0.6, "general": 0.3}
IO_ALONE: Final = frozenset({"pure_io", "index"})  # categories judged by their io efficiency alone
POSSIBLE: Final = 1.05  # of a peak: more is an error of measurement, of the latency or of the peak


@dataclass(frozen=True, slots=True)
class Work:
    """Theoretical work of one call: bytes and operations, None where it is unknown."""

    io_bytes: float | None
    ops: float | None


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Fractions of the peaks, None where the work or the peak is unknown or 0."""

    io: float | None
    compute: float | None

    @property
    def bottleneck(self) -> str | None:
        """The bottleneck, io or compute: the larger of the two; None where both are unknown."""
        if self.io is None and self.compute is None:
            return None
        return "io" if (self.io or 0.0) > (self.compute or 0.0) else "compute"

    @property
    def impossible(self) -> str:
        """Which efficiency is above what is possible, as a phrase; empty where none is."""
        for side, value in (("io", self.io), ("compute", self.compute)):
            if value is not None and value > POSSIBLE:
                return f"{side} efficiency {format_fraction(value)} of the peak"
        return ""


def work_of(bound: BoundCase, inputs: Mapping[str, Array | None], baseline: Mapping[str, Array]) -> Work:
    """The theoretical work that the case file states, otherwise that of the operator."""
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

    def fraction(amount: float | None, peak: float | None) -> float | None:
        return amount / (latency_us * 1e-6 * peak) if amount and peak and latency_us > 0 else None

    return Efficiency(fraction(work.io_bytes, peaks.bandwidth), fraction(work.ops, peaks.ops))


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
    return (
        "" if value >= least else f"{what} is {format_fraction(value)}, at least {least:.0%} must be reached ({suite})"
    )
