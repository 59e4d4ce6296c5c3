"""The interface between the runner and an implementation under test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from generators.contracts.faults import Fault
from schemas.errors import MluopsError
from schemas.status import SUCCESS
from schemas.tensor_descriptor import Descriptor

Array = np.ndarray[Any, Any]  # of any shape and dtype


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator.

    Attributes:
        op: the operator's name, such as "psamask_forward".
        inputs: one read-only array per input tensor, in the operator's order. Its shape is the tensor's dims, its dtype
            the NumPy dtype of the tensor (ml_dtypes for bfloat16 and float8; complex_half is half with a last axis of 2
            parts), its strides are those of the descriptor (C-contiguous where the descriptor has none). None stands
            for a null data pointer, and for a tensor of 2^31 elements or more, which is never allocated.
        outputs: one writable array per output tensor, likewise. The implementation writes its results into this memory.
            It is filled with sentinel values before each call, or with the value that the contract names.
        params: the parameters by name: int, float, or a list of them.
        descriptors: one descriptor per tensor, inputs before outputs; None for a null descriptor. An output that has
            the name x of an input is called x~2 here.
        faults: how an invalid call deviates from a valid one, null pointers and an omitted workspace.
        file: the case file, None for a call that has none, and in a run: the kernel process doesn't know it.
        node: the case file's Node message without values and criteria, None for a call that has no file. Its metadata
            hold the case's name and parameters alone.

    """

    op: str
    inputs: Mapping[str, Array | None]
    outputs: Mapping[str, Array | None]
    params: Mapping[str, Any]
    descriptors: Mapping[str, Descriptor | None]
    faults: tuple[Fault, ...] = ()
    file: Path | None = None
    node: Any = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call, besides the outputs.

    Attributes:
        status: the operator's status: "SUCCESS", "BAD_PARAM", "NOT_SUPPORTED", "NOT_INITIALIZED", "ALLOC_FAILED",
            "EXECUTION_FAILED", "INTERNAL_ERROR", "ARCH_MISMATCH" or "NUMERICAL_OVERFLOW".
        latency_us: the time of the computation in microseconds, as the implementation's own timer measured it. None
            where it has no timer: the runner then uses its own time of the whole call.
        workspace_bytes: the size of the workspace that the implementation asked for, None where it has no workspace.
        scalars: the operator's scalar results by name, such as num_act_out.

    """

    status: str = SUCCESS
    latency_us: float | None = None
    workspace_bytes: int | None = None
    scalars: Mapping[str, int] = field(default_factory=dict)


class CannotShow(Exception):  # noqa: N818 - not an error: the case is skipped with this reason
    """The implementation can't be given this case (no kernel, or no way to pass the fault on): the case is skipped."""


class OutOfBounds(Exception):  # noqa: N818 - a verdict on the implementation, not an error of ours
    """The implementation wrote outside of the memory it may write to: the case fails with this reason."""


class Crashed(Exception):  # noqa: N818 - a verdict on the implementation, not an error of ours
    """The program under test ended in a way that is no answer: the case is a crash with this reason."""


class BadAnswer(Exception):  # noqa: N818 - a verdict on the implementation, not an error of ours
    """The implementation returned something that has no meaning: the case is an error of the implementation."""


class AdapterError(MluopsError):
    """The adapter between runner and implementation failed, such as on a full disk: an error of the tool, exit code 3.

    It says nothing about the implementation.
    """


@contextmanager
def adapter_errors(adapter: str) -> Iterator[None]:
    """Mark a block as the adapter's own work: what it raises becomes an AdapterError, unless it is a verdict."""
    try:
        yield
    except (CannotShow, OutOfBounds, Crashed, BadAnswer, AdapterError):
        raise
    except Exception as error:
        raise AdapterError(f"{adapter}: {error or type(error).__name__}") from error


class Implementation(ABC):
    """An implementation under test, constructed once per worker process from the OPTIONS of `--impl NAME[:OPTIONS]`.

    The constructor raises InputError for wrong options and UnavailableError for something that the machine lacks.
    A subclass sets `name`, the NAME of `--impl`, and `needs`, one phrase for `mluops implementations`.
    """

    name: ClassVar[str]
    needs: ClassVar[str] = ""

    def __init__(self, options: str = "") -> None:
        self.options = options

    @abstractmethod
    def call(self, call: Call) -> Outcome:
        """Run the operator once and write the results into call.outputs.

        Raises CannotShow for a skip, OutOfBounds for a fail, Crashed for a crash, BadAnswer for an error of the
        implementation, AdapterError for an error of the tool. Any other exception is an error of the implementation.
        """

    @classmethod
    def chosen(cls, options: str) -> type[Implementation]:
        """Return the class that these OPTIONS ask for; one name may stand for bundled kernels and for a callable."""
        return cls

    def close(self) -> None:  # noqa: B027 - most implementations hold nothing
        """Release what the implementation holds (device handles); called once, when the worker ends."""

    def device(self) -> str | None:
        """Return the device's name, such as "MLU370-X8", to look up its peaks; None where the host's cores compute."""
        return None

    def flush_cache(self) -> None:  # noqa: B027 - only devices have caches of their own
        """Evict the operands from the device's caches before a timed call; the runner does this for the host's."""

    @classmethod
    def unavailable(cls) -> str | None:
        """Return why this machine can't run it, None where it can."""
        return None

    @classmethod
    def operators(cls) -> tuple[str, ...] | None:
        """Return the names of the operators it has, None where only a call can tell; other cases are skipped."""
        return None
