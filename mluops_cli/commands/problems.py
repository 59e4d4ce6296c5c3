"""What commands say on stderr: problems and warnings, with whatever files of others put into them made visible."""

from __future__ import annotations

import rich_click as click

from mluops_cli.core.escaping import one_line, visible


def report_problem(text: object) -> None:
    """Print a problem; it may have several lines."""
    click.echo(visible(str(text)), err=True)


def report_warning(text: object) -> None:
    """Print a warning in one line."""
    click.echo(f"warning: {one_line(str(text))}", err=True)
