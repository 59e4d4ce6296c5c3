"""The relations of a contract in words: which related call is made, and what its outputs must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from generators.contracts.model import Contract
from generators.contracts.relations import ALONE, FACTOR, Relation
from schemas.dtypes import DTYPES

Texts = tuple[str, str]  # what is called, what its outputs must be


def relation_texts(relation: Relation, contract: Contract) -> Texts:
    """Return what is called and what the outputs of that call must be, as Markdown."""
    called, expected = _KINDS[relation.kind](relation, contract)
    return (f"{called}, where {_code(relation.where)}" if relation.where else called), expected


def _batch(relation: Relation, contract: Contract) -> Texts:
    held = _numbered_input(relation, contract)
    if held:
        called = f"the rows of {_code(held)} with one number in column {relation.columns[held]}"
    else:
        groups = f" of each of the {_code(relation.within)} groups" if relation.within else ""
        called = f"one item of {_code(relation.size)}{groups} alone, with its part of {_inputs(relation, contract)}"
    if _is_rulebook(contract):
        return f"{called} (up to {ALONE} are tried)", "the pairs of sites that the case has for it"
    return f"{called} (up to {ALONE} are tried)", _moved(relation, contract, "as the case has it for that item")


def _permutation(relation: Relation, contract: Contract) -> Texts:
    held = _numbered_input(relation, contract)
    if held:
        called, moved = f"other numbers in column {relation.columns[held]} of {_code(held)}", "with these numbers"
    else:
        kept = f", each within its group (there are {_code(relation.within)})" if relation.within else ""
        called = f"{_inputs(relation, contract)} with the items of {_code(relation.size)} in another order{kept}"
        moved = "in that order"
    if _is_rulebook(contract):
        return called, f"the same pairs of sites{', ' + moved if held else ''}"
    return called, _moved(relation, contract, moved)


def _scaling(relation: Relation, contract: Contract) -> Texts:
    return f"{FACTOR} times {_code(relation.linear)}", _of_floats(contract, f"{FACTOR} times that of the case")


def _zero(relation: Relation, contract: Contract) -> Texts:
    return f"zeros in {_code(relation.linear)}", _of_floats(contract, "0")


def _outside(relation: Relation, contract: Contract) -> Texts:
    called = " and ".join(f"{_code(value)} everywhere in {_code(name)}" for name, value in relation.constants.items())
    fills = {each.name: "+0" if each.fill is None else str(each.fill) for each in contract.outputs}
    return called, ", ".join(f"{_code(name)} {fill}" for name, fill in fills.items())


def _adjoint(relation: Relation, contract: Contract) -> Texts:
    (output,) = contract.outputs
    called = f"{_code(relation.adjoint)} with a random z in place of {_code(output.name)}"
    return called, f"back(z) such that sum {_code(output.name)} z = sum {_code(relation.linear)} back(z)"


_KINDS: Final[Mapping[str, Callable[[Relation, Contract], Texts]]] = {
    "batch": _batch, "permutation": _permutation, "scaling": _scaling, "zero": _zero, "outside": _outside,
    "adjoint": _adjoint,
}  # fmt: skip


def _numbered_input(relation: Relation, contract: Contract) -> str:
    """The input whose column holds the numbers of the items; empty where items lie along axes."""
    return next((each.name for each in contract.inputs if each.name in relation.columns), "")


def _is_rulebook(contract: Contract) -> bool:
    return any(each.compare == "rulebook" for each in contract.outputs)


def _inputs(relation: Relation, contract: Contract) -> str:
    return _names(each.name for each in contract.inputs if each.name in relation.axes)


def _moved(relation: Relation, contract: Contract, moved: str) -> str:
    """What becomes of outputs along whose axis the items lie, of columns with their numbers, and of the others."""
    along = [each.name for each in contract.outputs if each.name in relation.axes]
    parts = [f"{_names(along)} {moved}"] if along else []
    for each in contract.outputs:
        if each.name in relation.columns:
            parts.append(f"new numbers in column {relation.columns[each.name]} of {_code(each.name)}")
        elif each.name not in along:
            parts.append(f"{_code(each.name)} as in the case")
    return ", ".join(parts)


def _of_floats(contract: Contract, text: str) -> str:
    """What floating outputs must be; the others are those of the case."""
    parts = []
    for each in contract.outputs:
        floating = all(DTYPES[name].is_float for name in each.dtypes)
        parts.append(f"{_code(each.name)} {text if floating else 'as in the case'}")
    return ", ".join(parts)


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(_code, names))


def _code(text: str) -> str:
    return f"`{text}`"
