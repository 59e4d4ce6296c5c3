"""The contract of an operator that has none yet, as far as it follows from case files of it and the interface."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from generators.contracts.model import Contract, TensorSpec
from generators.data.distributions import can_be_drawn, parse_values
from generators.importing.draft import CaseDraft, Note, TensorDraft, dist_of, plain, stricter_criteria
from generators.importing.inferred_parameters import parameters_of_cases, plain_integers
from generators.importing.size_names import COMPONENTS, Observed, SizeNames, name_sizes
from schemas.criteria import Criterion
from schemas.dtypes import DTYPES
from schemas.errors import InputError
from schemas.status import BAD_PARAM, SUCCESS

COMPOSITE: Final = (Criterion("diff1", 3e-3, "category composite"), Criterion("diff2", 3e-3, "category composite"))
EXACT: Final = (Criterion("diff3", 0.0, "integers are exact"),)
_GIVEN: Final = "given case files"
_FLOATS: Final = {"uniform": [-1, 1]}  # values of an input that no case has
_INTEGERS: Final = {"integers": [0, 1]}
_ROUNDED: Final = 1e4  # ends of ranges that rounding outward can't carry out of any dtype


def contract_of_cases(op: str, drafts: Sequence[CaseDraft], note: Note) -> Contract:
    """The contract that all cases keep to; at least one case. note is called with what is to be looked at.

    InputError where they are no cases of one contract: another number of tensors, another rank, another message.
    """
    inputs = list(zip(*_same_number(drafts, "inputs"), strict=True))
    outputs = list(zip(*_same_number(drafts, "outputs"), strict=True))
    names = _tensor_names([column[0] for column in (*inputs, *outputs)], len(inputs))
    columns = dict(zip(names, (*inputs, *outputs), strict=True))
    for number, (name, column) in enumerate(columns.items()):
        _check_tensor(name, column, drafts, is_input=number < len(inputs))
    observed = {
        name: Observed([each.shape for each in column], _layout(name, column, note), number < len(inputs))
        for number, (name, column) in enumerate(columns.items())
    }
    sizes = name_sizes(observed, plain_integers(drafts))
    dtypes = {name: [str(each.dtype) for each in column] for name, column in columns.items()}
    specs = []
    for number, (name, column) in enumerate(columns.items()):
        followed = [each for each in names[:number] if dtypes[each] == dtypes[name] and len(set(dtypes[name])) > 1]
        given: dict[str, Any] = {"same_dtype_as": followed[0]} if followed else {}
        if number < len(inputs):
            given |= _values(column)
        else:
            given["criteria"] = _criteria(drafts, number - len(inputs), dtypes[name][0], note)
        words = tuple(dict.fromkeys(dtypes[name]))
        specs.append(TensorSpec(name, words, observed[name].layout, sizes.shapes[name], **given))
    contract = Contract(
        op=op,
        category=category_of(specs[len(inputs) :]),
        inputs=tuple(specs[: len(inputs)]),
        outputs=tuple(specs[len(inputs) :]),
        parameters=tuple(parameters_of_cases(drafts, sizes.dims, note)),
        zero_elements={name: SUCCESS if 0 in values else BAD_PARAM for name, values in sizes.sizes.items()},
        message=drafts[0].message if drafts[0].message != f"{op}_param" else "",
    )
    _note_doubts(contract, sizes, note)
    return contract


def category_of(outputs: Sequence[TensorSpec]) -> str:
    """The category of an operator with these outputs: index where all are integers, else composite."""
    return "composite" if any(_is_floating(dtype) for each in outputs for dtype in each.dtypes) else "index"


def _is_floating(dtype: str) -> bool:
    return DTYPES[dtype].kind in ("float", "complex")


def _same_number(drafts: Sequence[CaseDraft], role: str) -> list[list[TensorDraft]]:
    """The tensors of a role, case by case; InputError where a case has another number of them."""
    found: list[list[TensorDraft]] = [getattr(draft, role) for draft in drafts]
    for draft, tensors in zip(drafts, found, strict=True):
        if len(tensors) != len(found[0]):
            text = (
                f"{len(tensors)} {role}, {drafts[0].place} has {len(found[0])}: give case files with one number of them"
            )
            raise InputError(f"{draft.place}: {text}")
        if not tensors:
            raise InputError(f"{draft.place}: no {role}, expected at least one")
    return found


def _check_tensor(name: str, column: Sequence[TensorDraft], drafts: Sequence[CaseDraft], *, is_input: bool) -> None:
    """InputError where a tensor has several ranks, or a dtype that its values can't be drawn or computed in."""
    for draft, tensor in zip(drafts, column, strict=True):
        if len(tensor.shape) != len(column[0].shape):
            text = f"{name} has {len(tensor.shape)} dims, in {drafts[0].place} {len(column[0].shape)}"
            raise InputError(f"{draft.place}: {text}: a contract has one number of them")
        if DTYPES[str(tensor.dtype)].storage is None or (is_input and not can_be_drawn(str(tensor.dtype))):
            raise InputError(f"{draft.place}: {name} has dtype {tensor.dtype}, whose values can't be drawn or computed")


