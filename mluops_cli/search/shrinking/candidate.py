"""A call whose numbers and values can be made smaller one by one, and the entry of a spec that says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from generators.contracts.model import UNKNOWN, Contract, Env, Shape, TensorSpec
from generators.contracts.operator import Operator
from generators.expressions import UNCOMPUTABLE
from generators.operator_registry import operator_named
from mluops_cli.search.shrinking.value_texts import as_dist
from schemas.tensor_descriptor import dense_strides

Array = NDArray[Any]
Dist = Mapping[str, Any]
Entry = dict[str, Any]

_EXPECT: Final = ("expect", "expect_beyond_design")
_SECTIONS: Final = ("inputs", "outputs")


class Symbol(NamedTuple):
    """A number of a call: a size, a parameter, an entry of one, or a dim that differs from what the contract says."""

    section: str  # sizes, params, dims
    name: str
    at: int | None = None

    def __str__(self) -> str:
        return self.name if self.at is None else f"{self.name}[{self.at}]"


@dataclass(frozen=True)
class Candidate:
    """A call.

    frame: what is never changed, in the words of an entry. numbers: each symbol's value. values: per input a `dist`, or
    the values themselves. steps: the last stride of tensors that are dense but for this factor. An illegal call gives
    every shape (shaped); a legal one's shapes follow from its sizes and parameters.
    """

    operator: Operator
    frame: Mapping[str, Any]
    numbers: Mapping[Symbol, int]
    values: Mapping[str, Dist | Array]
    seed: int
    shaped: bool = False
    steps: Mapping[str, int] | None = None

    @property
    def contract(self) -> Contract:
        """The operator's contract."""
        return self.operator.contract

    @property
    def literal(self) -> bool:
        """Whether the values of an input are given themselves."""
        return any(isinstance(each, np.ndarray) for each in self.values.values())

    def with_numbers(self, changed: Mapping[Symbol, int], block: int | None = None) -> Candidate:
        """The call with other numbers.

        Values that are given themselves lose the block of that number along each axis that becomes shorter, the last
        elements where block is None; along an axis that becomes longer they are repeated. UNCOMPUTABLE as env.
        """
        found = replace(self, numbers={**self.numbers, **changed})
        if not self.literal:
            return found
        shapes = found.shapes()
        fitted = {
            name: _cut(each, shapes[name], block) if isinstance(each, np.ndarray) else each
            for name, each in self.values.items()
        }
        return replace(found, values=fitted)

    def with_values(self, tensor: str, values: Dist | Array) -> Candidate:
        """The call with other values of an input."""
        return replace(self, values={**self.values, tensor: values})

    def env(self) -> Env:
        """Sizes and parameters by name; UNCOMPUTABLE where a default has no value."""
        given: Env = {}
        for symbol, value in self.numbers.items():
            if symbol.section == "dims":
                continue
            given[symbol.name] = value if symbol.at is None else (*given.get(symbol.name, ()), value)
        return self.contract.bind({}, given)

    def shapes(self) -> dict[str, Shape]:
        """The shapes of all tensors; UNKNOWN for sizes that depend on the data. UNCOMPUTABLE as env."""
        env = self.env()
        found: dict[str, Shape] = {}
        for name, tensor in self.contract.given(env).tensors.items():
            own = {symbol.at: value for symbol, value in self.numbers.items() if symbol[:2] == ("dims", name)}
            rank = self.frame.get("ranks", {}).get(name)
            if rank is not None:  # not the contract's number of dims: all are given
                found[name] = tuple(own[axis] for axis in range(rank))
                continue
            found[name] = tuple(own[axis] if axis in own else _size(each, env) for axis, each in enumerate(tensor.dims))
        return found

    def dtype_of(self, tensor: TensorSpec) -> str:
        """The dtype of an input."""
        default = tensor.dtypes[0]
        if tensor.same_dtype_as is not None:
            default = self.dtype_of(self.contract.tensors[tensor.same_dtype_as])
        return str(self.frame.get("inputs", {}).get(tensor.name, {}).get("dtype", default))

    def entry(self, folder: Path | None = None, names: str = "") -> Entry:
        """The call as an entry of a spec; values that no `dist` says go to a file NAMES.INPUT.npy in the folder.

        Without names a file is called by its content. UNCOMPUTABLE as env.
        """
        entry: Entry = {key: self.frame[key] for key in ("name",) if key in self.frame} | {"seed": self.seed}
        for symbol, value in self.numbers.items():
            if symbol.section == "dims" or (self.shaped and symbol.section == "sizes"):
                continue
            section = entry.setdefault(symbol.section, {})
            if symbol.at is None:
                section[symbol.name] = self._word(symbol.name, value) if symbol.section == "params" else value
            else:
                section.setdefault(symbol.name, []).append(value)
        shapes = self.shapes() if self.shaped else {}
        contract = self.contract.given(self.env())
        for section in _SECTIONS:
            described = {name: dict(given) for name, given in self.frame.get(section, {}).items()}
            for tensor in contract.inputs if section == "inputs" else contract.outputs:
                own = described.setdefault(tensor.name, {})
                if self.shaped:
                    own |= {"shape": list(shapes[tensor.name])}
                    if self.steps and tensor.name in self.steps:
                        own["strides"] = [self.steps[tensor.name] * each for each in dense_strides(shapes[tensor.name])]
                if dist := self._dist(tensor.name, folder, names):
                    own["dist"] = dist
            if described := {name: own for name, own in described.items() if own}:
                entry[section] = described
        rest = {key: each for key, each in self.frame.items() if key not in ("name", "ranks", *_SECTIONS)}
        return {**entry, **rest}

    def _dist(self, tensor: str, folder: Path | None, names: str) -> Dist:
        values = self.values.get(tensor, {})
        if not isinstance(values, np.ndarray):
            return dict(values)
        if (dist := as_dist(values)) is not None:
            return dist
        name = f"{names}.{tensor}.npy" if names else f"{_digest(values)}.npy"
        if folder is not None:
            file = folder / name
            if names or not file.exists():
                np.save(file, values, allow_pickle=False)
        return {"file": name if names or folder is None else str(file)}

    def _word(self, name: str, value: int) -> int | str:
        choices = {each.name: each.choices or {} for each in self.contract.passed_parameters}
        return next((word for word, number in choices[name].items() if number == value), value)

    @property
    def key(self) -> str:
        """Equal for equal calls."""
        values = {
            name: _digest(each) if isinstance(each, np.ndarray) else each for name, each in sorted(self.values.items())
        }
        return repr((sorted(map(repr, self.numbers.items())), values, self.seed))

    @property
    def drawn(self) -> bool:
        """Whether values of the call depend on its seed. UNCOMPUTABLE as env."""
        shapes = self.shapes()
        return any(
            not isinstance(each, np.ndarray)
            and not {"constant", "sequence", "file"} & set(each)
            and 0 not in shapes[name]
            for name, each in self.values.items()
        )


