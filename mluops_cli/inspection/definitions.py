"""The definition of an operator: a Markdown file beside its spec. Its worked examples are checked.

An example is a block of YAML in the file: `inputs`, `params` and `outputs` of a call, tensors as nested lists. Its
author works out the outputs by hand; the reference kernel must compute the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from generators.contracts.case import Case, TensorPlan
from generators.contracts.operator import Array, Operator
from generators.contracts.outputs import fitted
from generators.specs.case_builder import CaseBuilder
from generators.specs.conversions import Problem, convert_parameters
from generators.specs.loader import spec_path
from generators.specs.yaml_loader import Document, parse_yaml
from schemas.dtypes import DTYPES
from schemas.errors import InputError, located

_EXAMPLE: Final = re.compile(r"^```[ \t]*ya?ml[ \t]*\n(?P<text>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_KEYS: Final = frozenset(("inputs", "params", "outputs"))


def definition(operator: Operator) -> str:
    """Return the definition of an operator, Markdown; empty where it has none.

    InputError, with the place, where an example breaks the contract or the reference kernel computes other outputs.
    """
    path = spec_path(operator.contract.op).with_suffix(".md")
    if not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8")
    for example in _examples(path, text):
        _check(operator, example)
    return text.strip("\n")  # blanks at the start may be the indent of a formula


def _examples(path: Path, text: str) -> Iterator[Document]:
    """The examples, each with empty lines before it, so that places count lines of the file."""
    for block in _EXAMPLE.finditer(text):
        yield parse_yaml(str(path), "\n" * text.count("\n", 0, block.start("text")) + block["text"])


def _check(operator: Operator, example: Document) -> None:
    """InputError unless the reference kernel computes the outputs of an example."""
    given = _given(operator, example)
    case = _case(operator, example, given)
    stored = {plan.name: _stored(plan, given[plan.name], example) for plan in case.plans}
    inputs = {plan.name: stored[plan.name] for plan in case.inputs}
    with located(example.place(("inputs",))):
        shapes = case.shapes(operator.contract)
        baseline = operator.baseline(inputs, shapes, operator.all_params(inputs, shapes, case.params))
    for plan in case.outputs:
        expected, path = stored[plan.name], ("outputs", plan.name)
        computed = fitted(plan.name, plan.dims, plan.dtype, baseline[plan.name], example.place(path))
        equal = (computed == expected) | ((computed != computed) & (expected != expected))  # NaN too
        for index in np.argwhere(~equal):
            at = tuple(map(int, index))
            message = f"found {expected[at]}, the reference kernel computes {computed[at]}"
            raise InputError(message, example.place((*path, *at)))


def _given(operator: Operator, example: Document) -> dict[str, Array]:
    """The tensors of an example as arrays; InputError where it lacks one, or holds something else."""
    data, contract = example.data, operator.contract
    if not isinstance(data, dict) or not {"inputs", "outputs"} <= data.keys() <= _KEYS:
        raise InputError("expected a mapping with inputs, params and outputs", example.place(()))
    for section in data:
        if not isinstance(data[section], dict):
            raise InputError("expected a mapping, a line per name", example.place((section,)))
    with suppress(Problem):  # which _case reports, with its place
        contract = contract.given(convert_parameters(contract, data.get("params", {})))
    given = {}
    for section, tensors in (("inputs", contract.inputs), ("outputs", contract.outputs)):
        for tensor in tensors:
            if tensor.name not in data[section]:
                raise InputError(f"{tensor.name} is missing", example.place((section,)))
            array = _array(data[section][tensor.name])
            if array is None:
                place = example.place((section, tensor.name))
                raise InputError("expected numbers in nested lists of equal lengths", place)
            given[tensor.name] = array
    return given


def _array(nested: Any) -> Array | None:
    """Nested lists of numbers as an array, None for anything else."""
    try:
        array = np.array(nested)
    except ValueError:  # lists of unequal lengths
        return None
    return array if array.dtype.kind in "bif" else None


def _case(operator: Operator, example: Document, given: Mapping[str, Array]) -> Case:
    """The call of an example, checked as the entries of specs are; not with the values of its inputs."""
    entry: dict[str, Any] = {"params": example.data.get("params", {})}
    for section in ("inputs", "outputs"):
        entry[section] = {name: {"shape": given[name].shape} if name in given else {} for name in example.data[section]}
    for tensor in entry["inputs"].values():
        tensor["dist"] = {"constant": 0}  # a spec must say what is drawn, if the contract doesn't
    builder = CaseBuilder(operator.contract, Path(example.file), seed=1)
    try:
        for problem in builder.unknown_names(entry):
            raise problem
        return builder.case(entry, "", "", "")
    except Problem as problem:
        raise InputError(problem.message, example.place(problem.path)) from None


def _stored(plan: TensorPlan, array: Array, example: Document) -> Array:
    """The numbers of a tensor in its dtype; InputError where an integer dtype doesn't hold them."""
    with np.errstate(invalid="ignore"):  # NaN as an integer is found below
        stored: Array = array.astype(DTYPES[plan.dtype].storage)
    if stored.dtype.kind in "iu" and not np.array_equal(stored, array):
        section = "inputs" if plan.values is not None else "outputs"
        raise InputError(f"expected numbers of dtype {plan.dtype}", example.place((section, plan.name)))
    return stored
