"""The smallest case as files: an entry of a spec, the case in both forms, and what the implementation makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from generators.casegen.case_data import case_bytes
from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.contracts.binding import bind
from generators.operator_registry import operator_named
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.record import Record
from mluops_cli.search.case_making import built_case
from mluops_cli.search.case_runner import CaseRunner
from mluops_cli.search.shrinking.shrinker import Shrunk
from mluops_cli.search.spec_saving import SavedEntry, spec_text
from schemas.atomic_files import write_text
from schemas.case_ids import id_parts
from schemas.casefiles.reading import read_case

_MARK: Final = "# Shrunk by `mluops shrink`"
KEPT: Final = 1 << 16  # bytes of outputs that are kept to be shown

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a case: the spec with its entry, the binary and the text form."""

    spec: Path
    binary: Path
    text: Path
    case: str
    size: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A case's tensors: inputs, baseline, and what the implementation computed, where it did."""

    inputs: Arrays
    expected: Arrays
    got: Arrays


def write(shrunk: Shrunk, suite: str, comments: tuple[str, ...], folder: Path) -> Written:
    """Write FOLDER/operator/suite/NAME.yaml, .pb and .prototxt, and .npy files of values that no `dist` says.

    UnavailableError where writing fails.
    """
    op = shrunk.candidate.contract.op
    name = shrunk.candidate.frame["name"]
    own = folder / op / suite
    own.mkdir(parents=True, exist_ok=True)
    entry = shrunk.candidate.entry(own, name)
    spec = own / f"{name}.yaml"
    write_text(spec, spec_text(op, [SavedEntry(op, suite, entry, (*comments, shrunk.line))], _MARK))
    case = built_case(op, suite, entry, own)
    generate(case, WriteOptions(folder, format="both", bounds=False))
    return Written(spec, spec.with_suffix(".pb"), spec.with_suffix(".prototxt"), case.id, case_bytes(case))


def run_file(runner: CaseRunner, planned: PlannedCase) -> Record | None:
    """The record of a case file, which stays; None after an interrupt."""
    records: list[Record] = []
    runner.run([planned], records.append, keep=True)
    return records[0] if records else None


def run_written(runner: CaseRunner, written: Written) -> tuple[Record | None, Shown]:
    """Run the binary form once more; its record (None after an interrupt), and the tensors."""
    op, suite, _ = id_parts(written.case)
    record = run_file(runner, PlannedCase(written.case, op, suite, str(written.binary), written.size))
    return record, _shown(written, record)


def _shown(written: Written, record: Record | None) -> Shown:
    with read_case(written.binary) as file:
        bound = bind(file, operator_named(file.op))
        inputs = {name: array.copy() for name, array in bound.input_arrays().items() if array is not None}
        names = list(bound.outputs)
        expected = {name: each.array().copy() for name, each in bound.outputs.items() if each.has_values}
    got: Arrays = {}
    if record is not None and record.outputs_kept and Path(record.outputs_kept).is_file():
        with read_case(Path(record.outputs_kept)) as file:
            got = {name: each.array().copy() for name, each in zip(names, file.outputs, strict=True) if each.has_values}
    return Shown(inputs, expected, got)
