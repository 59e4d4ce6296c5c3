"""`mluops unpack`: a case file as a folder of raw files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import rich_click as click

from mluops_cli.commands.options import generation_option, plugin_option

if TYPE_CHECKING:
    from mluops_cli.execution.case.calls import Prepared


@click.command(epilog="Example: mluops unpack out/failures/op/suite/name.pb raw && gdb --args ./my_operator raw")
@click.argument("file", metavar="CASE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("target", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@generation_option
@plugin_option
def command(file: Path, target: Path, enum_numbering: str, plugins: tuple[Path, ...]) -> None:
    """Write the case file CASE as a folder of raw files: what `--impl "exec:PROGRAM {dir}"` gives the program.

    So the program runs under a debugger on a failing case, with DIR as its argument. docs/exec.md describes the files.
    Beside them stand expected0.bin and so on: the baselines of the outputs, in the form of the output files. DIR must
    not exist, or be empty.
    """
    from mluops_cli.core.discovery import manifest_metadata
    from mluops_cli.execution.case.case_run import prepare
    from schemas.atomic_files import write_failure
    from schemas.casefiles.reading import read_case
    from schemas.casefiles.writing import TEXT
    from schemas.errors import InputError

    if target.is_dir() and any(target.iterdir()):
        raise InputError(f"{target} isn't empty, expected a new folder")
    with read_case(file, enum_numbering) as case:
        # A text file has no metadata of ours: the manifest beside it holds it.
        found = manifest_metadata(file) if file.suffix == TEXT else None
        case.take_metadata(found[1] if found else None)
        prepared = prepare(case)
        try:
            there = target.is_dir()  # the current folder or a mount point can't be replaced by another folder
            beside = target if there else target.parent
            beside.mkdir(parents=True, exist_ok=True)
            making = Path(mkdtemp(prefix=f".{target.name}.", dir=beside))
            try:
                _write(prepared, making)
                making.chmod(0o755)
                if there:
                    for path in sorted(making.iterdir()):
                        os.replace(path, target / path.name)
                else:
                    os.replace(making, target)
            finally:
                shutil.rmtree(making, ignore_errors=True)
        except OSError as error:
            raise write_failure(target, error) from error
    for name in sorted(os.listdir(target)):
        click.echo(str(target / name))


def _write(prepared: Prepared, making: Path) -> None:
    """Write the files; InputError for a call that no files show."""
    from mluops_cli.implementations.base import CannotShow
    from mluops_cli.implementations.canary_buffer import memory_of
    from mluops_cli.implementations.exec import folder, refuse_unshown
    from schemas.errors import InputError

    try:
        refuse_unshown(prepared.call)
        folder.write(prepared.call, making)
    except CannotShow as error:
        raise InputError(str(error)) from None
    for index, (name, output) in enumerate(prepared.call.outputs.items()):
        baseline = prepared.baseline.get(name)
        if output is not None and baseline is not None:
            output[...] = baseline  # in the memory of the output, so that the gaps are those of its file
            memory_of(output).tofile(making / f"expected{index}.bin")
