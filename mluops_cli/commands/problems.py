"""What commands say on stderr: problems and warnings, with whatever files of others put into them made visible."""

from __future__ import annotations

from typing import Final

import rich_click as click

from mluops_cli.core.escaping import one_line, visible
from mluops_cli.core.statuses import NOTHING_SELECTED

_REASON: Final = 500  # characters


def brief(reason: str) -> str:
    """The reason of a failure in one line, cut where it is long."""
    return one_line(reason, _REASON)


def none_selected() -> int:
    """Say that no case is selected; the exit code of that."""
    click.echo("no case is selected", err=True)
    return NOTHING_SELECTED


def report_problem(text: object) -> None:
    """Print a problem; it may have several lines."""
    click.echo(visible(str(text)), err=True)


def report_warning(text: object) -> None:
    """Print a warning in one line."""
    click.echo(f"warning: {one_line(str(text))}", err=True)
