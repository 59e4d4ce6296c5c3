"""Runs one case in a worker: reads the file, calls the implementation, returns a plain result to the supervisor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from generators.contracts.binding import bind
from generators.contracts.bound_case import BoundCase
from generators.contracts.model import LARGE
from generators.operator_registry import operators
from generators.parameters import as_lists
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.core.exceptions import describe
from mluops_cli.execution.case.calls import GOES_ON, Calls, Meter, Prepared, Result, error
from mluops_cli.execution.case.kept_outputs import keep_outputs
from mluops_cli.execution.case.output_buffers import Array, OutputBuffer, digest, is_mapped
from mluops_cli.execution.case.relation_checks import check_relations
from mluops_cli.execution.kernel_process.case_memory import HOST, CaseMemory
from mluops_cli.execution.kernel_process.timed_call import Kernel
from mluops_cli.implementations.base import Call
from mluops_cli.results.kept_cases import outputs_path
from schemas.casefiles.enum_numbering import CURRENT
from schemas.casefiles.reading import SHORT, CaseFile, read_case
from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError, MluopsError, SourceLocation
from schemas.status import SUCCESS
from schemas.wire.value_fields import part_dtype

__all__ = ["Prepared", "facts", "prepare", "run_case", "run_prepared"]

_TWICE: Final = 64 << 20  # bytes of inputs that are placed twice, at most


def run_case(
    task: Mapping[str, Any],
    implementation: Kernel,
    settings: WorkerSettings,
    meter: Meter | None = None,
    memory: CaseMemory = HOST,
    tell: Callable[[Result], None] | None = None,
) -> Result:
    """The result of one case: Record's keys from `status` on. No exception of the implementation leaves this function.

    For the supervisor besides: retire, no other case may come to this worker; again, its result is worth nothing.
    memory: where the implementation finds its tensors. tell: called before the first call with the keys that describe
    the case, so that they are known even if this process ends in the call. KernelLost where no call can follow.
    """
    try:
        with read_case(Path(task["file"]), task.get("enum_numbering", CURRENT)) as file:
            file.take_metadata(task["manifest_meta"])
            kernels = implementation.operators()
            if kernels is not None and file.op not in kernels:
                expect = list(file.meta.expect) if file.meta is not None else []
                reason = f"{implementation.name} has no kernel of {file.op}"
                return {"status": "skip", "reason": reason, "expected_status": expect}
            if settings.options.relations and not task.get("relations", True):
                settings = replace(settings, options=replace(settings.options, relations=False))
            prepared = prepare(file, settings.options, memory)
            if tell is not None:
                tell(facts(prepared.bound))
            result = run_prepared(prepared, implementation, settings, meter)
            if settings.keep_outputs is not None and result["status"] == "fail":
                target = outputs_path(Path(settings.out), task["case"])
                result["outputs_kept"] = keep_outputs(prepared, target, settings.keep_outputs)
            return result
    except InputError as wrong:
        return error("case", str(_as_planned(wrong, task)))
    except MluopsError as wrong:
        return error("tool", str(wrong)) | _once_more(wrong)
    except Exception as wrong:
        return error("tool", f"internal error: {describe(wrong)}") | _once_more(wrong)


def _once_more(wrong: Exception) -> Result:
    """Keys that ask for another run in a fresh worker, where this one has run out of memory or descriptors."""
    cause = wrong.__cause__ or wrong
    short = isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno in SHORT)
    return {"retire": True, "again": True} if short else {}


def _as_planned(wrong: InputError, task: Mapping[str, Any]) -> InputError:
    """The error with the file's name as it was given to the command, and with a source location in any case."""
    place = wrong.place or SourceLocation(task["file"])
    shown = task.get("shown", task["file"])
    return InputError(wrong.message, replace(place, file=shown) if place.file == task["file"] else place)


