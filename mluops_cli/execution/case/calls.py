"""The calls of one case: fill the buffers, call the implementation, check the memory, judge the outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from generators.contracts.bound_case import BoundCase
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.case.judgement import (
    counts_differ,
    has_undefined_parts,
    judge_outputs,
    missing_counts,
    outputs_under_test,
)
from mluops_cli.execution.case.output_buffers import Array, OutputBuffer, digest
from mluops_cli.execution.case.repeats import Repeats
from mluops_cli.execution.kernel_process.case_memory import HOST, CaseMemory
from mluops_cli.execution.kernel_process.floating_point import require_subnormals
from mluops_cli.execution.kernel_process.timed_call import Kernel, KernelLost, Timed, timed_call, words_of
from mluops_cli.implementations.base import (
    AdapterError,
    BadAnswer,
    Call,
    CannotShow,
    Crashed,
    Outcome,
    OutOfBounds,
)
from mluops_cli.judging.verdict import Verdict, judge_status
from schemas.errors import MluopsError
from schemas.status import SUCCESS

Result = dict[str, Any]
GOES_ON: Final = ("pass", "empty", "mistrusted")
KNOWN: Final = "the kernel's process has used what holds the answer: "
_SMALL: Final = 1 << 20  # bytes of an output up to which writes during the judging are detected


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case with its arrays; baseline holds the outputs that are compared, none where no success is expected."""

    bound: BoundCase
    calls: tuple[Call, ...]  # the same one with its inputs at different places; repeats take turns
    outputs: dict[str, OutputBuffer]
    baseline: dict[str, Array]
    references: dict[str, Array]  # what the error bounds surround (BoundCase.references)
    bounds: dict[str, Array]  # error bounds of the outputs that have one
    undecided: dict[str, Array]  # masks of the elements that are not judged (BoundCase.undecided)
    digests: dict[str, int]  # hashes of the inputs that are in writable memory
    memory: CaseMemory = HOST  # where inputs and outputs of all its calls are

    @property
    def call(self) -> Call:
        """The first of the calls."""
        return self.calls[0]

    def all_bounds(self, options: CaseOptions) -> Mapping[str, Array]:
        """The error bounds, computed now where --bound off left them out."""
        return self.bounds or self.bound.error_bounds(self.call.inputs, self.baseline, options.accumulate)


class Meter(Protocol):
    """Measures the latency of a case whose first call was right."""

    def measure(self, calls: Calls, judged: Result) -> Result:
        """Return the keys of the record about latency, and the verdict on the last call."""


