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
    from mluops_cli.execution.case.output_buffers import Array
    from schemas.casefiles.tensors import TensorRecord


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

    Exit code: 1 with differences, 0 without, 2 where no outputs were kept or compared.
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
    from mluops_cli.execution.case.explainer import Explainer
    from mluops_cli.execution.case.judgement import diagnosed, outputs_under_test
    from mluops_cli.inspection.output_diff import diff_lines
    from mluops_cli.results.kept_cases import outputs_path
    from schemas.casefiles.reading import read_case
    from schemas.errors import InputError
    from schemas.suggest import did_you_mean

    kept = outputs_path(out, record.case)
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
        bound, buffers, baseline = prepared.bound, prepared.outputs, prepared.baseline
        inputs, undecided = prepared.call.inputs, prepared.undecided
        for name, got in zip(names, outputs.outputs, strict=True):
            if name in baseline:
                buffers[name].array[...] = _kept_array(got, buffers[name].array)
        if wanted is not None and wanted not in baseline:
            raise InputError(f"--output {wanted}: not compared in this case, so there is no difference to show")
        explainer = Explainer(bound, inputs, baseline, prepared.bounds, undecided, options)
        for item in outputs_under_test(bound, baseline, buffers, options, undecided):
            if wanted in (None, item.name):
                found = diagnosed(item, explainer, buffers[item.name].sentinels)
                for line in diff_lines(item.name, item.baseline, item.output, found, around):
                    yield line, found is not None


def _kept_array(kept: TensorRecord, buffer: Array) -> Array:
    """The values of a kept output; InputError where it isn't the output of this case."""
    from schemas.errors import InputError

    found = kept.array() if kept.has_values else None
    if found is None or (found.shape, found.dtype) != (buffer.shape, buffer.dtype):
        what = "no values" if found is None else f"{found.dtype} {list(found.shape)}"
        raise InputError(f"{kept.id}: {what}, expected {buffer.dtype} {list(buffer.shape)}", kept.place)
    return found


def _why(record: Record) -> str:
    return f" ({record.outputs_kept})" if record.outputs_kept.startswith("not kept") else ""
