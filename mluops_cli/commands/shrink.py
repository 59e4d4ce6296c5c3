"""`mluops shrink`: a failing case of a run reduced to the smallest one that fails alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mluops_cli.commands.options import made_folder, plugin_option
from mluops_cli.commands.outcomes import folder
from mluops_cli.commands.problems import brief
from mluops_cli.commands.rerun import impl_option, named_failure, options_again, planned_again, timeout_option
from mluops_cli.core.escaping import cut
from mluops_cli.core.statuses import FAILED, INTERRUPTED, OUR_FAILURE, PASSED

if TYPE_CHECKING:
    from mluops_cli.core.case_options import CaseOptions
    from mluops_cli.core.record import Record
    from mluops_cli.search.case_runner import CaseRunner
    from mluops_cli.search.shrinking.smallest_case import Written


@click.command(epilog="Example: mluops shrink mluops-out psamask_forward/general/small_collect")
@folder("out", "OUT")
@click.argument("case", metavar="CASE")
@impl_option
@timeout_option
@click.option(
    "--to", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Folder.  [default: OUT/shrunk]"
)
@plugin_option
def command(out: Path, case: str, to: Path | None, plugins: tuple[Path, ...], **given: Any) -> int:
    """Reduce a failing case of the run in OUT to the smallest case that fails for the same reason.

    CASE is its id, or a part of it that no other failing case has. Sizes and parameters are lowered, values become 0, 1
    or small whole numbers. The options are those of the run. The kept file under OUT/failures is used, and the case's
    own where there is none. Written are DIR/operator/suite/name.yaml with the entry, .pb and .prototxt; small tensors
    are printed: inputs, expected, got. An interrupt leaves the smallest case so far.

    Exit code: 0 reduced, 1 the case doesn't fail again, 2 the command or the case file is wrong, 3 our own failure, 130
    interrupted.
    """
    from mluops_cli.commands.outcomes import read

    run = read(out)
    record = named_failure(run, case)
    options = options_again(run, plugins, given)
    to = out / "shrunk" if to is None else to
    with made_folder(to):
        return _shrink(out, record, options, to)


def _shrink(out: Path, record: Record, options: CaseOptions, to: Path) -> int:
    from mluops_cli.execution.interrupt import interruptible
    from mluops_cli.results.symptoms import IN_COMMENT, symptom_of
    from mluops_cli.search.fuzz.findings import is_finding
    from mluops_cli.search.shrinking.failing_case import case_of_file
    from mluops_cli.search.shrinking.reduction import limit_of, reduced_hang, shrinking_runner, symptom_judge
    from mluops_cli.search.shrinking.shrinker import Shrinker
    from mluops_cli.search.shrinking.smallest_case import KEPT, run_file, write

    planned = planned_again(out, record, options.enum_numbering)
    suite, start = case_of_file(planned)
    with interruptible() as interrupt, shrinking_runner(options, limit_of(record), KEPT) as runner:
        again = run_file(runner, planned)
        if again is None:
            return INTERRUPTED
        if not is_finding(again):
            click.echo(f"{again.case} doesn't fail again: {again.status}{_because(again)}", err=True)
            return OUR_FAILURE if again.blame == "tool" else FAILED
        symptom = symptom_of(again)
        if again.status == "timeout":
            shrunk = reduced_hang(start, suite, options, symptom_judge(), interrupt.is_set, symptom)
        else:
            shrunk = Shrinker(runner, symptom_judge(), stopped=interrupt.is_set).shrink(start, suite, symptom)
        if shrunk is None and interrupt.is_set():
            return INTERRUPTED
        if shrunk is None:
            click.echo(
                f"{again.case} fails ({symptom}), but not as a case of a spec: the cause may be the baseline that its "
                "file carries, capacity beyond the counted rows, or the failure comes and goes",
                err=True,
            )
            return FAILED
        click.echo(f"{again.case}: {symptom}\n{shrunk.line}")
        written = write(shrunk, suite, (f"{again.case}: {symptom}", cut(again.reason, IN_COMMENT)), to)
        _tell(written)
        if shrunk.interrupted or interrupt.is_set():
            return INTERRUPTED
        return _show(runner, written)


def _because(record: Record) -> str:
    return f" ({brief(record.reason)})" if record.reason else ""


def _tell(written: Written) -> None:
    """Print the entry and the files."""
    lines = written.spec.read_text(encoding="utf-8").splitlines()
    click.echo("\n".join(line for line in lines if not line.lstrip().startswith("#")))
    for file in (written.spec, written.binary, written.text):
        click.echo(str(file))


def _show(runner: CaseRunner, written: Written) -> int:
    """Run the written case and print its tensors; the exit code."""
    from mluops_cli.search.fuzz.findings import is_finding
    from mluops_cli.search.shrinking.side_by_side import tensor_lines
    from mluops_cli.search.shrinking.smallest_case import run_written

    record, shown = run_written(runner, written)
    for line in tensor_lines(shown):
        click.echo(line)
    if record is None:
        return INTERRUPTED
    click.echo(f"{record.status}{_because(record)}")
    if not is_finding(record):
        click.echo("the written case doesn't fail: the failure comes and goes", err=True)
        return FAILED
    return PASSED
