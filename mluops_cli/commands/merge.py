"""`mluops merge`: the results of the shards of a run made into those of one run."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from mluops_cli.core.statuses import PASSED


@click.command(epilog="Example: mluops merge shard-1 shard-2 shard-3 shard-4 --out mluops-out")
@click.argument(
    "folders",
    metavar="OUT...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="The folder of the merged results."
)
def command(folders: tuple[Path, ...], out: Path) -> int:
    """Merge the results of all shards of one run (`mluops run --shard I/N`) into those of one run.

    Reports, gate, compare, replay and the rest take DIR as they take the folder of a run. What was kept of failing
    cases comes along. The verdicts don't count here: `mluops gate DIR` judges.

    Exit code: 0 merged; 2 a shard is missing or there twice, or the shards differ in implementation, options, selected
    cases or case files: DIR is left as it is.
    """
    from mluops_cli.results.merging import merge_shards
    from schemas.suggest import counted

    run = merge_shards(folders, out)
    counts = ", ".join(f"{number} {status}" for status, number in sorted(run.tally.counts.items()))
    click.echo(f"{counted(run.tally.total, 'case')} of {counted(len(folders), 'shard')} in {out}: {counts or 'none'}")
    if run.not_run:
        click.echo(f"{counted(run.not_run, 'case was', 'cases were')} not run", err=True)
    return PASSED
