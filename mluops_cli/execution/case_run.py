"""One case in a worker: file -> arrays -> implementation, every repeat judged -> a plain result for the supervisor."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from generators.binding import Bound, bind
from generators.contract import LARGE
from generators.operator import operators
from mluops_cli.execution.buffers import Array, OutputBuffer, digest, is_mapped
from mluops_cli.execution.judgement import counts_differ, has_undefined_parts, judge_outputs
from mluops_cli.implementations.base import Call, CannotShow, Implementation, Outcome, OutOfBounds
from mluops_cli.judging.verdict import Verdict, judge_status
from schemas import proto
from schemas.casefile import CaseFile, read_case
from schemas.errors import InputError, MluopsError
from schemas.status import SUCCESS
from schemas.tensors import TensorRecord
from schemas.values import part_dtype

Result = dict[str, Any]
_GOES_ON: Final = ("pass", "empty", "mistrusted")
_REASON: Final = 2000  # characters of an error's text that go into a record


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case with its arrays; baseline holds the outputs that are compared, none where no success is expected."""

    bound: Bound
    call: Call
    outputs: dict[str, OutputBuffer]
    baseline: dict[str, Array]
    digests: dict[str, int]  # of the inputs whose memory could be written to


@dataclass(slots=True)
class _Runs:
    """What the calls of one case came to."""

    outcomes: list[Outcome] = field(default_factory=list)
    digests: list[tuple[int, ...]] = field(default_factory=list)  # of the outputs, where they are defined


def run_case(task: Mapping[str, Any], implementation: Implementation, repeat: int) -> Result:
    """The result of one case: Record's keys from `status` on, whatever the implementation does short of dying."""
    try:
        with read_case(Path(task["file"])) as file:
            if task["noted"] is not None:
                proto.set_meta(file.node, proto.CaseMeta(**task["noted"]))
            kernels = implementation.operators()
            if kernels is not None and file.op not in kernels:
                return {"status": "skip", "reason": f"{implementation.name} has no kernel of {file.op}"}
            return _run(prepare(file), implementation, repeat)
    except MluopsError as error:
        return _error("case" if error.exit_code == InputError.exit_code else "tool", str(error))
    except Exception as error:
        return _error("tool", f"internal error: {_describe(error)}")


def _run(prepared: Prepared, implementation: Implementation, repeat: int) -> Result:
    result = _facts(prepared.bound)
    runs = _Runs()
    for number in range(repeat):
        result |= _run_once(prepared, implementation, number, runs)
        succeeded = bool(runs.outcomes) and runs.outcomes[-1].status == SUCCESS
        if repeat > 1 and succeeded and not has_undefined_parts(prepared.bound):
            runs.digests.append(tuple(digest(buffer.array) for buffer in prepared.outputs.values()))
        result["repeats"] = number + 1
        if result["status"] not in _GOES_ON:
            if number:
                result["reason"] = f"repeat {number + 1}, after right ones: {result['reason']}"
            break
    return result | _figures(runs)


def _run_once(prepared: Prepared, implementation: Implementation, number: int, runs: _Runs) -> Result:
    """One call and its verdict."""
    for buffer in prepared.outputs.values():
        buffer.prepare(number)
    try:
        outcome = implementation.call(prepared.call)
    except CannotShow as skip:
        return {"status": "skip", "reason": str(skip)}
    except OutOfBounds as damage:
        return _failed(str(damage), retire=True)
    except BaseException as error:  # SystemExit and the like are the implementation's too
        return _error("implementation", f"raised {_describe(error)}")
    runs.outcomes.append(outcome)
    for name, buffer in prepared.outputs.items():
        if found := buffer.damage():
            return _failed(f"{name}: {found}", retire=True)
    for name, expected in prepared.digests.items():
        array = prepared.call.inputs[name]
        if array is not None and digest(array) != expected:
            # Nothing computed from here on would be right.
            return _failed(f"input {name} was changed")
    verdict = judge_status(prepared.bound.expect, outcome.status)
    if verdict is None and not prepared.baseline:
        verdict = Verdict("mistrusted", "nothing was compared")
    if verdict is not None:
        return verdict.as_record()
    if reason := counts_differ(prepared.bound, prepared.baseline, outcome.scalars):
        return _failed(reason)
    return judge_outputs(prepared.bound, prepared.call.inputs, prepared.baseline, prepared.outputs)


