"""Rules on random_data: bounds and seeds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from generators.contracts.operator import Operator
from generators.data.random_data import KINDS, RandomData
from mluops_cli.lint.finding import ERROR, WARNING, Finding
from mluops_cli.lint.tensor_values import records
from schemas.casefiles.reading import CaseFile
from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError


def drawn_inputs(case: CaseFile) -> list[TensorRecord]:
    """The inputs whose values will be drawn."""
    return [
        record for record in case.inputs if record.source == "random_data" and record.elements and not record.absent
    ]


def check_bounds(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Bounds the right way round, apart, and finite; also of random_data that stored values win over."""
    for record in records(case):
        random = record.random
        if random is None:
            continue
        place = f"{record.place}.random_data"
        told = RandomData.of(random)
        word, first, second, names = told.distribution, told.first, told.second, told.names
        if word not in KINDS:
            if record.source == "random_data":
                yield Finding(ERROR, "distribution", place, f"{word} can't be drawn", "use UNIFORM or GAUSSIAN")
            continue
        if not (math.isfinite(first) and math.isfinite(second)):
            yield Finding(ERROR, "bounds", place, f"{names[0]} {first:g} and {names[1]} {second:g} are not both finite")
        elif wrong := _undrawable(told, record):
            yield Finding(ERROR, "bounds", place, wrong)
        elif word == "GAUSSIAN":
            if second == 0:
                yield Finding(WARNING, "bounds", place, "sigma is 0: every value is mu")
        elif told.inverted:
            text = f"inverted bounds: lower_bound {first:g} is above upper_bound {second:g}, read as swapped"
            yield Finding(WARNING, "bounds", place, text, "swap them")
        elif first == second:
            text = f"equal bounds: every value is {first:g}, which hides most faults"
            yield Finding(WARNING, "bounds", place, text, "give a range")


def check_seeds(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Inputs drawn with one seed get equal streams elsewhere."""
    by_seed: dict[int, list[TensorRecord]] = defaultdict(list)
    for record in drawn_inputs(case):
        by_seed[RandomData.of(record.random).seed].append(record)
    for seed, group in by_seed.items():
        if len(group) > 1:
            ids = ", ".join(f'"{record.id}"' for record in group)
            unset = [record for record in group if not record.header.random_data.HasField("seed")]
            default = f" (the default for {len(unset)} of them)" if unset else ""
            told = f"{len(group)} inputs are drawn with the same seed {seed}{default}: {ids}"
            yield Finding(
                WARNING, "seed", str(case.path), told, "give each its own seed; mluops keeps them apart anyway"
            )


def _undrawable(told: RandomData, record: TensorRecord) -> str:
    """Why values for an input can't be drawn, empty where they can or aren't."""
    if record.source == "random_data":
        try:
            told.values(record.dtype.name)
        except InputError as error:
            return error.message
    return ""
