"""What the commands on the folder of a run share: the argument, --waivers, and reading both."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

if TYPE_CHECKING:
    from mluops_cli.results.finished import FinishedRun


def folder(name: str, metavar: str) -> Callable[..., Any]:
    """An argument that names the folder of a run."""
    return click.argument(name, metavar=metavar, type=click.Path(exists=True, file_okay=False, path_type=Path))


def waivers_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--waivers FILE."""
    kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option(
        "--waivers", type=kind, metavar="FILE", help="waivers.yaml: known failures, with owner and end."
    )(command)


def read(out: Path, waivers: Path | None = None) -> FinishedRun:
    """Read the run in a folder and apply the waivers of a file."""
    from mluops_cli.results.finished import read_run, read_summary
    from mluops_cli.results.waivers import load_waivers

    waive = None
    if waivers is not None:
        waive = load_waivers(waivers, on=(read_summary(out).get("environment") or {}).get("platform"))
    run = read_run(out, waive)
    gc.freeze()  # the command ends soon: no search for reference cycles among the records
    return run


def read_whole(out: Path, waivers: Path | None = None) -> FinishedRun:
    """Read a run that is compared with others; InputError for a shard, which lacks most cases."""
    from mluops_cli.results.finished import require_whole

    run = read(out, waivers)
    require_whole(run)
    return run
