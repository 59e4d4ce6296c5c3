"""--resume and --last-failed: which results of an earlier run are kept, and which cases run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.fingerprint import hash_case
from mluops_cli.core.record import Record
from mluops_cli.core.tally import Counted
from mluops_cli.results.finished import FinishedRun
from mluops_cli.results.jsonl import read_results
from schemas.errors import InputError


@dataclass(frozen=True, slots=True)
class Earlier:
    """What is left of an earlier run.

    kept: case -> what counts of its record, which stays in results.jsonl. again: why a record is dropped and its
    case runs again -> how many. devices are those that ran the kept cases. not_run: cases that the earlier run didn't
    run and this one doesn't select.
    """

    kept: dict[str, Counted] = field(default_factory=dict)
    again: Counter[str] = field(default_factory=Counter)
    devices: frozenset[str] = frozenset()
    not_run: int = 0


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
    return _earlier(kept.values(), again=again)


def results_beside(run: FinishedRun, rerun: Collection[str], options: CaseOptions) -> Earlier:
    """Return the results of a run that stay while some of its cases run again: those of all the others.

    InputError where these were made by another implementation or with other options, or where the run was cut off.
    """
    if not run.summary:
        raise InputError(f"--last-failed: the run in {run.out} was cut off; finish it with --resume first")
    kept = [record for record in run.records if record.case not in rerun]
    go_on = "give the same ones, or run all cases into another --out"
    for record in kept:
        beside = f"--last-failed: {run.out} keeps results of cases that don't run again, such as {record.case}, made"
        if record.impl != options.impl:
            raise InputError(f"{beside} by --impl {record.impl}, not {options.impl}: {go_on}")
        if record.options_hash != options.digest:
            raise InputError(f"{beside} with other options: {go_on}")
    return _earlier(kept, not_run=run.not_run)


def _earlier(kept: Collection[Record], again: Counter[str] | None = None, not_run: int = 0) -> Earlier:
    return Earlier(
        {record.case: record.counted for record in kept},
        again or Counter(),
        frozenset(record.device for record in kept),
        not_run,
    )


def file_changed(record: Record, case: PlannedCase) -> bool:
    """Whether the case file or its external data aren't those that the record was made from, as far as it says that."""
    return bool(record.case_hash) and record.case_hash != hash_case(case.hashed_files, case.manifest_meta)


def _change(record: Record, case: PlannedCase, options: CaseOptions) -> str:
    """What has changed since the record was made; empty where nothing has."""
    if not record.options_hash or not record.case_hash:
        return "a result doesn't say what it was made from"
    if record.options_hash != options.digest:
        return "the options have changed"
    if file_changed(record, case):
        return "a case file has changed"
    return ""
