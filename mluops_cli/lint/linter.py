"""One case file checked: read, then every rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from generators.contracts.operator import Operator
from generators.operator_registry import operators
from mluops_cli.core.discovery import manifest_metadata
from mluops_cli.lint import baselines, cases, draws, tensor_values
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
    cases.check_criteria,
    baselines.check_baseline,
    baselines.check_weakness,
    baselines.check_undecided,
    baselines.check_hashes,
)


def check_file(path: Path, enum_numbering: str) -> list[Finding]:
    """Return everything that is wrong or odd in a case file; a file that can't be read is a finding too."""
    try:
        with read_case(path, enum_numbering) as case:
            numbering = case.numbering
            if numbering.word == OLD:  # read in the current numbering, the rest means something else
                return [
                    Finding(
                        ERROR, "numbering", str(path), numbering.text, "read it with --generation old, or convert it"
                    )
                ]
            found = []
            if numbering.text:
                fix = "say --generation current or old; files with criteria or ARRAY tensors mostly need no option"
                found.append(Finding(WARNING, "numbering", str(path), numbering.text, fix))
            if case.meta is None:  # as run reads a text file of ours
                with suppress(InputError):  # a damaged manifest, which check_hashes reports
                    if (metadata := manifest_metadata(path)) is not None:
                        case.take_metadata(metadata[1])
            operator = operators().get(case.op)
            for rule in RULES:
                found += rule(case, operator)
            return found
    except InputError as error:
        return [Finding(ERROR, "unreadable", str(error.place or path), error.message)]
    except MluopsError as error:
        return [Finding(ERROR, "unreadable", str(path), str(error))]
