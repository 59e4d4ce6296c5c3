"""`mluops import`: configs and case files of others into specs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import rich_click as click

from mluops_cli.commands.options import plugin_option
from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.statuses import NOTHING_SELECTED, WRONG_INPUT

if TYPE_CHECKING:
    from generators.importing.draft import CaseDraft

_CONFIG: Final = ".json"
_DUMPS: Final = (".pb", ".prototxt")


@click.command(name="import", epilog="Example: mluops import configs dumps --out specs && mluops gen --spec specs")
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the specs, one per operator.")
@click.option("--suite", default="imported", show_default=True, metavar="NAME", help="The suite that they go into.")
@plugin_option
def command(sources: tuple[Path, ...], out: Path, suite: str, plugins: tuple[Path, ...]) -> int:
    """Turn JSON configs of the public generator, and case files (network dumps), into specs of ours.

    Folders are searched recursively. Equal cases become one; comments say where each came from and how often it
    occurs. What doesn't go over as it stands, unknown keys first of all, is named on stderr.
    """
    from generators.importing.specs import specs_of, write_spec
    from generators.specs.fields import NAME
    from schemas.errors import InputError

    if not NAME.fullmatch(suite):
        raise click.BadParameter(f"{suite!r} is no name of a suite: a-z 0-9 _ . -", param_hint="--suite")
    drafts: list[CaseDraft] = []
    notes: Counter[str] = Counter()
    problems = 0
    for path, name in _files(sources):
        try:
            drafts += _read(path, name, notes)
        except InputError as error:
            click.echo(str(error), err=True)
            problems += 1
    if not drafts:
        click.echo("no cases to import", err=True)
        return WRONG_INPUT if problems else NOTHING_SELECTED
    rows = [("operator", "cases", "entries", "spec", "")]
    own: Counter[str] = Counter()
    for spec in specs_of(drafts, own, suite):
        path = write_spec(out, spec)
        told = "" if spec.known else f"no operator {spec.op} here: gen refuses it until one is added"
        rows.append((spec.op, str(spec.cases), str(spec.entries), str(path), told))
        for line in spec.left_out:
            click.echo(f"warning: {line}", err=True)
    for note, count in sorted((notes + own).items()):
        click.echo(f"warning: {note}{f' ({count} times)' if count > 1 else ''}", err=True)
    for line in table_lines(rows, right=frozenset({1, 2})):
        click.echo(line)
    return WRONG_INPUT if problems else 0


def _read(path: Path, name: str, notes: Counter[str]) -> list[CaseDraft]:
    from generators.importing.casefiles import read_dump
    from generators.importing.configs import read_config

    met: Counter[str] = Counter()
    drafts, found = read_config(path) if path.suffix == _CONFIG else ([read_dump(path, name, met)], met)
    for note, count in found.items():
        notes[f"{path.name}: {note}" if note.startswith("unknown") else note] += count
    return drafts


def _files(sources: tuple[Path, ...]) -> Iterator[tuple[Path, str]]:
    """Configs and case files, each with the name that comments call it by."""
    from schemas.errors import InputError

    for source in sources:
        if source.is_dir():
            found = [Path(where, name) for where, _, names in os.walk(source) for name in names]
            for path in sorted(found):
                if path.suffix in (_CONFIG, *_DUMPS):
                    yield path, path.relative_to(source).as_posix()
        elif not source.exists():
            raise InputError(f"no such file or folder: {source}")
        elif source.suffix not in (_CONFIG, *_DUMPS):
            raise InputError(f"{source}: expected a .json config, a .pb or .prototxt case file, or a folder of them")
        else:
            yield source, source.name
