"""What the commands that run failing cases of a finished run again share: its options, and its case files."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from mluops_cli.commands.options import Seconds

if TYPE_CHECKING:
    from mluops_cli.core.case_options import CaseOptions
    from mluops_cli.core.discovery import PlannedCase
    from mluops_cli.core.record import Record
    from mluops_cli.results.finished import FinishedRun


_LISTED: Final = 10  # cases in a message

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
    from schemas.errors import InputError
    from schemas.suggest import did_you_mean

    failing = {record.case: record for record in run.failing}
    if case in failing:
        return failing[case]
    if case in run.by_case:
        raise InputError(f"{case} didn't fail in this run: {run.by_case[case].status}")
    found = [name for name in failing if case in name]
    if len(found) == 1:
        return failing[found[0]]
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise InputError(f"{case} fits {len(found)} failing cases: {', '.join(found[:3])}{more}; give the whole id")
    if not failing:
        raise InputError("no case of this run failed")
    names = failing if "/" in case else {name.rpartition("/")[2] for name in failing}
    hint = did_you_mean(case, names)
    shown = hint if "mean" in hint or len(names) <= _LISTED else f": expected one of {len(names)}, see results.jsonl"
    raise InputError(f"no failing case of this run is called {case}{shown}")


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
