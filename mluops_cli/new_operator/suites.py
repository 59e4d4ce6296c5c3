"""The suites of a new operator, made from its contract: each size and parameter in turn, NaN and Inf, zeros."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from generators.contracts.model import Contract
from generators.parameters import Parameter
from generators.specs.yaml_writing import entry_lines
from schemas.dtypes import DTYPES
from schemas.status import SUCCESS

_SMALL: Final = (2, 5, 7, 3, 11, 13, 17, 19)  # sizes that tell dims from each other
_LENGTHS: Final = [1, 2, 7, 63, 64, 65, 129]  # aligned and not
_LONG: Final = 1025
_MOST: Final = 1 << 22  # elements of a tensor of a small suite
_FRACTION: Final = 0.1  # of NaN and Inf
_PLAIN: Final[Mapping[str, Any]] = {"int": 1, "float": 1.0, "bool": False, "string": "word"}

_FLOATING: Final = frozenset(name for name, dtype in DTYPES.items() if dtype.is_float)  # those that NaN can be put into

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SmallCall:
    """Sizes and parameters of a small legal call, and the sets of parameters that the given cases have."""

    sizes: Mapping[str, int]
    params: Mapping[str, Any]
    observed: Sequence[Mapping[str, Any]] = field(default=())


def small_call(contract: Contract, observed: Sequence[Mapping[str, Any]]) -> SmallCall:
    """Small sizes, each another; parameters as in the first of the given cases, but those that are dims."""
    names = [*contract.sizes, *(each.name for each in dim_parameters(contract))]
    numbers = {name: _SMALL[index % len(_SMALL)] for index, name in enumerate(names)}
    given = observed[0] if observed else {}
    params = {each.name: numbers.get(each.name, _value(each, given)) for each in contract.parameters}
    return SmallCall({name: numbers[name] for name in contract.sizes}, params, observed)


def dim_parameters(contract: Contract) -> list[Parameter]:
    """The parameters that are dims of tensors."""
    words = {dim.text for tensor in contract.tensors.values() for dim in tensor.dims}
    return [parameter for parameter in contract.parameters if parameter.name in words]


def _value(parameter: Parameter, given: Mapping[str, Any]) -> Any:
    """A parameter of the given ones, else its default, else a plain value; a float with its point."""
    plain = _PLAIN[parameter.kind] if parameter.default is None else parameter.default
    value = given.get(parameter.name, [plain] * parameter.length if isinstance(parameter.length, int) else plain)
    if parameter.kind != "float":
        return value
    return [float(each) for each in value] if isinstance(value, list) else float(value)


def suite_lines(contract: Contract, call: SmallCall) -> dict[str, list[str]]:
    """The lines of each suite but network; a suite without entries is an empty list."""
    made = {
        "boundary": _boundary(contract, call),
        "general": _general(contract, call),
        "nan_inf": _nan_inf(contract, call),
        "zero_element": _zero_element(contract, call),
        "invalid": iter([("small", _entry(call, derive=True))]),
        "demo": _demo(contract, call),
    }
    return {
        suite: [line for name, entry in entries for line in entry_lines(name, entry)] for suite, entries in made.items()
    }


def _entry(call: SmallCall, sizes: Mapping[str, int] | None = None, left_out: str = "", **more: Any) -> Entry:
    """An entry with the small sizes and parameters, some of them exchanged, one of them left out."""
    given = {name: value for name, value in {**call.sizes, **(sizes or {})}.items() if name != left_out}
    params = {name: value for name, value in {**call.params, **more.pop("params", {})}.items() if name != left_out}
    entry: Entry = {}
    if given:
        entry["sizes"] = given
    if params:
        entry["params"] = params
    return entry | more


def _with_dtypes(contract: Contract, entry: Entry, only: Collection[str] = DTYPES) -> Entry:
    """The entry with an axis of dtypes, those of only, for each tensor that has several and follows no other."""
    axes = {
        f"{role}.{tensor.name}.dtype": [dtype for dtype in tensor.dtypes if dtype in only]
        for role, tensors in (("inputs", contract.inputs), ("outputs", contract.outputs))
        for tensor in tensors
        if len(tensor.dtypes) > 1 and tensor.same_dtype_as is None
    }
    matrix = {**entry.get("matrix", {}), **{path: dtypes for path, dtypes in axes.items() if dtypes}}
    return {**entry, "matrix": matrix} if matrix else entry


def _largest(contract: Contract, call: SmallCall, changed: Mapping[str, int]) -> int:
    """The elements of the largest tensor of a call, with some sizes and parameters changed."""
    env = {**call.sizes, **call.params, **changed}
    return max(math.prod(contract.shape(name, env)) for name in contract.tensors)


def _lengths(contract: Contract, call: SmallCall, name: str) -> list[int]:
    """The lengths of a size or parameter that make no vast tensor; 1 always does."""
    return [length for length in _LENGTHS if length == 1 or _largest(contract, call, {name: length}) <= _MOST]


def _boundary(contract: Contract, call: SmallCall) -> Iterator[tuple[str, Entry]]:
    ones = dict.fromkeys(call.sizes, 1)
    dims = {each.name: 1 for each in dim_parameters(contract)}
    yield "one_element", _with_dtypes(contract, _entry(call, ones, params=dims))
    for size in call.sizes:
        if _largest(contract, call, {**ones, **dims, size: _LONG}) <= _MOST:
            yield f"long_{size.lower()}", _entry(call, {**ones, size: _LONG}, params=dims)


def _general(contract: Contract, call: SmallCall) -> Iterator[tuple[str, Entry]]:
    for size in call.sizes:
        entry = _entry(call, left_out=size, matrix={f"sizes.{size}": _lengths(contract, call, size)})
        yield f"sizes_{size.lower()}", _with_dtypes(contract, entry)
    dims = {each.name for each in dim_parameters(contract)}
    for name in sorted(dims, key=list(call.params).index):
        yield (
            name.lower(),
            _with_dtypes(
                contract, _entry(call, left_out=name, matrix={f"params.{name}": _lengths(contract, call, name)})
            ),
        )
    sets = [{name: value for name, value in each.items() if name not in dims} for each in call.observed]
    for number, params in enumerate({repr(each): each for each in sets}.values(), 1):
        if number > 1:  # the first stands in all other entries
            yield f"params_{number}", _entry(call, params=params)
    for parameter in contract.parameters:
        if parameter.kind == "bool" and parameter.length is None:
            axis = {f"params.{parameter.name}": [False, True]}
            yield f"{parameter.name.lower()}_both", _entry(call, left_out=parameter.name, matrix=axis)


def _nan_inf(contract: Contract, call: SmallCall) -> Iterator[tuple[str, Entry]]:
    env = {**call.sizes, **call.params}
    marked = [
        tensor
        for tensor in contract.inputs
        if _FLOATING & set(tensor.dtypes) and not tensor.finite and math.prod(contract.shape(tensor.name, env)) > 1
    ]
    for name, marks in (("nan", ("nan",)), ("inf", ("inf",)), ("nan_inf", ("nan", "inf"))):
        inputs = {each.name: {"dist": {**(each.values or {}), **dict.fromkeys(marks, _FRACTION)}} for each in marked}
        if inputs:
            yield name, _with_dtypes(contract, _entry(call, inputs=inputs), _FLOATING)


def _zero_element(contract: Contract, call: SmallCall) -> Iterator[tuple[str, Entry]]:
    for size in call.sizes:
        status = contract.zero_elements.get(size, SUCCESS)
        expected = {} if status == SUCCESS else {"expect": status}
        yield f"no_{size.lower()}", _entry(call, {size: 0}, **expected)


def _demo(contract: Contract, call: SmallCall) -> Iterator[tuple[str, Entry]]:
    yield "small", _with_dtypes(contract, _entry(call))
    yield from list(_zero_element(contract, call))[:1]