class Calls:
    """Calls the implementation on a prepared case and judges every call.

    many: more than one call is to come. Outputs are compared bit by bit then, and those equal to judged ones get
    their verdict at once. With --repeat the first outputs are kept and later ones compared with them (Repeats).
    """

    def __init__(self, prepared: Prepared, kernel: Kernel, options: CaseOptions, *, many: bool) -> None:
        self.prepared = prepared
        self.kernel = kernel
        self.options = options
        self.many = many
        self.number = 0
        self.timed: list[Timed] = []
        self._verdicts: dict[tuple[int, ...], Result] = {}  # by the hashes of the outputs
        self._repeats = Repeats(lambda: prepared.all_bounds(options)) if (options.repeat or 1) > 1 else None
        self._beyond: Result = {}  # the first verdict on outputs beyond their error bound

    def once(self, ready: Callable[[], None] | None = None) -> Result:
        """Call once; return the verdict: status, reason, outputs. ready runs directly before the call."""
        self.fill()
        if ready is not None:
            ready()
        self.number += 1
        result = self._once()
        if self.number > 1 and result["status"] not in GOES_ON:
            result["reason"] = f"repeat {self.number}, after right ones: {result['reason']}"
        return self._of_all_calls(result) | {"repeats": self.number}

    def _of_all_calls(self, result: Result) -> Result:
        """A verdict with what all calls say: how outputs vary, and the error bound that an earlier call broke."""
        if result.get("beyond_bound"):
            self._beyond = self._beyond or {key: result[key] for key in ("beyond_bound", "outputs")}
        elif result["status"] in GOES_ON:
            result = result | self._beyond
        if "outputs" in result:
            verdicts = self._repeats.verdicts if self._repeats is not None and self.number > 1 else {}
            outputs = result["outputs"].items()
            result = result | {"outputs": {name: found | {"repeat": verdicts.get(name)} for name, found in outputs}}
        return result

    def fill(self) -> None:
        """Fill the output buffers for the next call."""
        for buffer in self.prepared.outputs.values():
            buffer.prepare(self.number)

    def _once(self) -> Result:
        try:
            timed = timed_call(self.kernel, self._call)
        except CannotShow as skip:
            return {"status": "skip", "reason": str(skip)}
        except OutOfBounds as damage:
            return failed(str(damage), retire=True)
        except Crashed as crash:
            return {"status": "crash", "reason": str(crash)}
        except BadAnswer as answer:
            return self._or_damage(error("implementation", str(answer)))
        except (AdapterError, KernelLost):
            raise  # the tool's own failure, which says nothing about the implementation; the end of all calls
        except BaseException as raised:  # also SystemExit and KeyboardInterrupt
            text, traceback = words_of(raised)
            return self._or_damage(error("implementation", f"raised {text}") | {"traceback": traceback})
        self.timed.append(replace(timed, glimpse=None))
        result = self._corruption(self._call.inputs) or self._verdict(timed.outcome)
        try:
            timed.check_outputs()
        except OutOfBounds as late:
            return failed(str(late), retire=True)
        if timed.known_answers and result["status"] == "pass":
            result = result | {"status": "mistrusted", "reason": f"{KNOWN}{timed.known_answers}"}
        return result

    def _or_damage(self, wrong: Result) -> Result:
        """The error of a call; a fail where it has also damaged memory or read beside its inputs."""
        damage = self._corruption(self._call.inputs)
        if damage is None:
            return wrong
        return wrong | damage | {"blame": None, "reason": f"{damage['reason']}; {wrong['reason']}"}

    @property
    def _call(self) -> Call:
        """The call of this repeat."""
        return self.prepared.calls[(self.number - 1) % len(self.prepared.calls)]

    def _corruption(self, inputs: Mapping[str, Array | None]) -> Result | None:
        """A fail if canaries or inputs were overwritten, or memory beside the inputs read; None otherwise."""
        for name, buffer in self.prepared.outputs.items():
            if found := buffer.damage():
                return failed(f"{name}: {found}", retire=True)
        for name, expected in self.prepared.digests.items():
            array = inputs[name]
            if array is not None and digest(array) != expected:
                # Later calls would compute from other data.
                return failed(f"input {name!r} was changed")
        for name, array in inputs.items():
            if array is not None and (where := self.prepared.memory.stray(array)):
                return failed(f"{where} of input {name!r}")
        return None

    def _verdict(self, outcome: Outcome) -> Result:
        prepared = self.prepared
        verdict = judge_status(prepared.bound.expect, outcome.status, beyond_design=prepared.bound.beyond_design)
        if verdict is None and not prepared.baseline:
            verdict = Verdict("mistrusted", "nothing was compared")
        if verdict is not None:
            return verdict.as_record()
        if reason := counts_differ(prepared.bound, prepared.baseline, outcome.scalars):
            return failed(reason)
        bits = tuple(digest(buffer.array) for buffer in prepared.outputs.values()) if self.many else ()
        if not self.many or bits not in self._verdicts:
            before = self._small_outputs()
            inputs = prepared.call.inputs
            judged = judge_outputs(
                prepared.bound,
                inputs,
                prepared.baseline,
                prepared.outputs,
                prepared.bounds,
                prepared.references,
                self.options,
                prepared.undecided,
            )
            if disturbance := self._disturbance(before):
                return disturbance | {"retire": True}
            self._verdicts[bits] = judged
            if self._repeats is not None:
                found = outputs_under_test(
                    prepared.bound, prepared.baseline, prepared.outputs, self.options, prepared.undecided
                )
                self._repeats.add(found)
        unverified = missing_counts(prepared.bound, prepared.baseline, outcome.scalars)
        return self._verdicts[bits] | {"unverified": unverified}

    def _small_outputs(self) -> dict[str, int]:
        """Hashes of the small outputs, which take next to no time."""
        buffers = self.prepared.outputs.items()
        return {name: digest(buffer.array) for name, buffer in buffers if buffer.array.nbytes <= _SMALL}

    def _disturbance(self, before: Mapping[str, int]) -> Result | None:
        """A fail or an error if something that the implementation left running changed state during the judging."""
        try:
            require_subnormals()
        except MluopsError as wrong:
            return error("implementation", f"set another floating-point mode while the outputs were judged: {wrong}")
        written = [name for name, now in self._small_outputs().items() if now != before[name]]
        return failed(f"{written[0]} is still being written after the call returned") if written else None

    @property
    def succeeded(self) -> bool:
        """Whether the last call returned SUCCESS."""
        return bool(self.timed) and self.timed[-1].outcome.status == SUCCESS

    @property
    def latencies(self) -> list[float]:
        """Per call the time that the implementation measured, otherwise that of the host, in microseconds."""
        return [each.host_us if (own := each.outcome.latency_us) is None else own for each in self.timed]

    def metrics(self) -> Result:
        """Status, shortest times and workspace of the calls that returned."""
        if not self.timed:
            return {}
        last = self.timed[-1].outcome
        times = [each.outcome.latency_us for each in self.timed if each.outcome.latency_us is not None]
        comparable = self.number > 1 and self._verdicts and not has_undefined_parts(self.prepared.bound)
        return {
            "operator_status": last.status,
            "latency_us": min(times) if times else None,
            "interface_us": min(each.host_us for each in self.timed),
            "workspace_bytes": last.workspace_bytes,
            "programs": [*self.timed[-1].programs],
            "bit_identical": len(self._verdicts) == 1 if comparable else None,
        }


def failed(reason: str, *, retire: bool = False) -> Result:
    """A fail; retire: the worker's memory can't be trusted any more."""
    return {"status": "fail", "reason": reason, "retire": retire}


def error(blame: str, reason: str) -> Result:
    """An error of the implementation, the case or the tool."""
    return {"status": "error", "reason": reason, "blame": blame}
