"""`mluops report`: the reports of a finished run, in any format."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from mluops_cli.commands.outcomes import folder, waivers_option
from mluops_cli.commands.run_options import format_options


@click.command(epilog="Example: mluops report mluops-out --html report.html --md report.zh.md --lang zh")
@folder("out", "OUT")
@format_options
@click.option(
    "--base", type=click.Path(exists=True, path_type=Path), metavar="OLD", help="A run to compare latencies with."
)
@waivers_option
def command(
    out: Path,
    junit: Path | None,
    html: Path | None,
    md: Path | None,
    csv: Path | None,
    lang: str,
    ci: str | None,
    base: Path | None,
    waivers: Path | None,
) -> int:
    """Write reports of the run in OUT; all formats into OUT itself where none is asked for. - is stdout."""
    from mluops_cli.commands.outcomes import read
    from mluops_cli.reports.ci import detect_server
    from mluops_cli.reports.dispatch import ReportFiles

    run = read(out, waivers)
    if ci == "auto":
        ci = detect_server()
    elif not any((junit, html, md, csv, ci)):
        junit, html, md, csv = (out / name for name in ("junit.xml", "report.html", "report.md", "report.csv"))
    reports = ReportFiles(out, junit, html, md, csv, lang, ci, base)
    reports.refuse_inputs([waivers])
    for path in reports.write(run):
        click.echo(path, err=True)
    return 0
