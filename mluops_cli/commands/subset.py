"""`mluops subset`: a list of fewer cases for a quick run, and what it gives up."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from mluops_cli.commands.options import Duration, generation_option, keywords_option, plugin_option, suites_option
from mluops_cli.commands.problems import none_selected
from mluops_cli.core.statuses import PASSED


@click.command(epilog="Example: mluops subset cases --by mutants --budget 60s --out quick.txt")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--by",
    "measure",
    required=True,
    type=click.Choice(["mutants", "pairs"]),
    help="The power to keep: mutants that cases kill, or pairs of classes that they have.",
)
@click.option(
    "--mutants",
    "folder",
    default="mluops-mutants",
    show_default=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="--by mutants: the results of mluops mutate --matrix.",
)
@click.option(
    "--budget", type=Duration(), metavar="TIME", help="A run of the subset may take so long.  [default: keep all power]"
)
@suites_option
@keywords_option
@click.option(
    "--out", default="-", type=click.Path(allow_dash=True, dir_okay=False, path_type=Path), help="File for the list."
)
@generation_option
@plugin_option
def command(
    paths: tuple[Path, ...],
    measure: str,
    folder: Path,
    budget: float | None,
    suites: frozenset[str],
    keywords: str | None,
    out: Path,
    enum_numbering: str,
    plugins: tuple[Path, ...],
) -> int:
    """Choose the cases at PATH... that keep most power in little time; `mluops run --select FILE` takes the list.

    What the list gives up stands in it as remarks, and on stderr. Times are those of one worker: of the implementation
    that was mutated, or estimated from the sizes. A class is one of sizes, parameters, dtypes, values or statuses.
    """
    from mluops_cli.core.case_lists import case_list
    from mluops_cli.core.discovery import plan_cases
    from mluops_cli.core.output_files import refuse_inputs, write_text
    from mluops_cli.search.subset.by_mutants import killing_power
    from mluops_cli.search.subset.by_pairs import covering_power
    from mluops_cli.search.subset.choice import choose

    cases = plan_cases(paths, suites=suites, keywords=keywords, enum_numbering=enum_numbering)
    if not cases:
        return none_selected()
    refuse_inputs({"--out": out}, [file for case in cases for file in case.files])
    ids = [case.id for case in cases]
    choice = choose(killing_power(folder, ids) if measure == "mutants" else covering_power(cases), budget)
    remarks = list(choice.words())
    write_text(out, case_list(choice.chosen, remarks))
    for remark in remarks:
        click.echo(remark, err=True)
    return PASSED
