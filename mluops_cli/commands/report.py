"""`mluops report`: the reports of a finished run, in any format; of several runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from mluops_cli.commands.outcomes import waivers_option
from mluops_cli.commands.run_options import REPORTS, format_options, report_files


@click.command(epilog="Example: mluops report mluops-out --html report.html --md report.zh.md --lang zh")
@click.argument(
    "folders",
    metavar="OUT...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@format_options
@click.option(
    "--base", type=click.Path(exists=True, path_type=Path), metavar="OLD", help="A run to compare latencies with."
)
@waivers_option
def command(folders: tuple[Path, ...], base: Path | None, waivers: Path | None, **given: Any) -> int:
    """Write reports of the run in OUT; all formats into OUT itself where none is asked for. - is stdout.

    Of several OUT, each of one implementation, one matrix is written (--html, --md, --csv; Markdown on stdout where
    none is asked for): operators by implementations with verdicts, latency ratios and bound ratios.
    """
    from mluops_cli.commands.outcomes import read
    from mluops_cli.commands.several import check_formats, read_each, write_matrix

    if len(folders) > 1:
        check_formats(given | {"base": base})
        write_matrix(read_each(folders, waivers), given)
        return 0
    (out,) = folders
    run = read(out, waivers)
    if not any(given[name] for name in (*REPORTS, "ci")):
        given |= {name: out / file for name, file in REPORTS.items()}
    reports = report_files(out, given, base)
    if reports is not None:
        reports.refuse_inputs([waivers])
        for path in reports.write(run):
            click.echo(path, err=True)
    return 0