def candidate_of(op: str, entry: Mapping[str, Any]) -> Candidate:
    """The call that an entry without matrix, zip and sample means, as a search makes them: its numbers are numbers."""
    operator = operator_named(op)
    contract = operator.contract
    illegal = any(key in entry for key in _EXPECT)
    frame: dict[str, Any] = {
        key: each for key, each in entry.items() if key not in ("seed", "sizes", "params", *_SECTIONS)
    }
    values: dict[str, Dist | Array] = {} if illegal else {tensor.name: {} for tensor in contract.inputs}
    shapes: dict[str, Shape] = {}
    strides: dict[str, list[int]] = {}
    for section in _SECTIONS:
        for name, given in entry.get(section, {}).items():
            rest = {key: each for key, each in given.items() if key not in ("shape", "dist", "strides")}
            frame.setdefault(section, {})[name] = rest
            if "dist" in given:
                values[name] = given["dist"]
            if "shape" in given:
                shapes[name] = tuple(given["shape"])
            if "strides" in given:
                strides[name] = given["strides"]
    numbers = dict(_numbers(contract, entry))
    if not shapes:
        return Candidate(operator, frame, numbers, values, entry.get("seed", 1))
    return _shaped(Candidate(operator, frame, numbers, values, entry.get("seed", 1)), shapes, strides, illegal=illegal)


