"""`mluops convert`: case files in another form, with equal messages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import rich_click as click

from mluops_cli.commands.options import ByteSize, generation_option
from mluops_cli.commands.problems import report_problem, report_warning
from schemas.casefiles.writing import BINARY, TEXT, WRONG_SUFFIX

if TYPE_CHECKING:
    from schemas.casefiles.reading import CaseFile

_OTHER: Final = {BINARY: TEXT, TEXT: BINARY}


@click.command(epilog="Example: mluops convert --plain cases texts    or    mluops convert dump.prototxt dump.pb")
@click.argument("source", metavar="SRC", type=click.Path(path_type=Path))
@click.argument("target", metavar="DST", type=click.Path(path_type=Path))
@click.option("--plain", is_flag=True, help="Leave out what only mluops reads.")
@click.option(
    "--to",
    "format_",
    type=click.Choice(["pb", "prototxt"]),
    help="Form of the files below a folder; without it each takes the other one.",
)
@click.option(
    "--inline-limit",
    type=ByteSize(),
    metavar="SIZE",
    help="Values of more bytes go to external data, those of fewer come into the case file; without it they stay.",
)
@generation_option
def command(
    source: Path, target: Path, plain: bool, format_: str | None, inline_limit: int | None, enum_numbering: str
) -> int:
    """Convert a case file, .pb or .prototxt, or all those below a folder, to DST: a file, or a folder.

    Bits, fields and their values stay as they are; nothing is drawn. What can't be converted is a warning on stderr.
    No file that is to be converted is written over.
    """
    from schemas.atomic_files import remove_leftovers
    from schemas.casefiles.converting import convert_case
    from schemas.casefiles.reading import read_case
    from schemas.errors import InputError, MluopsError
    from schemas.suggest import counted

    if not source.exists():
        raise InputError(f"no such file or folder: {source}")
    tree = source.is_dir()
    pairs = _tree(source, target, format_) if tree else [(source, _file(source, target, format_))]
    inputs = {os.path.realpath(path) for path, _ in pairs}
    for folder in {to.parent for _, to in pairs}:
        remove_leftovers(folder)
    written = failed = 0
    for path, to in pairs:
        try:
            if os.path.realpath(to) in inputs:
                raise InputError(f"{path}: not converted, {to} is a file to be converted itself: choose another DST")
            with read_case(path, enum_numbering) as case:
                _warn_of(case)
                convert_case(case, to, plain=plain, inline_limit=inline_limit, warn=report_warning)
            written += 1
        except MluopsError as error:
            if not tree:
                raise
            report_problem(error)
            failed = max(failed, error.exit_code)
    if tree:
        click.echo(f"{counted(written, 'case file')} in {target}")
    return failed


def _warn_of(case: CaseFile) -> None:
    """Warn of an uncertain enum numbering and of wrong numbers of values; InputError for the older numbering."""
    from schemas.casefiles.enum_numbering import OLD
    from schemas.errors import InputError

    if case.numbering.word == OLD:
        raise InputError(f"{case.path}: {case.numbering.text}")
    if case.numbering.text:
        report_warning(f"{case.path}: {case.numbering.text}")
    for record in (*case.inputs, *case.outputs):
        try:
            if record.bulk is not None:  # external data are looked at where they are copied
                record.check_count()
        except InputError as error:
            report_warning(error)


def _file(source: Path, target: Path, format_: str | None) -> Path:
    """The file that one file is written to; InputError where DST doesn't say."""
    from schemas.errors import InputError
    from schemas.suggest import did_you_mean

    if target.is_dir() or target.suffix not in _OTHER:
        if not target.is_dir() and target.suffix:
            raise InputError(f"{target}: {WRONG_SUFFIX}{did_you_mean(target.suffix, _OTHER)}")
        return target / (source.stem + (f".{format_}" if format_ else _OTHER.get(source.suffix, BINARY)))
    if format_ and target.suffix != f".{format_}":
        raise InputError(f"--to {format_}, but {target} ends in {target.suffix}")
    return target


def _tree(source: Path, target: Path, format_: str | None) -> list[tuple[Path, Path]]:
    """Each case file below a folder and its target; where a .pb and a .prototxt have one target, the .pb is taken."""
    from mluops_cli.core.discovery import find_case_files
    from schemas.errors import InputError

    if target.is_file():
        raise InputError(f"{target} is a file, a folder of case files needs a folder")
    pairs: dict[Path, Path] = {}  # target -> source
    for path, name in find_case_files([source], skipped=[target], both_forms=True):
        to = target / f"{name}.{format_}" if format_ else target / f"{name}{_OTHER[path.suffix]}"
        if to in pairs:
            report_warning(f"{path}: left out, {to} is written from the .pb of that name")
        else:
            pairs[to] = path
    if not pairs:
        raise InputError(f"no case files (.pb or .prototxt) in {source}")
    return [(path, to) for to, path in pairs.items()]
