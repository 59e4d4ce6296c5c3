"""The exchange by a folder, `{dir}`: raw files and plain text tables, for programs without protobuf (docs/exec.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from mluops_cli.implementations.base import Array, BadAnswer, Call, Outcome, OutOfBounds
from mluops_cli.implementations.call_contract import scalar_names
from mluops_cli.implementations.canary_buffer import memory_of
from schemas.suggest import counted
from schemas.tensor_descriptor import Descriptor, dense_strides

_LATENCY: Final = "latency_us"
_WORKSPACE: Final = "workspace_bytes"
_NULL: Final = "null"  # dtype and layout of a tensor whose descriptor is null
_NO_FILE: Final = "-"


def write(call: Call, scratch: Path) -> dict[str, str]:
    """Write case.txt, tensors.txt and the raw files; return the path for `{dir}` in the command."""
    (scratch / "case.txt").write_text("".join(f"{line}\n" for line in _case_lines(call)), encoding="utf-8")
    (scratch / "tensors.txt").write_text("".join(f"{line}\n" for line in _tensor_lines(call)), encoding="utf-8")
    for _, _, file, array in _tensors(call):
        if array is not None:
            memory_of(array).tofile(scratch / file)
    return {"dir": str(scratch)}


def read_only(call: Call, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files that the program may not change, with a name for messages."""
    for role, name, file, array in _tensors(call):
        if role == "input" and array is not None:
            yield f"input {name!r}", scratch / file


def read(call: Call, scratch: Path, status: str) -> Outcome:
    """Copy the output files into the outputs; OutOfBounds where one has another size than before, BadAnswer."""
    for role, name, file, array in _tensors(call):
        if role == "input" or array is None:
            continue
        memory = memory_of(array)
        size = (scratch / file).stat().st_size if (scratch / file).is_file() else 0
        if size != memory.nbytes:
            raise OutOfBounds(
                f"output {name}: its file has {counted(size, 'byte')} after the run, expected {memory.nbytes}"
            )
        with open(scratch / file, "rb") as raw:
            raw.readinto(memory.data)
    results = dict(_results(scratch / "results.txt", scalar_names(call.op)))
    latency, workspace = results.pop(_LATENCY, None), results.pop(_WORKSPACE, None)
    return Outcome(status, latency, workspace, results)


def _tensors(call: Call) -> Iterator[tuple[str, str, str, Array | None]]:
    """Yield role, name, file and array of every tensor."""
    for role, short, arrays in (("input", "in", call.inputs), ("output", "out", call.outputs)):
        for index, (name, array) in enumerate(arrays.items()):
            yield role, name, f"{short}{index}.bin", array


def _case_lines(call: Call) -> Iterator[str]:
    """Yield the operator, then per parameter its name, the count of its numbers, and the numbers."""
    yield call.op
    for name, values in _numbers("", call.params):
        yield " ".join([name, str(len(values)), *(repr(value) for value in values)])


def _numbers(prefix: str, params: Mapping[str, Any]) -> Iterator[tuple[str, list[int | float]]]:
    """Yield the parameters as lists of numbers; a nested one has a dotted name, texts are left out."""
    for name, value in params.items():
        if isinstance(value, Mapping):
            yield from _numbers(f"{prefix}{name}.", value)
            continue
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        if all(isinstance(each, (int, float)) for each in values):
            yield f"{prefix}{name}", [int(each) if isinstance(each, bool) else each for each in values]


def _tensor_lines(call: Call) -> Iterator[str]:
    """Yield per tensor: role, name, dtype, layout, rank, dims, strides in elements, file."""
    for (role, name, file, array), descriptor in zip(_tensors(call), call.descriptors.values(), strict=True):
        given = descriptor or Descriptor(_NULL, _NULL, ())
        strides = given.strides if given.strides is not None else dense_strides(given.dims)
        numbers = (len(given.dims), *given.dims, *strides)
        word = "_".join(name.split())
        yield " ".join([role, word, given.dtype, given.layout, *map(str, numbers), _NO_FILE if array is None else file])


def _results(path: Path, scalars: tuple[str, ...] | None) -> Iterator[tuple[str, Any]]:
    """Yield the results that the program reports, a name and a number per line; BadAnswer for anything else."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, 1):
        if words := line.split():
            try:
                yield words[0], _value(words, scalars)
            except ValueError as wrong:
                raise BadAnswer(f"results.txt line {number} is {line[:80]!r}, expected {wrong}") from None


def _value(words: list[str], scalars: tuple[str, ...] | None) -> float | int:
    """Return the number behind a name; ValueError, with what was expected, where the name takes another kind."""
    name = words[0]
    if scalars is not None and name not in (_LATENCY, _WORKSPACE, *scalars):
        raise ValueError(f"only {', '.join((_LATENCY, _WORKSPACE, *scalars))}")
    kind, called = (float, "number") if name == _LATENCY else (int, "whole number")
    least, limit = (0.0, " of 0 or more") if name in (_LATENCY, _WORKSPACE) else (-math.inf, "")
    with suppress(ValueError):
        (text,) = words[1:]
        value = kind(text)
        if least <= value < math.inf:
            return value
    raise ValueError(f"a name and a {called}{limit}")
