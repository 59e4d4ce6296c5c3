"""--resume: which results of an earlier run are kept, and which cases run again because something has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.fingerprint import hash_case
from mluops_cli.core.record import Record
from mluops_cli.core.tally import Counted
from mluops_cli.results.jsonl import read_results
from schemas.errors import InputError


@dataclass(frozen=True, slots=True)
class Earlier:
    """What is left of an earlier run.

    kept: case -> what counts of its record, which stays in results.jsonl. again: why a record is dropped and its
    case runs again -> how many. devices are those that ran the kept cases.
    """

    kept: dict[str, Counted] = field(default_factory=dict)
    again: Counter[str] = field(default_factory=Counter)
    devices: frozenset[str] = frozenset()


def earlier_results(out: Path, cases: Sequence[PlannedCase], options: CaseOptions) -> Earlier:
    """Compare the results in out with the selected cases and the options.

    A record is kept if it is the only one of its case, and if the hashes that it carries are those of the options and
    of the case file as it is now: kept files are read for that. InputError where out holds results of another
    implementation, or of cases that aren't selected.
    """
    planned = {case.id: case for case in cases}
    found: dict[str, Record | None] = {}  # None: the case runs again
    again: Counter[str] = Counter()
    for record in read_results(out):
        if record.impl != options.impl:
            raise InputError(f"--resume: {out} holds results of --impl {record.impl}, not of {options.impl}")
        if (case := planned.get(record.case)) is None:
            raise InputError(f"--resume: {out} holds results of cases that are not selected now, such as {record.case}")
        reason = "a case has several results" if record.case in found else _change(record, case, options)
        if not reason:
            found[record.case] = record
        elif found.setdefault(record.case, record) is not None:
            found[record.case] = None
            again[reason] += 1
    kept = {case: record for case, record in found.items() if record is not None}
    return Earlier(
        {case: record.counted for case, record in kept.items()},
        again,
        frozenset(record.device for record in kept.values()),
    )


def _change(record: Record, case: PlannedCase, options: CaseOptions) -> str:
    """What has changed since the record was made; empty where nothing has."""
    if not record.options_hash or not record.case_hash:
        return "a result doesn't say what it was made from"
    if record.options_hash != options.digest:
        return "the options have changed"
    if record.case_hash != hash_case(case.hashed_files, case.manifest_meta):
        return "a case file has changed"
    return ""
