"""A legal call drawn from a domain, as an entry of a spec; it depends on the operator, the seed and the number alone.

Every second call starts from the next pair of classes, in an order of its own per seed: all pairs get their turn. The
bytes of its tensors stay within a budget, and what breaks a rule is changed until nothing does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from generators.expressions import UNCOMPUTABLE, parse_expression
from mluops_cli.search.fuzz.call_kinds import Kind, kind_of
from mluops_cli.search.fuzz.factors import Domain
from mluops_cli.search.fuzz.legal_numbers import Values, legal_numbers
from mluops_cli.search.fuzz.pairs import pairs_of
from mluops_cli.search.fuzz.value_classes import DEFAULT, ENDS
from schemas.dtypes import DTYPES

SUITE: Final = "fuzz"
_ATTEMPTS: Final = 12
_STEADY: Final = 6  # attempts of the call's own kind; later ones are drawn freely
_USUAL_VALUES: Final = {
    True: 0.4,
    False: 0.65,
}  # is it a float -> fraction of inputs with the contract's values
_ENDS_OF_VALUES: Final = 0.5  # fraction of inputs with values at the ends of their dtype, where numbers are at theirs
# Operations that a call may take by the contract's formula: so many, or so many for each byte of its tensors. More
# would take time that their size doesn't tell: the samples of a bin, the images of a batch that no tensor has.
_OPERATIONS: Final = (1 << 24, 64)
_NO_PAIR: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Drawn:
    """A call: its entry, and the class of each factor, for what was covered."""

    entry: dict[str, Any]
    classes: Mapping[str, str]

    def plain(self) -> Drawn:
        """The same call with the contract's own values."""
        inputs = {
            name: {key: each for key, each in given.items() if key != "dist"}
            for name, given in self.entry.get("inputs", {}).items()
        }
        classes = {name: DEFAULT if name.startswith("values of ") else each for name, each in self.classes.items()}
        return replace(self, entry={**self.entry, "inputs": inputs}, classes=classes)


def draw_call(domain: Domain, seed: int, number: int, most: int, again: int = 0) -> Drawn | None:
    """The number-th call of an operator, with tensors of at most so many bytes; None where no attempt is legal.

    again: so many others were drawn in its place before.
    """
    op = domain.contract.op
    for attempt in range(_ATTEMPTS):
        rng = Random(f"{seed} {op} {number} {attempt + again * _ATTEMPTS}")
        kind = kind_of(rng, number, most)
        if attempt >= _STEADY:
            kind = Kind(kind.most)
        pins = pairs_of(op).start(seed, number // 2) if kind.paired else _NO_PAIR
        values = legal_numbers(domain, rng, kind, pins)
        if values is not None and not _laborious(domain, values):
            return _entry(domain, rng, values, kind, pins, f"seed{seed}_{number}", seed)
    return None


def _laborious(domain: Domain, values: Values) -> bool:
    """Whether a call takes more operations than the bytes of its tensors allow; False where only the data tell."""
    try:
        operations = parse_expression(domain.contract.theory_ops)(domain.env(values))
    except UNCOMPUTABLE:
        return False
    return bool(operations > max(_OPERATIONS[0], _OPERATIONS[1] * domain.bytes(values)))


def _entry(
    domain: Domain, rng: Random, values: Values, kind: Kind, pins: Mapping[str, str], name: str, seed: int
) -> Drawn:
    contract = domain.contract
    classes = {number.text: number.class_of(value) for number, value in values.items()}
    sections: dict[str, dict[str, Any]] = {"sizes": {}, "params": {}, "inputs": {}, "outputs": {}}
    defaults = {each.name: each.default for each in contract.passed_parameters if each.default is not None}
    for number, value in values.items():
        section = sections["sizes" if number.name in contract.sizes else "params"]
        if number.at is not None:
            section.setdefault(number.name, []).append(value)
        elif number.low < number.high or number.name not in defaults:
            section[number.name] = number.words.get(value, value)
    dtypes: dict[str, str] = {}
    env = domain.env(values)
    contract = contract.given(env)
    for tensor in contract.tensors.values():
        role = "inputs" if tensor in contract.inputs else "outputs"
        key = f"dtype of {tensor.name}"
        if tensor.name in domain.dtypes:
            dtype = pins.get(key) or rng.choice(domain.dtypes[tensor.name])
            classes[key] = dtype
            if dtype != tensor.dtypes[0]:
                sections[role].setdefault(tensor.name, {})["dtype"] = dtype
        else:
            dtype = dtypes.get(tensor.same_dtype_as or "", tensor.dtypes[0])
        dtypes[tensor.name] = dtype
    for tensor in contract.inputs:
        makers, key = domain.values[tensor.name, dtypes[tensor.name]], f"values of {tensor.name}"
        chosen = (
            DEFAULT if rng.random() < _USUAL_VALUES[DTYPES[dtypes[tensor.name]].is_float] else rng.choice(tuple(makers))
        )
        if kind.ends and ENDS in makers and rng.random() < _ENDS_OF_VALUES:
            chosen = ENDS
        chosen = pins[key] if pins.get(key) in makers else chosen
        classes[key] = chosen
        dist = makers[chosen](rng, env)
        if dist:
            sections["inputs"].setdefault(tensor.name, {})["dist"] = dist
    entry = {"name": name, "seed": seed, **{key: given for key, given in sections.items() if given}}
    return Drawn(entry, classes)
