"""`mluops docs`: a page per operator, made from its contract, definition and suites."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from mluops_cli.commands.options import made_folder, plugin_option


@click.command(epilog="Example: mluops docs psamask_forward --out docs/operators")
@click.argument("ops", metavar="[OP]...", nargs=-1)
@click.option(
    "--out",
    default="docs/operators",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder that the pages are written to.",
)
@plugin_option
def command(ops: tuple[str, ...], out: Path, plugins: tuple[Path, ...]) -> None:
    """Write OUT/OP.md for every operator, or for those that are named, operators of other packages included.

    A page holds the tensors with dtypes, layouts and shapes, the parameters, the definition, the rules, the criteria,
    the relations and the suites. The definition is the Markdown file beside the operator's spec; the reference kernel
    must compute the outputs of its worked examples.
    """
    from generators.operator_registry import operator_named, operators
    from mluops_cli.core.output_files import write_text
    from mluops_cli.inspection.operator_pages import operator_page

    pages = {op: operator_page(operator_named(op)) for op in dict.fromkeys(ops or sorted(operators()))}
    with made_folder(out):
        for op, page in pages.items():
            write_text(out / f"{op}.md", page)
            click.echo(out / f"{op}.md")
