"""What `run --last-failed` runs: the cases that failed in the run in OUT, and those whose files have changed since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import rich_click as click

from mluops_cli.commands.problems import none_selected
from schemas.suggest import counted

if TYPE_CHECKING:
    from mluops_cli.core.discovery import PlannedCase
    from mluops_cli.results.finished import FinishedRun


def failed_last(last: FinishedRun, selected: Sequence[PlannedCase]) -> list[PlannedCase]:
    """Those of the cases that failed in the run in OUT, and those whose results are of other case files.

    The latter are reported, as are failures that aren't selected, and where there is nothing to run.
    """
    from mluops_cli.results.resume import file_changed

    failed = {record.case for record in last.failing}
    others = {case.id: case for case in selected if case.id in last.by_case and case.id not in failed}
    changed = {name for name, case in others.items() if file_changed(last.by_case[name], case)}
    if not failed and not changed:
        click.echo(f"no case of the run in {last.out} failed", err=True)
        return []
    cases = [case for case in selected if case.id in failed or case.id in changed]
    if left := len(failed) + len(changed) - len(cases):
        click.echo(f"{counted(left, 'case')} more failed in {last.out}: not at the paths, or not selected", err=True)
    if changed:
        click.echo(f"{counted(len(changed), 'case')} more to run: the case file has changed since", err=True)
    if not cases:
        none_selected()
    return cases