def _numbers(contract: Contract, entry: Mapping[str, Any]) -> Iterator[tuple[Symbol, int]]:
    for name, value in entry.get("sizes", {}).items():
        yield Symbol("sizes", name), value
    choices = {each.name: each.choices or {} for each in contract.passed_parameters}
    for name, value in entry.get("params", {}).items():
        if isinstance(value, (list, tuple)):
            yield from ((Symbol("params", name, at), each) for at, each in enumerate(value))
        else:
            yield Symbol("params", name), choices[name].get(value, value)


def _shaped(
    bare: Candidate, shapes: Mapping[str, Shape], strides: Mapping[str, list[int]], *, illegal: bool
) -> Candidate:
    """The call with its shapes as sizes, and as dims where they differ from what sizes and parameters say."""
    contract, numbers = bare.contract, dict(bare.numbers)
    for parameter in contract.passed_parameters:  # one that follows from the others is left to do so
        own = {symbol: value for symbol, value in numbers.items() if symbol[:2] == ("params", parameter.name)}
        rest = {symbol: value for symbol, value in numbers.items() if symbol not in own}
        if own and parameter.follows and _follows(parameter.name, replace(bare, numbers=rest), own):
            numbers = rest
    env = contract.bind(shapes if illegal else contract.known(shapes), bare.env())
    numbers |= {Symbol("sizes", name): env[name] for name in contract.sizes if name in env}
    frame, steps = dict(bare.frame), {}
    for name, dims in shapes.items():
        expected = contract.tensors[name].dims
        if len(dims) != len(expected):
            frame["ranks"] = {**frame.get("ranks", {}), name: len(dims)}
            numbers |= {Symbol("dims", name, axis): size for axis, size in enumerate(dims)}
        elif illegal:
            differing = [axis for axis, each in enumerate(expected) if _size(each, env) != dims[axis]]
            numbers |= {Symbol("dims", name, axis): dims[axis] for axis in differing}
        if name in strides:
            step = strides[name][-1] if strides[name] else 1
            if list(strides[name]) == [step * each for each in dense_strides(dims)]:
                steps[name] = step
            else:
                section = next(each for each in _SECTIONS if name in frame[each])
                frame[section] = {**frame[section], name: {**frame[section][name], "strides": strides[name]}}
    return replace(bare, frame=frame, numbers=numbers, shaped=illegal, steps=steps)


def _follows(name: str, rest: Candidate, own: Mapping[Symbol, int]) -> bool:
    """Whether a parameter has the value that its default computes from the other numbers."""
    try:
        value = rest.env().get(name)
    except UNCOMPUTABLE:
        return False
    return tuple(own.values()) == (value if isinstance(value, tuple) else (value,))


def _size(expression: Any, env: Env) -> int:
    try:
        return int(expression(env))
    except UNCOMPUTABLE:
        return UNKNOWN


def _cut(array: Array, shape: Shape, block: int | None) -> Array:
    """The array without a block of each axis that becomes shorter, from the start again where one becomes longer."""
    if array.shape == shape or array.ndim != len(shape):
        return array
    if 0 in array.shape:
        return np.zeros(shape, array.dtype)
    for axis, size in enumerate(shape):
        now = array.shape[axis]
        if size < now and block is not None:
            first = min(block * (now - size), max(size, 0))
            array = np.delete(array, np.arange(first, first + now - max(size, 0)), axis)
        elif size != now:
            array = np.take(array, np.arange(max(size, 0)) % now, axis)
    return np.ascontiguousarray(array)


def _digest(array: Array) -> str:
    plain = np.ascontiguousarray(array)
    described = f"{plain.shape} {plain.dtype}".encode()
    return xxhash.xxh3_128_hexdigest(described + plain.reshape(-1).view(np.uint8).tobytes())
