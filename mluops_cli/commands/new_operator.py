"""`mluops new-operator`: a package for an operator of one's own, from nothing or from case files of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mluops_cli.commands.options import generation_option
from mluops_cli.commands.problems import report_warning
from mluops_cli.commands.terminal_tables import table_lines

if TYPE_CHECKING:
    from generators.contracts.model import Contract


@click.command(
    name="new-operator", epilog="Example: mluops new-operator points_in_boxes --from dumps/points_in_boxes --out boxes"
)
@click.argument("name")
@click.argument("more", metavar="[FILES]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Case files of the operator, or folders of them; further ones may follow without --from.",
)
@click.option("--out", type=click.Path(path_type=Path), help="The new folder.  [default: NAME]")
@generation_option
def command(
    name: str, more: tuple[Path, ...], sources: tuple[Path, ...], out: Path | None, enum_numbering: str
) -> None:
    """Write a package for the operator NAME: contract, reference stub, suites, implementation stub, tests, Makefile.

    With --from the contract is what the case files have in common: dims that vary together are one size, others are
    constants or parameters; parameters are those of the operator's message; dtypes, layouts, ranges and thresholds are
    those of the files. `make test` in the new folder runs at once; one test fails until the reference kernel is
    written. docs/new-operator.md is a tutorial.
    """
    from mluops_cli.new_operator.drafting import check_new_name, new_operator
    from mluops_cli.new_operator.package import package_files, write_package

    check_new_name(name)
    if more and not sources:
        raise click.UsageError(f"unexpected {str(more[0])!r}: case files follow --from")
    target = Path(name) if out is None else out
    new = new_operator(name, [*sources, *more], enum_numbering)
    files = package_files(new)
    write_package(target, files)
    for line in _contract_lines(new.contract):
        click.echo(line)
    for note in new.notes:
        report_warning(note)
    click.echo(f"\n{target}: {len(files)} files. Next: read {target / new.package / 'operators.py'}, then")
    click.echo(f"    make -C {target} test")


def _contract_lines(contract: Contract) -> list[str]:
    """The tensors and parameters of the contract, as tables."""
    tensors = [("tensor", "dtype", "layout", "shape")]
    tensors += [(each.name, " ".join(each.dtypes), each.layout, each.shape) for each in contract.tensors.values()]
    lines = table_lines(tensors)
    if contract.parameters:
        parameters = [("parameter", "kind", "")]
        for each in contract.parameters:
            kind = each.kind if each.length is None else f"{each.length} of {each.kind}"
            parameters.append((each.name, kind, each.text))
        lines = [*lines, "", *table_lines(parameters)]
    return list(lines)
