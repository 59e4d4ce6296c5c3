"""Rules on random_data: bounds and seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from generators.contracts.bound_case import check_drawn_size
from generators.contracts.operator import Operator
from generators.data.random_data import KINDS, RandomData
from mluops_cli.lint.finding import ERROR, NOTE, WARNING, Finding
from schemas.casefiles.reading import CaseFile
from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError


def drawn_inputs(case: CaseFile) -> list[TensorRecord]:
    """Return the inputs whose values are drawn."""
    return [
        record for record in case.inputs if record.source == "random_data" and record.elements and not record.absent
    ]


def check_bounds(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Bounds of values that are drawn: in order, apart, finite; and random_data that is never drawn."""
    for record in case.outputs:
        if record.source == "random_data" and not record.absent:
            yield Finding(NOTE, "sources", f"{record.place}.random_data", "values of an output are never drawn")
    for record in drawn_inputs(case):
        yield from _check_bounds(record, f"{record.place}.random_data")


def _check_bounds(record: TensorRecord, place: str) -> Iterator[Finding]:
    asked = RandomData.of(record.random)
    first, second = asked.first, asked.second
    if problem := _problem(asked, record):
        yield Finding(ERROR, "bounds" if asked.distribution in KINDS else "distribution", place, problem)
    elif asked.distribution == "GAUSSIAN":
        if second == 0:
            yield Finding(WARNING, "bounds", place, "sigma is 0: every value is mu")
    elif asked.inverted:
        text = f"inverted bounds: lower_bound {first:g} is above upper_bound {second:g}, read as swapped"
        yield Finding(WARNING, "bounds", place, text, "swap them")
    elif first == second:
        text = f"equal bounds: every value is {first:g}, which hides most faults"
        yield Finding(WARNING, "bounds", place, text, "give a range")


def _problem(asked: RandomData, record: TensorRecord) -> str:
    """Return why the values can't be drawn, empty where they can."""
    try:
        check_drawn_size(record)
        asked.values(record.dtype.name)
    except InputError as error:
        return error.message
    return ""


def check_seeds(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Inputs that are drawn with one seed get equal streams in other runners."""
    by_seed: dict[int, list[TensorRecord]] = defaultdict(list)
    for record in drawn_inputs(case):
        by_seed[RandomData.of(record.random).seed].append(record)
    for seed, group in by_seed.items():
        if len(group) > 1:
            ids = ", ".join(f'"{record.id}"' for record in group)
            unset = [record for record in group if not record.header.random_data.HasField("seed")]
            default = f" (the default for {len(unset)} of them)" if unset else ""
            text = f"{len(group)} inputs are drawn with the same seed {seed}{default}: {ids}"
            fix = "give each its own seed; mluops draws different values all the same"
            yield Finding(WARNING, "seed", str(case.path), text, fix)
