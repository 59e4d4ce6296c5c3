"""`mluops diff`: where a kept wrong output differs from its baseline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mluops_cli.commands.options import plugin_option
from mluops_cli.commands.outcomes import folder
from mluops_cli.commands.rerun import named_failure, planned_again
from mluops_cli.core.statuses import FAILED

if TYPE_CHECKING:
    from mluops_cli.core.case_options import CaseOptions
    from mluops_cli.core.record import Record


@click.command(epilog="Example: mluops diff mluops-out square_collect --around 2")
@folder("out", "OUT")
@click.argument("case", metavar="CASE")
@click.option("--output", "wanted", metavar="NAME", help="Only this output.  [default: all that differ]")
@click.option(
    "--around",
    default=3,
    show_default=True,
    type=click.IntRange(0, 50),
    metavar="N",
    help="Elements that are shown on each side of the worst one, along the last two axes.",
)
@plugin_option
def command(out: Path, case: str, wanted: str | None, around: int, plugins: tuple[Path, ...]) -> int:
    """Show where the outputs that were kept of a failing case differ from its baseline.

    CASE is its id, or a part of it that no other failing case has. Printed are the diagnosis of each output, and what
    is expected, what was computed, and the difference around the worst element. The outputs are those that `mluops
    run` or `mluops replay` kept (--keep-outputs).

    Exit code: 1 with differences, 0 without, 2 where no outputs were kept.
    """
    from mluops_cli.commands.outcomes import read
    from mluops_cli.core.case_options import read_options
    from mluops_cli.core.escaping import one_line
    from mluops_cli.results.jsonl import SUMMARY

    run = read(out)
    record = named_failure(run, case)
    options = read_options(run.summary.get("options") or {}, run.impl, str(out / SUMMARY))
    lines = [*_lines(out, record, options, wanted, around)]
    for line in (f"{record.case}  {record.params_text}".rstrip(), *(line for line, _ in lines)):
        click.echo(one_line(line))
    return FAILED if any(differs for _, differs in lines) else 0


def _lines(
    out: Path, record: Record, options: CaseOptions, wanted: str | None, around: int
) -> Iterator[tuple[str, bool]]:
    """The lines about each output, and whether they show a difference."""
    from mluops_cli.core.discovery import open_case
    from mluops_cli.execution.case.case_run import prepare
    from mluops_cli.inspection.output_diff import diff_lines
    from mluops_cli.results.kept_cases import OUTPUTS, kept_path
    from schemas.casefiles.reading import read_case
    from schemas.errors import InputError
    from schemas.suggest import did_you_mean

    kept = kept_path(out, record.case, f"{OUTPUTS}.pb")
    if not kept.is_file():
        raise InputError(
            f"no outputs of {record.case} were kept in {out}{_why(record)}; "
            f"`mluops replay {out} -k {record.case} --keep-outputs 64MiB` keeps them"
        )
    with open_case(planned_again(out, record, options.enum_numbering)) as file, read_case(kept) as outputs:
        prepared = prepare(file, options)
        names = list(prepared.bound.outputs)
        if wanted is not None and wanted not in names:
            raise InputError(f"--output {wanted}: no such output{did_you_mean(wanted, names)}")
        for name, got in zip(names, outputs.outputs, strict=True):
            expected = prepared.baseline.get(name)
            if wanted not in (None, name) or expected is None or not got.has_values:
                continue
            lines = [*diff_lines(name, expected, got.array(), prepared.bound.criteria[name], around)]
            yield from ((line, len(lines) > 1 or not line.endswith("no difference")) for line in lines)


def _why(record: Record) -> str:
    return f" ({record.outputs_kept})" if record.outputs_kept.startswith("not kept") else ""
