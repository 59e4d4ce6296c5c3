"""What an implementation under test is to the runner: it answers a call with a status and filled outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from generators.contracts.faults import Fault
from schemas.status import SUCCESS
from schemas.tensor_descriptor import Descriptor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator.

    inputs are read-only arrays by tensor name, outputs arrays to be written in place; None stands for a null pointer
    or a tensor too large to allocate. descriptors hold every tensor, inputs before outputs (one called like an input as
    x~2), None for a null descriptor. params are plain ints, floats and lists. faults tell what the
    caller omits. file is the case file it comes from, if from one.
    """

    op: str
    inputs: Mapping[str, Array | None]
    outputs: Mapping[str, Array | None]
    params: Mapping[str, Any]
    descriptors: Mapping[str, Descriptor | None]
    faults: tuple[Fault, ...] = ()
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call: the operator's status, its time if it was taken, workspace asked for, scalar results."""

    status: str = SUCCESS
    latency_us: float | None = None
    workspace_bytes: int | None = None
    scalars: Mapping[str, int] = field(default_factory=dict)


class CannotShow(Exception):  # noqa: N818 - not an error: the case is skipped with this reason
    """The implementation can't be shown this case (no kernel, no way to see the fault): the case is a skip."""


class OutOfBounds(Exception):  # noqa: N818 - a verdict on the implementation, not an error of ours
    """The implementation wrote outside the memory it was given: the case fails with this reason."""


class Crashed(Exception):  # noqa: N818 - a verdict on the implementation, not an error of ours
    """The program that the implementation is ended as no operator should: the case is a crash with this reason."""


class BadAnswer(Exception):  # noqa: N818 - a verdict on the implementation, not an error of ours
    """What the implementation answered with means nothing: the case is an error of its own with this reason."""


class Implementation(ABC):
    """An implementation under test, made in the worker process from the OPTIONS of `--impl NAME[:OPTIONS]`.

    Constructing one raises InputError for bad options and UnavailableError for what the machine lacks. call() raises
    CannotShow for a skip, OutOfBounds for a fail, Crashed for a crash, BadAnswer for an error; any other exception is
    the implementation's own error.
    """

    name: ClassVar[str]
    needs: ClassVar[str] = ""  # what it needs, for `mluops implementations`

    def __init__(self, options: str = "") -> None:
        self.options = options

    @abstractmethod
    def call(self, call: Call) -> Outcome:
        """Run the operator once."""

    def device(self) -> str | None:
        """The name of the device it runs on, for the table of peaks; None for the cores of this machine."""
        return None

    def flush_cache(self) -> None:  # noqa: B027 - only devices have caches of their own
        """Drive the operands out of the device's caches, before a timed call; those of this machine aren't meant."""

    @classmethod
    def unavailable(cls) -> str | None:
        """Why it can't be used on this machine, None where it can."""
        return None

    @classmethod
    def operators(cls) -> tuple[str, ...] | None:
        """The operators it has, None when that shows only at the call."""
        return None
