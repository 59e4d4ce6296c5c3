"""The values of an entry as a case has them, words, expressions, statuses and faults resolved; and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from generators.contracts.conditions import Tensor
from generators.contracts.faults import (
    NULL_HANDLE,
    NULL_PARAMETERS,
    NULL_WORKSPACE_SIZE,
    SIZE_QUERY_NULL_HANDLE,
    WORKSPACE_NULL,
    WORKSPACE_SHORT,
    Fault,
    null_descriptor,
    null_pointer,
    size_query_null_descriptor,
)  # fmt: skip
from generators.contracts.model import Contract, Env, Parameter, Shape
from generators.expressions import UNCOMPUTABLE, parse_expression
from generators.parameters import c_float, misshapen
from generators.specs.yaml_loader import KeyPath, key_text
from schemas.dtypes import dtype_named
from schemas.status import status_name
from schemas.suggest import did_you_mean
from schemas.tensor_descriptor import sparse_strides

Raw = Mapping[str, Any]
_EXPECTED: Final = {"int": "an integer", "float": "a number", "bool": "true or false"}


class Problem(Exception):  # noqa: N818  not for users: it becomes an InputError with a place
    """What is wrong with an entry, and at which key path below it."""

    def __init__(self, path: KeyPath, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message

    @property
    def text(self) -> str:
        """The key path below the entry and the message."""
        return f"{key_text(self.path)}: {self.message}".removeprefix(": ")


def convert_parameter(parameter: Parameter, value: Any) -> Any:
    """A parameter's value as the case has it: a word's value, a tuple instead of a list; Problem where it is none."""
    if isinstance(value, list):
        words = parameter.choices is not None and parameter.length is not None
        value = tuple(_one_value(parameter, each) if words else _of_kind(parameter.kind, each) for each in value)
    else:
        value = _one_value(parameter, value)
    wrong = misshapen(parameter, value)
    if wrong is not None:
        raise Problem(("params", parameter.name), wrong)
    return value


def _one_value(parameter: Parameter, value: Any) -> Any:
    """One value as the case has it: that of a word, or a number as the kind has it."""
    if not isinstance(value, str) or (parameter.choices is None and parameter.kind == "string"):
        return _of_kind(parameter.kind, value)
    choices = parameter.choices or {}
    if value not in choices:
        hint = did_you_mean(value, choices) if choices else f": expected {_EXPECTED[parameter.kind]}"
        raise Problem(("params", parameter.name), f"unknown word {value!r} for {parameter.name}{hint}")
    return choices[value]


def convert_parameters(contract: Contract, given: Raw) -> Env:
    """The parameters of a contract that are given, each as the case has it; others as they are; Problem as above."""
    known = {each.name: each for each in contract.parameters}
    return {name: convert_parameter(known[name], value) if name in known else value for name, value in given.items()}


def _of_kind(kind: str, value: Any) -> Any:
    """A number as the kind has it, where that is possible: a C float, or a truth value for 0 and 1."""
    if kind == "float" and type(value) in (int, float):
        return c_float(value)
    return bool(value) if kind == "bool" and type(value) is int and value in (0, 1) else value


def evaluate_size(text: str, env: Env, path: KeyPath) -> int:
    """The size that an expression computes; Problem where it computes none."""
    try:
        value = parse_expression(text)(env)
    except ValueError as error:
        raise Problem(path, str(error)) from None
    except NameError as error:
        raise Problem(path, f"{text!r} reads {error.name}{did_you_mean(str(error.name), env)}") from None
    except UNCOMPUTABLE as error:
        raise Problem(path, f"{text!r} can't be computed: {error}") from None
    if type(value) is not int or value < 0:  # a comparison is an int, but no size
        raise Problem(path, f"{text!r} is {value}, expected an integer of 0 or more")
    return value


def convert_dtype(name: str) -> str:
    """Our name of a dtype that the grammar knows."""
    dtype = dtype_named(name)
    assert dtype is not None  # the grammar knows them all
    return dtype.name


def convert_strides(raw: list[int], dims: Shape, path: KeyPath) -> Shape | None:
    """Strides in elements, None where they are dense; Problem where there is not one per dim."""
    try:
        return sparse_strides(dims, raw)
    except ValueError as error:
        raise Problem(path, str(error)) from None


def convert_expect(raw: Any) -> tuple[str, ...]:
    """The names of the accepted statuses, each once."""
    return tuple(dict.fromkeys(status_name(each) for each in (raw if isinstance(raw, list) else [raw])))


def convert_faults(raw: Raw) -> tuple[Fault, ...]:
    """The invalid-call faults of an entry."""
    flags = (NULL_HANDLE, NULL_PARAMETERS, SIZE_QUERY_NULL_HANDLE, NULL_WORKSPACE_SIZE)
    found = [fault for fault in flags if raw.get(fault.kind)]
    found += map(null_descriptor, raw.get("null_descriptors", ()))
    found += map(null_pointer, raw.get("null_pointers", ()))
    found += map(size_query_null_descriptor, raw.get("size_query_null_descriptors", ()))
    if "workspace" in raw:
        found.append(WORKSPACE_SHORT if raw["workspace"] == "short" else WORKSPACE_NULL)
    return tuple(found)


def expect_words(expect: Sequence[str], *, beyond_design: bool) -> dict[str, Any]:
    """What is expected of a case, in the words of a spec."""
    statuses = list(expect)
    return {"expect_beyond_design" if beyond_design else "expect": statuses if len(statuses) > 1 else statuses[0]}


def fault_words(faults: Sequence[Fault]) -> dict[str, Any]:
    """The invalid-call faults in the words of a spec."""
    found: dict[str, Any] = {}
    for fault in faults:
        if fault.tensor:
            found.setdefault(f"{fault.kind}s", []).append(fault.tensor)
        elif fault.of_workspace:
            found["workspace"] = fault.kind.partition(":")[2]
        else:
            found[fault.kind] = True
    return found


def tensor_words(tensor: Tensor, dtype: str | None, layout: str) -> dict[str, Any]:
    """A tensor in the words of a spec: its shape, and what differs from the dtype and layout that it has by default."""
    found: dict[str, Any] = {"shape": list(tensor.dims)}
    if tensor.dtype != dtype:
        found["dtype"] = tensor.dtype
    if tensor.layout != layout:
        found["layout"] = tensor.layout
    if tensor.strides is not None:
        found["strides"] = list(tensor.strides)
    return found
