"""`mluops replay`: the failing cases of a run once more, with the same implementation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mluops_cli.commands.options import Seconds, plugin_option
from mluops_cli.commands.outcomes import folder

if TYPE_CHECKING:
    from mluops_cli.core.discovery import PlannedCase
    from mluops_cli.core.record import Record


@click.command(epilog="Example: mluops replay mluops-out")
@folder("out", "OUT")
@click.option("--impl", metavar="NAME[:OPTIONS]", help="Another implementation than that of the run.")
@click.option("-j", "--jobs", default=1, show_default=True, type=click.IntRange(1), help="Worker processes.")
@click.option("--timeout", default=300.0, show_default=True, type=Seconds(), metavar="S")
@plugin_option
def command(out: Path, impl: str | None, jobs: int, timeout: float, plugins: tuple[Path, ...]) -> int:
    """Run the failing cases of the run in OUT again and say which are fixed. OUT's results are left as they are.

    The kept files under OUT/failures are used, and the cases' own where there is none. Exit code: 0 all fixed, 1 some
    still fail, 5 nothing failed.
    """
    from mluops_cli.commands.outcomes import read
    from mluops_cli.commands.run_options import judging
    from mluops_cli.core.escaping import one_line
    from mluops_cli.core.events import CaseFinished, Event
    from mluops_cli.core.record import FAILING, NOTHING_SELECTED
    from mluops_cli.execution.supervisor import RunSettings, run_cases
    from mluops_cli.execution.workers.handle import WorkerSettings

    run = read(out)
    failing = run.failing
    if not failing:
        click.echo("no case of this run failed", err=True)
        return NOTHING_SELECTED
    options = run.summary.get("options") or {}
    loaded = tuple(str(path) for path in plugins) or tuple(options.get("plugins", ()))
    judged = judging(options.get("compare", ()), bool(options.get("loose_nan")), bool(options.get("strict_tail")))
    worker = WorkerSettings(impl or run.impl, loaded, max(1, int(options.get("repeat", 1))), judged)
    counts = {"fixed": 0, "still failing": 0}

    def tell(event: Event) -> None:
        if not isinstance(event, CaseFinished):
            return
        before, now = run.by_case[event.record.case].status, event.record
        word = "still failing" if now.status in FAILING else "fixed"
        counts[word] += 1
        change = now.status if now.status == before else f"{before} -> {now.status}"
        reason = f": {one_line(now.reason, 500)}" if now.reason else ""
        click.echo(f"{word:13}  {one_line(now.case)}  ({change}){reason}")

    cases = [_planned(out, record) for record in failing]
    finished = run_cases(cases, RunSettings(worker, out, jobs=jobs, timeout=timeout), [tell])
    click.echo(", ".join(f"{number} {word}" for word, number in counts.items()))
    return finished.exit_code if finished.interrupted or counts["still failing"] else 0


def _planned(out: Path, record: Record) -> PlannedCase:
    from mluops_cli.core.discovery import PlannedCase, noted_fields
    from mluops_cli.results.kept_cases import kept_file

    kept = kept_file(out, record)
    file = str(kept) if kept.is_file() else record.file
    size = os.path.getsize(file) if os.path.isfile(file) else 0
    manifest_meta = (
        noted_fields(Path(record.file)) if record.file.endswith(".prototxt") else None
    )  # a text has no metadata
    return PlannedCase(
        record.case, record.op, record.suite, file, size, manifest_meta=manifest_meta[1] if manifest_meta else None
    )
