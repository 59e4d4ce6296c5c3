"""What the commands that run failing cases of a finished run again share: its options, and its case files."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mluops_cli.commands.options import Seconds

if TYPE_CHECKING:
    from mluops_cli.core.case_options import CaseOptions
    from mluops_cli.core.discovery import PlannedCase
    from mluops_cli.core.record import Record
    from mluops_cli.results.finished import FinishedRun


impl_option = click.option("--impl", metavar="NAME[:OPTIONS]", help="Another implementation than that of the run.")
timeout_option = click.option(
    "--timeout", type=Seconds(), metavar="S", help="Seconds a case may take.  [default: as in the run]"
)


def options_again(run: FinishedRun, plugins: tuple[Path, ...], given: dict[str, Any]) -> CaseOptions:
    """The options of the run with what is given now in their place.

    A summary that this user hasn't made may name code to be run, which must be given again: InputError.
    """
    from mluops_cli.core.case_options import CaseOptions, read_options
    from mluops_cli.results.jsonl import SUMMARY
    from mluops_cli.results.origin import made_here
    from schemas.errors import InputError

    options = read_options(run.summary.get("options") or {}, run.impl, str(run.out / SUMMARY))
    changed = {name: value for name, value in given.items() if value is not None}
    if plugins or not made_here(run.summary):
        changed["plugins"] = tuple(map(str, plugins))
    if "impl" not in changed and not made_here(run.summary) and (":" in options.impl or options.plugins):
        code = shlex.join(replace(CaseOptions(options.impl), plugins=options.plugins).words())
        raise InputError(
            f"{run.out} was made by another user or in another folder, so the code that it names isn't run; "
            f"to run it, give it again: {code}"
        )
    return replace(options, **changed)


def named_failure(run: FinishedRun, case: str) -> Record:
    """The failing record that CASE names; InputError where there is none, or several."""
    from mluops_cli.commands.named_cases import case_named
    from schemas.errors import InputError

    failing = {record.case: record for record in run.failing}
    meant = [case] if case in run.by_case else [name for name in run.by_case if case in name]
    if meant and failing.keys().isdisjoint(meant):
        also = f"; {case} fits {len(meant)} cases, and none of them did" if len(meant) > 1 else ""
        raise InputError(f"{meant[0]} didn't fail in this run: {run.by_case[meant[0]].status}{also}")
    if not failing:
        raise InputError("no case of this run failed")
    return failing[case_named(case, failing, "failing case", "of this run")]


def planned_again(out: Path, record: Record, enum_numbering: str) -> PlannedCase:
    """The case of a record: the kept file under OUT/failures, and the case's own where there is none."""
    from mluops_cli.core.discovery import PlannedCase, manifest_metadata
    from mluops_cli.results.kept_cases import kept_file
    from schemas.casefiles.writing import TEXT

    kept = kept_file(out, record)
    file = str(kept) if kept.is_file() else record.file
    size = os.path.getsize(file) if os.path.isfile(file) else 0
    # A text file has no metadata of ours: the manifest beside the case holds it.
    found = manifest_metadata(Path(record.file)) if record.file.endswith(TEXT) else None
    meta = found[1] if found else None
    return PlannedCase(
        record.case, record.op, record.suite, file, size, manifest_meta=meta, enum_numbering=enum_numbering
    )
