"""One case file checked: read, then every rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from generators.contracts.operator import Operator
from generators.operator_registry import operators
from mluops_cli.lint import cases, draws, tensor_values
from mluops_cli.lint.finding import ERROR, WARNING, Finding
from schemas.casefiles.enum_numbering import OLD
from schemas.casefiles.reading import CaseFile, read_case
from schemas.errors import InputError, MluopsError

Rule = Callable[[CaseFile, Operator | None], Iterator[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    tensor_values.check_values,
    tensor_values.check_sources,
    tensor_values.check_sizes,
    draws.check_bounds,
    draws.check_seeds,
    cases.check_ids,
    cases.check_contract,
    cases.check_baseline,
    cases.check_criteria,
)


def check_file(path: Path, enum_numbering: str) -> list[Finding]:
    """Everything that is wrong or odd in a case file; that it can't be read is a finding too."""
    try:
        with read_case(path, enum_numbering) as case:
            numbering = case.numbering
            if numbering.word == OLD:  # nothing else in it means what it seems to
                text = f"its bytes are of the older enum numbering: {'; '.join(numbering.reasons)}"
                return [Finding(ERROR, "numbering", str(path), text, "read it with --generation old, or convert it")]
            found = []
            if numbering.text:
                fix = "say --generation current or old; files with criteria or ARRAY tensors mostly tell themselves"
                found.append(Finding(WARNING, "numbering", str(path), numbering.text, fix))
            operator = operators().get(case.op)
            for rule in RULES:
                found += rule(case, operator)
            return found
    except InputError as error:
        return [Finding(ERROR, "unreadable", str(error.place or path), error.message)]
    except MluopsError as error:
        return [Finding(ERROR, "unreadable", str(path), str(error))]
