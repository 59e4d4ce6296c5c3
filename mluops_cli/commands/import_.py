"""`mluops import`: configs and case files of others into specs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import rich_click as click

from mluops_cli.commands.options import generation_option, plugin_option
from mluops_cli.commands.problems import report_problem, report_warning
from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.statuses import NOTHING_SELECTED, WRONG_INPUT

if TYPE_CHECKING:
    from generators.importing.draft import Imported
    from generators.importing.specs import ImportedSpec

_CONFIG: Final = ".json"


@click.command(name="import", epilog="Example: mluops import configs dumps --out specs && mluops gen --spec specs")
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the specs, one per operator.")
@click.option("--suite", default="imported", show_default=True, metavar="NAME", help="The suite that they go into.")
@generation_option
@plugin_option
def command(sources: tuple[Path, ...], out: Path, suite: str, enum_numbering: str, plugins: tuple[Path, ...]) -> int:
    """Turn JSON configs of the public generator, and case files (network dumps), into specs of ours.

    Folders are searched recursively; JSON files in them that are something else are skipped. Equal cases become one;
    comments say where each came from and how often it occurs. What is not converted as it stands, unknown keys for
    instance, is reported on stderr. Entries and files that are wrong are left out, the others imported; exit code 2.
    """
    from generators.importing.draft import Imported
    from generators.importing.specs import specs_of
    from generators.specs.fields import NAME
    from schemas.errors import InputError

    if not NAME.fullmatch(suite):
        raise click.BadParameter(f"{suite!r} is no name of a suite: a-z 0-9 _ . -", param_hint="--suite")
    every = Imported()
    for path, name, named in _files(sources):
        try:
            one = _read(path, name, named, enum_numbering)
        except InputError as error:
            every.errors.append(error)
            continue
        every.drafts += one.drafts
        every.errors += one.errors
        for note, count in one.notes.items():
            every.notes[f"{path.name}: {note}" if note.startswith("unknown") else note] += count
    problems = list(map(str, every.errors))
    specs = specs_of(every.drafts, every.note, suite)
    rows, failures = _write(out, specs)
    problems += failures
    _report(problems, [line for spec in specs for line in spec.left_out], every.notes)
    if not every.drafts:
        click.echo("no cases to import", err=True)
        return WRONG_INPUT if problems else NOTHING_SELECTED
    for line in table_lines(rows, right=frozenset({1, 2})):
        click.echo(line)
    return WRONG_INPUT if problems else 0


def _read(path: Path, name: str, named: bool, enum_numbering: str) -> Imported:
    """What a file holds; a JSON file that is no config is an error only where the command names it."""
    from generators.importing.casefiles import read_dump
    from generators.importing.configs import NoConfig, read_config
    from generators.importing.draft import Imported

    if path.suffix != _CONFIG:
        return read_dump(path, name, enum_numbering)
    try:
        return read_config(path)
    except NoConfig:
        if named:
            raise
        return Imported(notes=Counter({f"{name}: no config, skipped": 1}))


def _write(out: Path, specs: list[ImportedSpec]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Write the specs; the rows of the table, and what is wrong."""
    from generators.importing.specs import write_spec
    from schemas.errors import InputError

    rows: list[tuple[str, ...]] = [("operator", "cases", "entries", "spec", "")]
    problems: list[str] = []
    for spec in specs:
        problems += spec.errors
        try:
            path = write_spec(out, spec)
        except InputError as error:
            problems.append(str(error))
            continue
        remark = "" if spec.known else f"no operator {spec.op} here: gen refuses it until one is added"
        rows.append((spec.op, str(spec.cases), str(spec.entries), str(path), remark))
    return rows, problems


def _report(problems: list[str], left_out: list[str], notes: Counter[str]) -> None:
    """Errors and warnings, on stderr."""
    for problem in problems:
        report_problem(problem)
    for line in left_out:
        report_warning(line)
    for note, count in sorted(notes.items()):
        report_warning(f"{note}{f' ({count} times)' if count > 1 else ''}")


def _files(sources: tuple[Path, ...]) -> Iterator[tuple[Path, str, bool]]:
    """Configs and case files, each with the name that comments call it by, and whether the command names it."""
    from mluops_cli.core.discovery import find_case_files
    from schemas.errors import InputError

    for source in sources:
        if source.is_dir():
            found = [*find_case_files([source]), *find_case_files([source], suffixes=(_CONFIG,))]
            for path, name in sorted(found):
                yield path, f"{name}{path.suffix}", False
        elif source.suffix == _CONFIG and source.exists():
            if not source.is_file():
                raise InputError(f"{source} is no regular file: expected a config")
            yield source, source.name, True
        else:
            for path, _ in find_case_files([source]):
                yield path, source.name, True
