"""What `run` and `report` share where there are several implementations: folders, and the matrix as files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from schemas.errors import InputError
from schemas.path_names import path_part

if TYPE_CHECKING:
    from mluops_cli.reports.side_by_side.matrix import Matrix
    from mluops_cli.results.finished import FinishedRun

FORMATS: Final = ("html", "md", "csv")
_ONE: Final = {"junit": "--junit", "ci": "--ci", "base": "--base"}  # reports of one implementation
_LONGEST: Final = 100  # bytes of a folder's name


def result_folders(out: Path, impls: Sequence[str]) -> dict[str, Path]:
    """Implementation -> OUT/<implementation>, with _ for what names of folders shouldn't have.

    InputError for an implementation that is given twice.
    """
    folders: dict[str, Path] = {}
    for impl in impls:
        if impl in folders:
            raise InputError(f"--impl {impl} is given twice")
        name = path_part(impl, _LONGEST).strip("._") or "implementation"
        taken = {path.name.casefold() for path in folders.values()}
        number = 1
        while (numbered := name if number == 1 else f"{name}~{number}").casefold() in taken:
            number += 1
        folders[impl] = out / numbered
    return folders


def check_formats(given: Mapping[str, Any]) -> None:
    """InputError for a report that there is of one implementation only."""
    for name, option in _ONE.items():
        if given.get(name):
            raise InputError(f"{option} takes one implementation: `mluops report OUT/<implementation> {option} ...`")


def read_each(folders: Sequence[Path], waivers: Path | None) -> list[FinishedRun]:
    """Read the runs that are to stand side by side; InputError for a shard, and for a folder that is given twice."""
    from mluops_cli.commands.outcomes import read_whole

    known: dict[str, Path] = {}
    for folder in folders:
        first = known.setdefault(os.path.realpath(folder), folder)
        if first is not folder:
            raise InputError(f"{folder} is the folder {first} again: expected the results of another implementation")
    return [read_whole(folder, waivers) for folder in folders]


def write_matrix(runs: Sequence[FinishedRun], given: Mapping[str, Any]) -> None:
    """Write the matrix in the formats that are given, and print it as Markdown where none is."""
    from mluops_cli.core.output_files import STDOUT, refuse_inputs, write_text
    from mluops_cli.reports.side_by_side.matrix import side_by_side
    from mluops_cli.reports.side_by_side.matrix_page import html_text
    from mluops_cli.reports.side_by_side.texts import csv_lines, markdown_lines
    from mluops_cli.results.finished import run_files

    wanted: dict[str, Path | None] = {name: given[name] for name in FORMATS}
    if not any(wanted.values()):
        wanted["md"] = STDOUT
    files = [file for run in runs for file in run_files(run.out)]
    refuse_inputs({f"--{name}": path for name, path in wanted.items()}, files)
    matrix = side_by_side(runs)
    made: dict[str, Callable[[Matrix], str | Iterable[str]]] = {
        "html": html_text,
        "md": markdown_lines,
        "csv": csv_lines,
    }
    for name, path in wanted.items():
        if path is not None:
            write_text(path, made[name](matrix))
            if path != STDOUT:
                click.echo(path, err=True)
