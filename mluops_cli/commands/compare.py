"""`mluops compare`: what changed from one run to another."""

from __future__ import annotations

import json
from pathlib import Path

import rich_click as click

from mluops_cli.commands.outcomes import folder, waivers_option
from mluops_cli.core.statuses import FAILED

_FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)


@click.command(epilog="Example: mluops compare main-out branch-out --md changes.md")
@folder("old", "OLD")
@folder("new", "NEW")
@click.option("--policy", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="gate.yaml: its rules on against_base decide what else exits with 1.")  # fmt: skip
@click.option("--growth", type=click.FloatRange(1, min_open=True), default=2.0, show_default=True, metavar="FACTOR",
              help="Tell of errors that grew by more than this.")  # fmt: skip
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Everything as JSON; - for stdout.")
@click.option("--md", "md_file", type=_FILE, metavar="FILE", help="Markdown; - for stdout.")
@waivers_option
def command(
    old: Path,
    new: Path,
    policy: Path | None,
    growth: float,
    json_file: Path | None,
    md_file: Path | None,
    waivers: Path | None,
) -> int:
    """Compare the runs in OLD and NEW by case id. Exit code 1 where a case fails that didn't, on the rest by policy."""
    from mluops_cli.commands.outcomes import read_whole
    from mluops_cli.core.output_files import STDOUT, refuse_inputs, write_text
    from mluops_cli.reports.markdown.changes import changes_markdown, changes_text
    from mluops_cli.results.compare import compare_runs
    from mluops_cli.results.finished import run_files
    from mluops_cli.results.gate import Changes, broken_changes, load_policy

    refuse_inputs({"--json": json_file, "--md": md_file}, [*run_files(old), *run_files(new), policy, waivers])
    rules = (load_policy(policy).against_base if policy else None) or Changes()
    found = compare_runs(read_whole(old), read_whole(new, waivers), rules.grown or growth)
    if json_file:
        write_text(json_file, json.dumps(found.as_json(), indent=1, allow_nan=False) + "\n")
    if md_file:
        write_text(md_file, changes_markdown(found))
    if STDOUT not in (json_file, md_file):
        click.echo(changes_text(found), nl=False)
    broken = broken_changes(found, rules.model_copy(update={"newly_failing": True}))
    for sentence in broken:
        click.echo(sentence, err=True)
    return FAILED if broken else 0