def prepare(file: CaseFile) -> Prepared:
    """Everything a call of the case needs; InputError where the file makes no sense."""
    operator = operators().get(file.op)
    bound = bind(file, operator)
    inputs = bound.input_arrays()
    withheld = {
        name
        for name, record in bound.outputs.items()
        if record.absent or name in bound.withheld or record.span >= LARGE or not _holdable(record)
    }
    compared = [name for name, record in bound.outputs.items() if record.judged and name not in withheld]
    baseline = _baseline(bound, inputs, compared) if SUCCESS in bound.expect and compared else {}
    fills = {} if operator is None else {tensor.name: tensor.fill for tensor in operator.contract.outputs}
    outputs = {
        name: OutputBuffer(record.dtype, record.shape, record.strides, baseline.get(name), fills.get(name))
        for name, record in bound.outputs.items()
        if name not in withheld
    }
    call = Call(
        bound.op,
        inputs,
        {name: outputs[name].array if name in outputs else None for name in bound.outputs},
        {name: list(value) if isinstance(value, tuple) else value for name, value in bound.params.items()},
        bound.descriptors,
        bound.faults,
    )
    digests = {name: digest(array) for name, array in inputs.items() if array is not None and not is_mapped(array)}
    return Prepared(bound, call, outputs, baseline, digests)


def _holdable(record: TensorRecord) -> bool:
    return part_dtype(record.dtype)[0].storage is not None


def _baseline(bound: Bound, inputs: Mapping[str, Array | None], compared: Sequence[str]) -> dict[str, Array]:
    """The file's baseline where it is to be used, else what the reference kernel computes."""
    if bound.carries_baseline:
        return {name: bound.outputs[name].array() for name in compared}
    if bound.operator is None:
        raise InputError(f"carries no baseline, and operator {bound.op} has no reference kernel to compute it")
    given: dict[str, Array] = {name: array for name, array in inputs.items() if array is not None}
    shapes = {name: each.dims for name, each in bound.descriptors.items() if each is not None}
    computed = bound.operator.baseline(given, shapes, bound.params)
    for name in compared:
        record, array = bound.outputs[name], computed[name]
        if array.shape != record.shape:
            found, expected = list(record.shape), list(array.shape)
            raise InputError(f"output {name} has shape {found}, the reference kernel says {expected}", record.place)
        if array.dtype != record.dtype.storage:
            computed[name] = array.astype(record.dtype.storage)
    return {name: computed[name] for name in compared}


def _facts(bound: Bound) -> Result:
    """What a report says of the case besides its verdict."""
    meta = bound.file.meta
    roles = {"input": bound.inputs, "output": bound.outputs}
    return {
        "expected_status": list(bound.expect),
        "place": meta.place if meta is not None else "",
        "tags": list(bound.tags),
        "tensors": {
            name: {"role": role, "dtype": record.dtype.name, "layout": record.layout, "dims": list(record.shape)}
            for role, records in roles.items()
            for name, record in records.items()
        },
    }


def _figures(runs: _Runs) -> Result:
    """Status, best time and workspace of the calls that came back."""
    if not runs.outcomes:
        return {}
    last = runs.outcomes[-1]
    times = [outcome.latency_us for outcome in runs.outcomes if outcome.latency_us is not None]
    return {
        "operator_status": last.status,
        "latency_us": min(times) if times else None,
        "workspace_bytes": last.workspace_bytes,
        "bit_identical": len(set(runs.digests)) == 1 if len(runs.digests) > 1 else None,
    }


def _failed(reason: str, *, retire: bool = False) -> Result:
    """retire: the worker's memory can't be trusted any more."""
    return {"status": "fail", "reason": reason, "retire": retire}


def _error(blame: str, reason: str) -> Result:
    return {"status": "error", "reason": reason, "blame": blame}


def _describe(error: BaseException) -> str:
    """Type, text and last line of an exception, however hostile its text is."""
    kind = type(error).__name__
    text = _attempt(lambda: str(error), "an exception without a readable text")
    text = text if len(text) <= _REASON else text[:_REASON] + " ..."
    frames = _attempt(lambda: traceback.extract_tb(error.__traceback__), [])
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{kind}: {text}{where}" if text else f"{kind}{where}"


def _attempt(ask: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return ask()
    except BaseException:
        return otherwise
