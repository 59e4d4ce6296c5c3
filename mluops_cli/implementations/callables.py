"""A callable `f(op, inputs, outputs, params)` as a kernel: what it is given, what its answers mean (DESIGN.md)."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Final

import numpy as np

from generators.contracts.faults import (
    NULL_HANDLE,
    NULL_WORKSPACE_SIZE,
    WORKSPACE_SHORT,
    Fault,
    tensors_with,
)  # fmt: skip
from generators.contracts.model import Violation
from mluops_cli.implementations.base import Array, BadAnswer, Call, CannotShow, Outcome, OutOfBounds
from mluops_cli.implementations.memory import CanaryBuffer, workspace
from mluops_cli.implementations.scalars import scalar_names
from mluops_cli.implementations.violations import violations
from schemas.errors import InputError
from schemas.status import SUCCESS, status_name

_HANDLE: Final = object()  # what a callable that takes `handle` gets, None for the fault null_handle
# Given where the contract is broken, so that its size can't be asked for: enough, and never touched by us (nothing that
# is computed in it would be judged).
_SPARE_WORKSPACE: Final = 1 << 28
_SHOWN_BY_DESCRIPTORS: Final = (".descriptor", ".layout", ".strides")


class CallableKernel:
    """A callable, its signature read once; shared by `python:` and the bundled implementations."""

    def __init__(self, target: Callable[..., Any]) -> None:
        self.target = target
        self.keywords = _keywords(target, "descriptors", "handle")
        self.workspace_size: Callable[..., Any] | None = getattr(target, "workspace_size", None)
        self.size_keywords = _keywords(self.workspace_size, "descriptors", "handle", "size")
        self.synchronize: Callable[[], Any] = getattr(target, "synchronize", None) or _nothing

    def __call__(self, call: Call) -> Outcome:
        """Run it once; CannotShow for what it can't see, OutOfBounds for a damaged workspace, BadAnswer."""
        broken = violations(call)
        self._refuse_invisible(call, broken)
        needed, room = None, None
        if self.workspace_size is not None:
            if broken or any(array is None for array in (*call.inputs.values(), *call.outputs.values())):
                room = CanaryBuffer(_SPARE_WORKSPACE)
            else:
                needed, status = self._ask(call)
                if needed is None:
                    return Outcome(status)
                room = _workspace(needed, call.faults)
            call = replace(call, params={**call.params, "workspace": None if room is None else room.bytes})
        arguments, keywords = _arguments(call, self.keywords)
        self.synchronize()  # so that nothing of before counts
        start = perf_counter()
        answer = self.target(*arguments, **keywords)
        self.synchronize()
        latency = (perf_counter() - start) * 1e6
        if room is not None and (damage := room.damage()):
            raise OutOfBounds(f"workspace: {damage}")
        status, scalars = _answer(answer, call.op)
        return Outcome(status, latency, needed, scalars)

    def _refuse_invisible(self, call: Call, broken: list[Violation]) -> None:
        """CannotShow where nothing that the callable is given shows what is wrong with the case."""
        if "descriptors" not in self.keywords:
            if tensors_with("null_descriptor", call.faults):
                raise CannotShow("takes no keyword 'descriptors', so a null descriptor can't be shown")
            hidden = [each for each in broken if each.rule.endswith(_SHOWN_BY_DESCRIPTORS) or each.rule == "large"]
            if broken and hidden == broken:
                raise CannotShow(f"takes no keyword 'descriptors', so this can't be shown: {hidden[0].text}")
        if NULL_HANDLE in call.faults and "handle" not in self.keywords:
            raise CannotShow("takes no keyword 'handle', so a null handle can't be shown")
        if any(fault.of_workspace for fault in call.faults) and self.workspace_size is None:
            raise CannotShow("has no workspace_size, so it can't be denied a workspace")
        if NULL_WORKSPACE_SIZE in call.faults and "size" not in self.size_keywords:
            raise CannotShow("has no workspace_size that takes the keyword 'size', so a null one can't be shown")

    def _ask(self, call: Call) -> tuple[int | None, str]:
        """The bytes of workspace needed, and SUCCESS; or None and the status it was refused with."""
        assert self.workspace_size is not None
        size = None if NULL_WORKSPACE_SIZE in call.faults else np.zeros(1, np.uint64)
        arguments, keywords = _arguments(call, self.size_keywords, size)
        answer = self.workspace_size(*arguments, **keywords)
        if "size" in self.size_keywords:
            status, _ = _answer(answer, call.op)
            return (None, status) if size is None or status != SUCCESS else (int(size[0]), SUCCESS)
        needed = _whole(answer, "workspace_size returned", "a number of bytes")
        if needed < 0:
            raise BadAnswer(f"workspace_size returned {needed}, expected 0 or more bytes")
        return needed, SUCCESS


def _nothing() -> None:
    """What a callable without asynchronous work has to wait for."""


def _arguments(
    call: Call, keywords: Sequence[str], size: Array | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a callable is given in one use, all its own but for the memory.

    A shape, dtype or stride that it sets on an array is not what is judged, and a list that it changes doesn't show in
    the next use.
    """
    params = {name: list(value) if isinstance(value, list) else value for name, value in call.params.items()}
    named = {
        "descriptors": dict(call.descriptors),
        "handle": None if NULL_HANDLE in call.faults else _HANDLE,
        "size": size,
    }
    return (call.op, _views(call.inputs), _views(call.outputs), params), {name: named[name] for name in keywords}


def _views(arrays: Mapping[str, Array | None]) -> dict[str, Array | None]:
    return {name: None if array is None else array.view() for name, array in arrays.items()}


def _keywords(target: Callable[..., Any] | None, *wanted: str) -> tuple[str, ...]:
    """Which of the wanted keywords the callable takes; none where it hides its signature."""
    if target is None:
        return ()
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return ()
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return tuple(name for name in wanted if anything or name in named)


def _workspace(needed: int, faults: tuple[Fault, ...]) -> CanaryBuffer | None:
    if not any(fault.of_workspace for fault in faults):
        return workspace(needed)
    if needed == 0:
        raise CannotShow("asks for a workspace of 0 bytes, so it can't be denied one")
    return workspace(needed - 1) if WORKSPACE_SHORT in faults else None


def _answer(answer: Any, op: str) -> tuple[str, dict[str, int]]:
    """Status and scalars of what a callable returned; BadAnswer for anything else."""
    if not isinstance(answer, Mapping):
        return _status(answer), {}
    known = scalar_names(op)
    for name in answer:
        if known is not None and name not in ("status", *known):
            raise BadAnswer(f"returned a dict with the key {name!r}, expected only {' and '.join(('status', *known))}")
    scalars = {str(name): _whole(value, f"returned {name} as") for name, value in answer.items() if name != "status"}
    return _status(answer.get("status")), scalars


def _status(answer: Any) -> str:
    if answer is None:
        return SUCCESS
    wanted = "None, a status (number or name), or a dict of status and scalars"
    try:
        return status_name(answer if isinstance(answer, str) else _whole(answer, "returned", wanted))
    except InputError as unknown:
        raise BadAnswer(f"returned an {unknown}") from None


def _whole(value: Any, what: str, wanted: str = "a whole number") -> int:
    """The value as an int; BadAnswer where it is none."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise BadAnswer(f"{what} a value of type {type(value).__name__}, expected {wanted}")