def run_prepared(
    prepared: Prepared, implementation: Kernel, settings: WorkerSettings, meter: Meter | None = None
) -> Result:
    """The calls of a case and what they say, as keys of a record; see run_case."""
    repeat = settings.options.repeat or 1
    many = meter is not None or repeat > 1
    calls = Calls(prepared, implementation, settings.options, many=many)
    result = calls.once()
    while meter is None and calls.number < repeat and result["status"] in GOES_ON:
        result = calls.once()
    if settings.options.relations and calls.succeeded and result["status"] in ("pass", "mistrusted"):
        result = result | check_relations(prepared, implementation, settings.options)
    kept = {key: result[key] for key in ("relations",) if key in result}
    if meter is not None and calls.succeeded and result["status"] in ("pass", "mistrusted"):
        return facts(prepared.bound) | calls.metrics() | kept | meter.measure(calls, result)
    return facts(prepared.bound) | calls.metrics() | result


def prepare(file: CaseFile, options: CaseOptions | None = None, memory: CaseMemory = HOST) -> Prepared:
    """Everything that a call of the case needs; InputError where the file is inconsistent.

    Everything besides the call is computed from arrays of this process, which the implementation can't reach.
    """
    options = options or CaseOptions()
    operator = operators().get(file.op)
    bound = bind(file, operator)
    inputs = bound.input_arrays()
    omitted = {
        name
        for name, record in bound.outputs.items()
        if record.absent or name in bound.omitted or record.span >= LARGE or not _holdable(record)
    }
    compared = [name for name in bound.compared if name not in omitted]
    baseline = bound.baseline(inputs, compared) if SUCCESS in bound.expect and compared else {}
    fills = {} if operator is None else {tensor.name: tensor.fill for tensor in operator.contract.outputs}
    outputs = {
        name: OutputBuffer(record.dtype, record.shape, record.strides, baseline.get(name), fills.get(name), memory)
        for name, record in bound.outputs.items()
        if name not in omitted
    }
    fixed = {name: array is not None and is_mapped(array) for name, array in inputs.items()}

    def placed(*, at_start: bool) -> dict[str, Array | None]:
        return {
            name: None if array is None else memory.placed(array, fixed=fixed[name], at_start=at_start)
            for name, array in inputs.items()
        }

    call = Call(
        bound.op,
        placed(at_start=False),
        {name: outputs[name].array if name in outputs else None for name in bound.outputs},
        as_lists(bound.params),
        bound.descriptors,
        bound.faults,
        file.path,
        file.node,
    )
    calls = (call, replace(call, inputs=placed(at_start=True))) if _takes_turns(options, inputs) else (call,)
    digests = {name: digest(array) for name, array in inputs.items() if array is not None and not fixed[name]}
    references, bounds = baseline, {}
    if baseline and options.bound != "off":
        references = bound.references(inputs, baseline)
        bounds = bound.error_bounds(inputs, references, options.accumulate)
    undecided = bound.undecided(inputs) if baseline else {}
    return Prepared(bound, calls, outputs, baseline, references, bounds, undecided, digests, memory)


def _takes_turns(options: CaseOptions, inputs: Mapping[str, Array | None]) -> bool:
    """Whether repeats get the inputs at two places in turn; a measurement calls with the same memory each time."""
    size = sum(array.nbytes for array in inputs.values() if array is not None)
    return (options.repeat or 1) > 1 and not options.measured and size <= _TWICE


def _holdable(record: TensorRecord) -> bool:
    return part_dtype(record.dtype)[0].storage is not None


def facts(bound: BoundCase) -> Result:
    """The keys of the record that describe the case."""
    meta = bound.file.meta
    roles = ["input"] * len(bound.inputs) + ["output"] * len(bound.outputs)
    return {
        "expected_status": list(bound.expect),
        "beyond_design": bound.beyond_design,
        "place": meta.place if meta is not None else "",
        "tags": list(bound.tags),
        "params": as_lists(bound.params),
        "tensors": {
            name: {"role": role, "dtype": record.dtype.name, "layout": record.layout, "dims": list(record.shape)}
            for role, (name, record) in zip(roles, bound.records.items(), strict=True)
        },
    }
