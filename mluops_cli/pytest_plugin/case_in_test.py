"""The value of the fixture `mluops_case`: one case with its arrays, which judges what a test computes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.record import Record
from mluops_cli.execution.case.calls import Calls, Prepared, Result
from mluops_cli.execution.case.case_run import facts, run_prepared
from mluops_cli.execution.recorder import record_of
from mluops_cli.implementations.base import Array, BadAnswer, Call, Implementation, Outcome
from mluops_cli.implementations.callables import CallableKernel, read_answer, views
from mluops_cli.implementations.loading import as_callable, load_callable
from mluops_cli.pytest_plugin.outcome import called, settle
from schemas.errors import MluopsError
from schemas.status import SUCCESS
from schemas.suggest import did_you_mean
from schemas.tensor_descriptor import Descriptor


class MluopsCase:
    """One case in a test.

    Attributes:
        id: operator/suite/name. op, suite and tags are those of the case.
        inputs: one read-only array per input tensor; None for a null pointer.
        outputs: one writable array per output tensor, between canaries, filled with values that the baseline doesn't
            contain (or with those that the contract names).
        params: the parameters by name: int, float, or a list of them.
        descriptors: layout, dtype, dims and strides per tensor, inputs before outputs; None for a null descriptor.
        expected_status: the operator statuses that are right, ("SUCCESS",) for a valid case.

    """

    def __init__(self, planned: PlannedCase, prepared: Prepared, options: CaseOptions) -> None:
        self._planned = planned
        self._prepared = prepared
        self._options = options
        bound, call = prepared.bound, prepared.call
        self.id: str = planned.id
        self.op: str = bound.op
        self.suite: str = bound.suite
        self.tags: tuple[str, ...] = bound.tags
        self.expected_status: tuple[str, ...] = bound.expect
        self.inputs: dict[str, Array | None] = views(call.inputs)
        self.outputs: dict[str, Array | None] = views(call.outputs)
        self.params: dict[str, Any] = dict(call.params)
        self.descriptors: dict[str, Descriptor | None] = dict(call.descriptors)
        for buffer in prepared.outputs.values():
            buffer.prepare(0)

    def __repr__(self) -> str:
        return f"<MluopsCase {self.id}>"

    def run(self, kernel: Callable[..., Any] | str) -> Record:
        """Call a kernel and judge it as `mluops run --impl python:` does; return the record of the case.

        kernel is a callable `f(op, inputs, outputs, params)`, a class of such, or the text FILE.py:NAME or
        package.module:NAME. AssertionError, with the diagnosis, where the case fails; the test is skipped where the
        kernel doesn't support the case. MluopsWarning for a pass with a doubt.
        pytest.fail.Exception, in one line, for what is no kernel.
        """
        __tracebackhide__ = True
        settings = WorkerSettings(self._options)
        try:
            loaded = _Kernel(kernel)
        except MluopsError as error:  # the frames of mluops say nothing about it
            raise pytest.fail.Exception(f"mluops_case.run: {error}", pytrace=False) from None
        result = called(loaded, lambda each: run_prepared(self._prepared, each, settings))
        return self._settled(result)

    def check(self, outputs: Mapping[str, Any] | Any = None, status: Any = SUCCESS) -> Record:
        """Judge what the test has computed as `mluops run` does; return the record of the case.

        outputs None: the results are in the arrays of `self.outputs`. Otherwise they are arrays by tensor name, or one
        array where the operator has one output, of the dtypes and shapes of `self.outputs`; where the data decide how
        many rows there are, only the valid rows may be given. status is what a `python:` kernel returns: a status by
        name or number, None for SUCCESS, or a dict of status and scalars. Raises and warns as run does.
        """
        __tracebackhide__ = True
        calls = _Written(self._prepared, _Answer(self._prepared, outputs, status), self._options, many=False)
        result = calls.once()
        return self._settled(facts(self._prepared.bound) | calls.metrics() | result | {"interface_us": None})

    def _settled(self, result: Result) -> Record:
        __tracebackhide__ = True
        record = record_of(self._planned, "python", result)
        for doubt in settle(record):
            warnings.warn(doubt, stacklevel=3)  # where the test calls run or check
        return record


class _Kernel(Implementation):
    """A kernel that a test gives."""

    name = "python"

    def __init__(self, kernel: Callable[..., Any] | str) -> None:
        super().__init__()
        loaded = load_callable(self.name, kernel) if isinstance(kernel, str) else as_callable(kernel, "the kernel")
        self._kernel = CallableKernel(loaded)

    def call(self, call: Call) -> Outcome:
        return self._kernel(call)


class _Written(Calls):
    """A call that the test has made: the output buffers hold its results."""

    def fill(self) -> None:
        """Leave the buffers as they are."""


class _Answer(Implementation):
    """What the test has computed, as the answer of an implementation."""

    name = "python"

    def __init__(self, prepared: Prepared, outputs: Any, status: Any) -> None:
        super().__init__()
        self._prepared = prepared
        self._outputs = outputs
        self._status = status

    def call(self, call: Call) -> Outcome:
        status, scalars = read_answer(self._status, call.op)
        if self._outputs is not None and status == SUCCESS:
            self._store(_by_name(self._outputs, list(call.outputs)))
        return Outcome(status, scalars=scalars)

    def _store(self, given: Mapping[str, Any]) -> None:
        """Put the given outputs into the buffers; BadAnswer where they don't fit."""
        for name, buffer in self._prepared.outputs.items():
            if name not in given:
                raise BadAnswer(f"output {name!r} is missing in the outputs that check was given")
            array = np.asarray(given[name])
            if array.dtype != buffer.array.dtype:
                raise BadAnswer(f"output {name!r} is of {array.dtype}, expected {buffer.array.dtype}")
            place = next((each for each in (buffer.array, buffer.defined) if each.shape == array.shape), None)
            if place is None:
                raise BadAnswer(f"output {name!r} has the shape {array.shape}, expected {buffer.array.shape}")
            np.copyto(place, array)


def _by_name(outputs: Any, names: list[str]) -> Mapping[str, Any]:
    """The outputs by tensor name; BadAnswer for names that the operator doesn't have."""
    if not isinstance(outputs, Mapping):
        if len(names) != 1:
            raise BadAnswer(f"check was given one array, expected a dict of the outputs {', '.join(names)}")
        return {names[0]: outputs}
    for name in outputs:
        if name not in names:
            raise BadAnswer(f"check was given an output {name!r}{did_you_mean(str(name), names)}")
    return outputs
