"""The matrix of implementations as one HTML page that runs no script."""

from __future__ import annotations

from markupsafe import Markup

from mluops_cli.reports.html.page import environment, template_text
from mluops_cli.reports.side_by_side.matrix import APART, Matrix
from mluops_cli.reports.side_by_side.texts import notes


def html_text(matrix: Matrix) -> str:
    """The page."""
    return environment().get_template("side_by_side.html.j2").render(
        matrix=matrix,
        apart=[*matrix.apart.items()][:APART],
        left_out=max(0, len(matrix.apart) - APART),
        notes=[*notes(matrix)],
        style=Markup(template_text("report.css")),
    )  # fmt: skip
