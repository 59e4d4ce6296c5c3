"""`mluops replay`: the failing cases of a run once more, with the options of that run."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import rich_click as click

from mluops_cli.commands.options import ByteSize, keywords_option, plugin_option
from mluops_cli.commands.outcomes import folder
from mluops_cli.commands.problems import brief
from mluops_cli.commands.rerun import impl_option, options_again, planned_again, timeout_option
from mluops_cli.core.statuses import FAILED, FAILING, NOTHING_SELECTED, PASSING

if TYPE_CHECKING:
    from mluops_cli.core.record import Record

Outcome = Literal["fixed", "still failing", "can't tell"]


@click.command(epilog="Example: mluops replay mluops-out -k psamask")
@folder("out", "OUT")
@impl_option
@keywords_option
@click.option("-j", "--jobs", default=1, show_default=True, type=click.IntRange(1), help="Worker processes.")
@timeout_option
@click.option("--memory", type=ByteSize(), metavar="SIZE", help="What a case may take.  [default: as in the run]")
@click.option(
    "--keep-outputs",
    type=ByteSize(),
    metavar="SIZE",
    help="Keep the outputs of a failing case in OUT/failures: of up to SIZE bytes.",
)
@plugin_option
def command(
    out: Path, keywords: str | None, jobs: int, keep_outputs: int | None, plugins: tuple[Path, ...], **given: Any
) -> int:
    """Run the failing cases of the run in OUT again and say which are fixed. OUT's results are left as they are.

    All options that decide what comes of a case are those of the run, but for the ones given here. Code that the
    results of another user name must be given again (--impl, --plugin). The kept files under OUT/failures are used, and
    the cases' own where there is none.

    A case is fixed if it passes now. Nobody can tell where it is skipped, its pass proves nothing (mistrusted), or
    mluops or the case file fails. Exit code: 0 all fixed, 1 some aren't, 2 a case file is wrong, 3 our own failure,
    5 no case of the run failed.
    """
    from mluops_cli.commands.outcomes import read
    from mluops_cli.core.case_options import WorkerSettings
    from mluops_cli.core.escaping import one_line
    from mluops_cli.core.events import CaseFinished, Event
    from mluops_cli.core.filters import parse_keywords
    from mluops_cli.execution.supervisor import RunSettings, run_cases

    run = read(out)
    matches = parse_keywords(keywords) if keywords is not None else None
    failing = [record for record in run.failing if matches is None or matches(record.case)]
    if not failing:
        what = "no failing case of this run matches" if run.failing else "no case of this run failed"
        click.echo(what, err=True)
        return NOTHING_SELECTED
    options = options_again(run, plugins, given)
    counts: Counter[Outcome] = Counter({"fixed": 0, "still failing": 0, "can't tell": 0})

    def tell(event: Event) -> None:
        if not isinstance(event, CaseFinished):
            return
        before, now = run.by_case[event.record.case], event.record
        outcome = outcome_of(before, now)
        counts[outcome] += 1
        change = now.status if now.status == before.status else f"{before.status} -> {now.status}"
        reason = f": {brief(now.reason)}" if now.reason else ""
        click.echo(f"{outcome:13}  {one_line(now.case)}  ({change}){reason}")

    cases = [planned_again(out, record, options.enum_numbering) for record in failing]
    worker = WorkerSettings(options, keep_outputs=keep_outputs, out=os.path.abspath(out))
    finished = run_cases(cases, RunSettings(worker, out, jobs=jobs), [tell])
    shown = [outcome for outcome in counts if counts[outcome] or outcome != "can't tell"]
    click.echo(", ".join(f"{counts[outcome]} {outcome}" for outcome in shown))
    all_fixed = counts["fixed"] == len(failing)
    return finished.exit_code if finished.interrupted else 0 if all_fixed else max(FAILED, finished.exit_code)


def outcome_of(before: Record, now: Record) -> Outcome:
    """What became of a failing case.

    An xpass failed because a waiver still expects it to fail: a pass doesn't change that.
    """
    if now.status in PASSING:
        return "still failing" if before.status == "xpass" else "fixed"
    if now.status in FAILING and (now.fails_by_implementation or before.blame == now.blame):
        return "still failing"
    return "can't tell"
