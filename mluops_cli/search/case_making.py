"""One entry of a spec into one case file that can be run, in a folder of the search's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from generators.casegen.case_data import case_bytes
from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.contracts.case import Case
from generators.operator_registry import operator_named
from generators.specs.case_builder import CaseBuilder
from generators.specs.conversions import Problem
from mluops_cli.core.discovery import PlannedCase
from schemas.casefiles.writing import BINARY
from schemas.errors import InputError

SEED: Final = 1  # of entries without one, as in gen
_HERE: Final = Path()
Entry = Mapping[str, Any]


def make_case(op: str, suite: str, entry: Entry, folder: Path) -> PlannedCase:
    """Write the case that an entry (without matrix, zip and sample) means; its files are below the folder.

    InputError where the entry is no legal case; MluopsError where the reference kernel breaks its contract, or the disk
    refuses.
    """
    return write_case(built_case(op, suite, entry), folder)


def write_case(case: Case, folder: Path) -> PlannedCase:
    """Write a case, its files below the folder; MluopsError as for make_case."""
    written = generate(case, WriteOptions(folder))
    first, *external = (
        str(folder / file) for file in sorted(written["files"], key=lambda file: not file.endswith(BINARY))
    )
    return PlannedCase(case.id, case.op, case.suite, first, case_bytes(case), external=tuple(external))


def built_case(op: str, suite: str, entry: Entry, folder: Path = _HERE) -> Case:
    """The case that an entry (without matrix, zip and sample) means; InputError where it is none.

    Files of values are named relative to the folder.
    """
    try:
        return _builder(op, folder).case(entry, suite, entry["name"], "")
    except Problem as problem:
        raise InputError(problem.text) from None


@cache
def _builder(op: str, folder: Path) -> CaseBuilder:
    return CaseBuilder(operator_named(op).contract, folder / "entry.yaml", SEED)


@dataclass(frozen=True, slots=True)
class Made:
    """A case that was made of an entry, with its file."""

    entry: Entry
    planned: PlannedCase
