"""`mluops convert`: case files in another form, with equal messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import rich_click as click

from mluops_cli.commands.options import ByteSize, generation_option

_OTHER: Final = {".pb": ".prototxt", ".prototxt": ".pb"}


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
    help="Values of more bytes go to side files, those of fewer come into the case file; without it they stay.",
)
@generation_option
def command(
    source: Path, target: Path, plain: bool, format_: str | None, inline_limit: int | None, enum_numbering: str
) -> int:
    """Convert a case file, .pb or .prototxt, or all those below a folder, to DST: a file, or a folder.

    Bits, fields and their values stay as they are; nothing is drawn. What doesn't go over is a warning on stderr.
    """
    from schemas.casefiles.converting import convert_case
    from schemas.casefiles.reading import read_case
    from schemas.errors import InputError, MluopsError
    from schemas.suggest import counted

    def warn(message: str) -> None:
        click.echo(f"warning: {message}", err=True)

    if not source.exists():
        raise InputError(f"no such file or folder: {source}")
    tree = source.is_dir()
    written = failed = 0
    for path, to in _tree(source, target, format_) if tree else [(source, _file(source, target, format_))]:
        try:
            with read_case(path, enum_numbering) as case:
                if case.numbering.word == "old":
                    raise InputError(f"{path}: {case.numbering.text}")
                if case.numbering.text:
                    warn(f"{path}: {case.numbering.text}")
                for record in (*case.inputs, *case.outputs):
                    count = record.value_count() if record.bulk is not None else None
                    if count is not None and count != record.span:
                        found = counted(count, "value")
                        warn(f"{record.place}: {found}, expected {record.span} for shape {list(record.shape)}")
                convert_case(case, to, plain=plain, inline_limit=inline_limit, warn=warn)
            written += 1
        except MluopsError as error:
            if not tree:
                raise
            click.echo(str(error), err=True)
            failed = max(failed, error.exit_code)
    if tree:
        click.echo(f"{written} case files in {target}")
    return failed


def _file(source: Path, target: Path, format_: str | None) -> Path:
    """The file that one file is written to; InputError where it can't be told."""
    from schemas.errors import InputError
    from schemas.suggest import did_you_mean

    if target.is_dir() or target.suffix not in _OTHER:
        if not target.is_dir() and target.suffix:
            raise InputError(f"{target}: a case file ends in .pb or .prototxt{did_you_mean(target.suffix, _OTHER)}")
        return target / (source.stem + (f".{format_}" if format_ else _OTHER.get(source.suffix, ".pb")))
    if format_ and target.suffix != f".{format_}":
        raise InputError(f"--to {format_}, but {target} ends in {target.suffix}")
    return target


def _tree(source: Path, target: Path, format_: str | None) -> Iterator[tuple[Path, Path]]:
    """Each case file below a folder and where it goes; of a .pb and a .prototxt that would meet the .pb goes."""
    from schemas.errors import InputError

    if target.is_file():
        raise InputError(f"{target} is a file, a folder of case files needs a folder")
    out = os.path.realpath(target)
    found: list[Path] = []
    for where, folders, files in os.walk(source):
        folders[:] = sorted(each for each in folders if os.path.realpath(Path(where, each)) != out)
        found += (Path(where, name) for name in sorted(files) if name.endswith(tuple(_OTHER)))
    if not found:
        raise InputError(f"no case files (.pb or .prototxt) in {source}")
    taken: set[Path] = set()
    for path in found:
        suffix = f".{format_}" if format_ else _OTHER[path.suffix]
        to = target / path.relative_to(source).with_suffix(suffix)
        if to in taken:
            click.echo(f"warning: {path}: left out, {to} is written from the .pb of that name", err=True)
            continue
        taken.add(to)
        yield path, to