def _tensor_names(tensors: Sequence[TensorDraft], inputs: int) -> list[str]:
    """The names in the files as far as they are identifiers, each once; else input1, output1 and so on."""
    names: list[str] = []
    for number, tensor in enumerate(tensors):
        role, index = ("input", number + 1) if number < inputs else ("output", number + 1 - inputs)
        name = re.sub(r"\W", "_", tensor.name, flags=re.ASCII)
        if not re.match(r"[A-Za-z]", name) or name in names:
            name = f"{role}{index}"
        while name in names:
            name += "_"
        names.append(name)
    return names


def _layout(name: str, column: Sequence[TensorDraft], note: Note) -> str:
    layouts = list(dict.fromkeys(tensor.layout or "ARRAY" for tensor in column))
    if len(layouts) > 1:
        note(f"{name} has the layouts {', '.join(layouts)}: the contract demands none")
        return "ARRAY"
    return layouts[0]


def _values(column: Sequence[TensorDraft]) -> dict[str, Any]:
    """The distribution that most cases have as the default, the others as variants."""
    drawn = [each.dist for each in column]
    counted = Counter(repr(each) for each in drawn if each)
    found = [next(each for each in drawn if repr(each) == text) for text, _ in counted.most_common()]
    if stored := [each.stored for each in column if each.stored is not None and each.stored.size]:
        found += _range(stored)
    found = [each for each in found if all(_fits(each, str(tensor.dtype)) for tensor in column)]
    if not found:
        return {"values": _FLOATS if _is_floating(str(column[0].dtype)) else _INTEGERS}
    return {"values": found[0], "variants": tuple(found[1:])}


def _fits(dist: Mapping[str, Any], dtype: str) -> bool:
    """Whether a dtype holds the values of a distribution."""
    try:
        parse_values(dist, {}, dtype)
    except InputError:
        return False
    return True


def _range(stored: Sequence[np.ndarray[Any, Any]]) -> list[dict[str, Any]]:
    """The range of stored values as a distribution, floating ends rounded outward; nothing where none is finite."""
    if all(each.dtype.kind in "iub" for each in stored):
        least, largest = min(int(each.min()) for each in stored), max(int(each.max()) for each in stored)
        return [{"integers": [least, largest]} if least < largest else {"constant": least}]
    numbers = np.concatenate([each.reshape(-1).astype(np.float64) for each in stored])
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size:
        return []
    low, high = float(numbers.min()), float(numbers.max())
    if low < high and max(-low, high) < _ROUNDED:
        unit = 10.0 ** (math.floor(math.log10(max(-low, high))) - 1)
        low, high = (float(f"{end * unit:.12g}") for end in (math.floor(low / unit), math.ceil(high / unit)))
    return [dist_of("uniform", plain(low), plain(high), lambda _: None)]


def _criteria(drafts: Sequence[CaseDraft], output: int, dtype: str, note: Note) -> tuple[Criterion, ...]:
    given = [pair for draft in drafts if draft.criteria for pair in draft.criteria[output].items()]
    if not given:
        return COMPOSITE if _is_floating(dtype) else EXACT
    return tuple(Criterion(name, limit, _GIVEN) for name, limit in stricter_criteria(given, note).items())


def _note_doubts(contract: Contract, sizes: SizeNames, note: Note) -> None:
    """Note what doesn't follow from the cases."""
    if sizes.guessed:
        note("all cases have the same shapes: which dims are sizes and which are constants is a guess")
    words = [pair for tensor in contract.tensors.values() for pair in enumerate(tensor.shape.split())]
    odd = sorted({int(word) for axis, word in words if word.isdigit() and (axis == 0 or int(word) > COMPONENTS)})
    if odd:
        note(f"dims that are {', '.join(map(str, odd))} in all cases are constants: write sizes if others are legal")
    for tensor in contract.inputs:
        if not any(_is_floating(dtype) or dtype == "bool" for dtype in tensor.dtypes):
            note(f"{tensor.name} holds integers: if they are indices, bound its values by a size, as in [0, 'N-1']")
    bound = {name for tensor in contract.inputs for dim in tensor.dims for name in dim.names}
    for tensor in contract.outputs:
        for name in (dim.text for dim in tensor.dims if dim.text in sizes.sizes and dim.text not in bound):
            bound.add(name)
            note(f"no input and no parameter gives the size {name} of {tensor.name}: is it computed from others?")
