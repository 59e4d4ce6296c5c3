"""Calls of a Python callable `f(op, inputs, outputs, params)`: its arguments and the meaning of its answers.

`python:` and the bundled implementations use it. The callable may take the keywords `descriptors` (name -> Descriptor
or None) and `handle` (None for a null handle). Two attributes are optional. `workspace_size`, called likewise, returns
the bytes of workspace that the call needs, or writes them to `size[0]` where it takes the keyword `size`; the workspace
is then `params["workspace"]`, a flat uint8 array. `synchronize()` waits for work that the call has only started.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Final

import numpy as np

from generators.contracts.conditions import Violation
from generators.contracts.faults import NULL_HANDLE, NULL_PARAMETERS, NULL_WORKSPACE_SIZE, tensors_with
from mluops_cli.implementations.base import Array, BadAnswer, Call, CannotShow, Outcome, OutOfBounds
from mluops_cli.implementations.call_contract import scalar_names, violations
from mluops_cli.implementations.left_behind import Watch, folder_of
from mluops_cli.implementations.workspace import granted_bytes, poisoned, size_is_asked
from schemas.errors import InputError
from schemas.status import SUCCESS, status_name

_HANDLE: Final = object()  # the argument `handle` of a call whose handle is not null
_NEED_DESCRIPTORS: Final = (".descriptor", ".layout", ".strides", "large")  # ends of rules that arrays don't show


class CallableKernel:
    """A callable whose signature is read once."""

    def __init__(self, target: Callable[..., Any]) -> None:
        self.target = target
        self.folder = folder_of(target)
        self.keywords = _keywords(target, "descriptors", "handle")
        self.workspace_size: Callable[..., Any] | None = getattr(target, "workspace_size", None)
        self.size_keywords = _keywords(self.workspace_size, "descriptors", "handle", "size")
        self.synchronize: Callable[[], Any] = getattr(target, "synchronize", None) or _nothing

    # The clock is a default: a module's attribute is replaced more easily.
    def __call__(self, call: Call, *, _clock: Callable[[], float] = perf_counter) -> Outcome:
        """Call it once.

        CannotShow for a fault that it can't see, OutOfBounds for a corrupt workspace or something left behind,
        BadAnswer.
        """
        self._refuse_invisible(call, violations(call))
        needed, workspace = None, None
        if self.workspace_size is not None:
            if size_is_asked(call):
                needed, status = self._ask(call)
                if needed is None:
                    return Outcome(status)
            size = granted_bytes(call, needed)
            workspace = None if size is None else poisoned(size)
            call = replace(call, params={**call.params, "workspace": None if workspace is None else workspace.bytes})
        arguments, keywords = _arguments(call, self.keywords)
        self.synchronize()  # work of an earlier call must not count
        watch = Watch(self.folder)
        start = _clock()
        answer = self.target(*arguments, **keywords)
        self.synchronize()
        status, scalars = read_answer(answer, call.op)  # an answer may compute when it is read
        del answer, arguments, keywords  # what the callable put there may compute when it is released
        end = _clock()
        if watch.settle():
            end = _clock()
        watch.check()
        if workspace is not None and (corruption := workspace.corruption()):
            raise OutOfBounds(f"workspace: {corruption}")
        return Outcome(status, (end - start) * 1e6, needed, scalars)

    def _refuse_invisible(self, call: Call, broken: list[Violation]) -> None:
        """Raise CannotShow where none of the callable's arguments shows what is wrong with the call."""
        if "descriptors" not in self.keywords:
            if tensors_with("null_descriptor", call.faults):
                raise CannotShow("takes no keyword 'descriptors', so a null descriptor can't be shown")
            hidden = [each for each in broken if each.rule.endswith(_NEED_DESCRIPTORS)]
            if broken and hidden == broken:
                raise CannotShow(f"takes no keyword 'descriptors', so this can't be shown: {hidden[0].text}")
        if NULL_HANDLE in call.faults and "handle" not in self.keywords:
            raise CannotShow("takes no keyword 'handle', so a null handle can't be shown")
        if any(fault.of_workspace for fault in call.faults) and self.workspace_size is None:
            raise CannotShow("has no workspace_size, so no workspace can be too small or null")
        for fault in call.faults:
            if fault == NULL_PARAMETERS or (fault.of_size_query and fault != NULL_WORKSPACE_SIZE):
                raise CannotShow(f"a Python callable can't be shown that {fault.text}")
        if NULL_WORKSPACE_SIZE in call.faults and "size" not in self.size_keywords:
            raise CannotShow("has no workspace_size that takes the keyword 'size', so a null one can't be shown")

    def _ask(self, call: Call) -> tuple[int | None, str]:
        """Return the bytes of workspace needed and SUCCESS, or None and the status of the refusal."""
        assert self.workspace_size is not None
        size = None if NULL_WORKSPACE_SIZE in call.faults else np.zeros(1, np.uint64)
        arguments, keywords = _arguments(call, self.size_keywords, size)
        answer = self.workspace_size(*arguments, **keywords)
        if "size" in self.size_keywords:
            status, _ = read_answer(answer, call.op)
            return (None, status) if size is None or status != SUCCESS else (int(size[0]), SUCCESS)
        needed = _whole(answer, "workspace_size returned", "a number of bytes")
        if needed < 0:
            raise BadAnswer(f"workspace_size returned {needed}, expected 0 or more bytes")
        return needed, SUCCESS


def _nothing() -> None:
    """Stand in for the synchronize of a callable without asynchronous work."""


def _arguments(
    call: Call, keywords: Sequence[str], size: Array | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments and keywords of one call: new views, lists and dicts, which share memory with the case only.

    A shape, dtype or stride that the callable sets on a view does not reach the judge, a list that it changes does not
    reach the next call.
    """
    params = {name: list(value) if isinstance(value, list) else value for name, value in call.params.items()}
    named = {
        "descriptors": dict(call.descriptors),
        "handle": None if NULL_HANDLE in call.faults else _HANDLE,
        "size": size,
    }
    return (call.op, views(call.inputs), views(call.outputs), params), {name: named[name] for name in keywords}


def views(arrays: Mapping[str, Array | None]) -> dict[str, Array | None]:
    """Return a new view of each array: a shape that is set on one is not set on the array."""
    return {name: None if array is None else array.view() for name, array in arrays.items()}


def _keywords(target: Callable[..., Any] | None, *wanted: str) -> tuple[str, ...]:
    """Return the wanted keywords that the callable takes; none where its signature can't be read."""
    if target is None:
        return ()
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return ()
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return tuple(name for name in wanted if anything or name in named)


def read_answer(answer: Any, op: str) -> tuple[str, dict[str, int]]:
    """Return the status and the scalars that a callable returned; BadAnswer for anything else."""
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
    """Return the value as an int; BadAnswer where it is no integer."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise BadAnswer(f"{what} a value of type {type(value).__name__}, expected {wanted}")
