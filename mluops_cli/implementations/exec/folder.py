"""The exchange by a folder, `{dir}`: raw files and plain text tables, for programs without protobuf (docs/exec.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from operator import mul
from pathlib import Path
from typing import Any, Final

from mluops_cli.implementations.base import Array, Call, Outcome, OutOfBounds
from mluops_cli.implementations.memory import memory_of
from schemas.descriptor import Descriptor

_NULL: Final = "null"  # dtype and layout of a tensor whose descriptor is null
_NO_FILE: Final = "-"


def write(call: Call, room: Path) -> dict[str, str]:
    """Lay out case.txt, tensors.txt and the raw files; what stands for `{dir}` in the command."""
    (room / "case.txt").write_text("".join(f"{line}\n" for line in _case_lines(call)), encoding="utf-8")
    (room / "tensors.txt").write_text("".join(f"{line}\n" for line in _tensor_lines(call)), encoding="utf-8")
    for _, _, file, array in _tensors(call):
        if array is not None:
            memory_of(array).tofile(room / file)
    return {"dir": str(room)}


def read(call: Call, room: Path, status: str) -> Outcome:
    """Take the output files into the outputs; OutOfBounds where one has another size than it had."""
    for role, name, file, array in _tensors(call):
        if role == "input" or array is None:
            continue
        memory = memory_of(array)
        size = (room / file).stat().st_size if (room / file).is_file() else 0
        if size != memory.nbytes:
            raise OutOfBounds(f"output {name}: its file has {size} bytes after the run, expected {memory.nbytes}")
        with open(room / file, "rb") as raw:
            raw.readinto(memory.data)
    results = dict(_results(room / "results.txt"))
    latency, workspace = results.pop("latency_us", None), results.pop("workspace_bytes", None)
    return Outcome(
        status,
        latency,
        None if workspace is None else int(workspace),
        {name: int(value) for name, value in results.items()},
    )


def _tensors(call: Call) -> Iterator[tuple[str, str, str, Array | None]]:
    """Role, name, file and array of every tensor."""
    for role, short, arrays in (("input", "in", call.inputs), ("output", "out", call.outputs)):
        for index, (name, array) in enumerate(arrays.items()):
            yield role, name, f"{short}{index}.bin", array


def _case_lines(call: Call) -> Iterator[str]:
    """The operator, then per parameter its name, how many numbers it has, and these."""
    yield call.op
    for name, values in _numbers("", call.params):
        yield " ".join([name, str(len(values)), *(repr(value) for value in values)])


def _numbers(prefix: str, params: Mapping[str, Any]) -> Iterator[tuple[str, list[int | float]]]:
    """The parameters as lists of numbers; a nested one under a dotted name, texts not at all."""
    for name, value in params.items():
        if isinstance(value, Mapping):
            yield from _numbers(f"{prefix}{name}.", value)
            continue
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        if all(isinstance(each, (int, float)) for each in values):
            yield f"{prefix}{name}", [int(each) if isinstance(each, bool) else each for each in values]


def _tensor_lines(call: Call) -> Iterator[str]:
    """Per tensor: role, name, dtype, layout, rank, dims, strides in elements, file."""
    for (role, name, file, array), told in zip(_tensors(call), call.descriptors.values(), strict=True):
        given = told or Descriptor(_NULL, _NULL, ())
        strides = given.strides if given.strides is not None else _dense(given.dims)
        numbers = (len(given.dims), *given.dims, *strides)
        word = "_".join(name.split())
        yield " ".join([role, word, given.dtype, given.layout, *map(str, numbers), _NO_FILE if array is None else file])


def _dense(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(accumulate(reversed(dims[1:]), mul, initial=1))[::-1] if dims else ()


def _results(path: Path) -> Iterator[tuple[str, float]]:
    """What the program tells of its run: a name and a number per line; ValueError for anything else."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(filter(str.strip, lines), 1):
        try:
            name, value = line.split()
            yield name, float(value)
        except ValueError:
            raise ValueError(f"results.txt line {number} is {line!r}, expected a name and a number") from None
