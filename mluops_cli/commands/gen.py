"""`mluops gen`: specs, or existing case files, into case files with baselines."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from mluops_cli.commands.options import ByteSize, Names, generation_option, make_folder, plugin_option
from mluops_cli.commands.terminal_tables import format_bytes, table_lines
from mluops_cli.core.machine import cores
from mluops_cli.implementations.plugins import load_plugins

if TYPE_CHECKING:
    from generators.casegen.thresholds import Metrics
    from generators.casegen.worker_pool import Result, Task

NOTHING_SELECTED: Final = 5
WRONG_INPUT: Final = 2
_HEARTBEAT: Final = 10.0  # seconds between lines where there is no terminal
_BESIDE: Final = 64 << 20  # bytes a worker takes besides a case's tensors
_PEAK: Final = 2.5  # memory of a case in work, in bytes of its tensors


@click.command(epilog="Example: mluops gen psamask_forward --suite boundary,invalid --out cases")
@click.argument("ops", metavar="[OP]...", nargs=-1)
@click.option("--suite", "suites", type=Names(), default=frozenset(), metavar="S,..", help="Only these suites.")
@click.option(
    "--spec", "specs", multiple=True, type=click.Path(path_type=Path), help="Only the specs in this file or folder."
)
@click.option(
    "--out", default="mluops-cases", show_default=True, type=click.Path(path_type=Path), help="Folder for it."
)
@click.option("--format", "format_", default="pb", show_default=True, type=click.Choice(["pb", "prototxt", "both"]))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0, 2**64 - 1), help="Of all random data.")
@click.option("-j", "--jobs", default=cores, show_default="cores", type=click.IntRange(1), help="Worker processes.")
@click.option(
    "--inline-limit",
    default="64MiB",
    show_default=True,
    type=ByteSize(),
    help="Tensors of more bytes go to files of their own beside the case file.",
)
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Existing .pb or .prototxt, or a folder of them: keep names and inputs, fill in baselines.",
)
@click.option(
    "--dynamic-thresholds",
    "dynamic",
    is_flag=True,
    help="Tolerances of 10 times the error of the reference kernel at the outputs' own precision.",
)
@click.option("--dry-run", is_flag=True, help="Check the specs, count cases and bytes, write nothing.")
@generation_option
@plugin_option
def command(
    ops: tuple[str, ...],
    suites: frozenset[str],
    specs: tuple[Path, ...],
    out: Path,
    format_: str,
    seed: int,
    jobs: int,
    inline_limit: int,
    sources: tuple[Path, ...],
    dynamic: bool,
    dry_run: bool,
    enum_numbering: str,
    plugins: tuple[Path, ...],
) -> int:
    """Generate case files with baselines, of all operators or of the named ones.

    Writes OUT/operator/suite/name.pb and OUT/manifest.json. The same specs and seed give the same bytes.
    """
    if sources and (ops or specs or suites):
        raise click.UsageError("--from takes files as they are: it goes without OP, --suite and --spec")
    problems: list[str] = []
    if sources:
        tasks, sizes, problems = _completions(sources, out, format_, inline_limit, enum_numbering, _metrics(dynamic))
    else:
        tasks, sizes = _generations(ops, suites, specs, seed, out, format_, inline_limit, _metrics(dynamic))
    for problem in problems:
        click.echo(problem, err=True)
    if not tasks:
        click.echo("nothing selected", err=True)
        return WRONG_INPUT if problems else NOTHING_SELECTED
    if dry_run:
        _print_plan(sizes)
        return WRONG_INPUT if problems else 0
    _check_space(out, sizes)
    code = _write(tasks, out, jobs, plugins)
    return max(code, WRONG_INPUT if problems else 0)


def _generations(
    ops: Sequence[str],
    suites: frozenset[str],
    specs: Sequence[Path],
    seed: int,
    out: Path,
    format_: str,
    inline_limit: int,
    metrics: Metrics | None,
) -> tuple[list[Task], dict[str, int]]:
    """A task per selected case, and the bytes of its files."""
    from generators.casegen.generate import case_bytes, generate
    from generators.casegen.size_estimate import planned_size
    from generators.casegen.worker_pool import Task
    from generators.specs.selection import select_cases

    cases = select_cases(ops, suites, specs, seed)
    tasks = [
        Task(case.id, _peak(case_bytes(case)), partial(generate, case, out, format_, inline_limit, metrics))
        for case in cases
    ]
    return tasks, {case.id: planned_size(case, format_, inline_limit) for case in cases}


def _completions(
    sources: Sequence[Path], out: Path, format_: str, inline_limit: int, enum_numbering: str, metrics: Metrics | None
) -> tuple[list[Task], dict[str, int], list[str]]:
    """A task per existing file that can be completed, the bytes of its tensors, and what is wrong with the others."""
    from generators.casegen.generate import bind_known, complete
    from generators.casegen.worker_pool import Task
    from generators.contracts.binding import stored_bytes
    from mluops_cli.core.discovery import plan_cases
    from schemas.casefiles.reading import read_case
    from schemas.errors import MluopsError

    tasks: list[Task] = []
    sizes: dict[str, int] = {}
    problems: list[str] = []
    for planned in plan_cases(sources, enum_numbering=enum_numbering):
        name = planned.id.split("/", 2)[2]
        try:
            with read_case(Path(planned.file), enum_numbering) as file:
                bound = bind_known(file, name, planned.manifest_meta)
                size = stored_bytes(bound)
                if bound.id in sizes:
                    raise MluopsError(f"{planned.file}: another file has the case id {bound.id} too")
        except MluopsError as error:
            problems.append(str(error))
            continue
        make = partial(
            complete,
            Path(planned.file),
            name,
            planned.manifest_meta,
            out,
            format_,
            inline_limit,
            enum_numbering,
            metrics,
        )
        tasks.append(Task(bound.id, _peak(size), make))
        sizes[bound.id] = size
    return tasks, sizes, problems


def _metrics(dynamic: bool) -> Metrics | None:
    """What measures an output where thresholds are to be dynamic."""
    if not dynamic:
        return None
    from mluops_cli.judging.metrics import metrics

    return metrics


def _peak(size: int) -> int:
    return int(_PEAK * size) + _BESIDE


def _print_plan(sizes: dict[str, int]) -> None:
    """Number of cases and bytes per operator and suite."""
    counts: Counter[tuple[str, str]] = Counter()
    totals: Counter[tuple[str, str]] = Counter()
    for case_id, size in sizes.items():
        op, suite, _ = case_id.split("/", 2)
        counts[op, suite] += 1
        totals[op, suite] += size
    rows = [("operator", "suite", "cases", "bytes", "")]
    rows += [(*key, str(counts[key]), str(totals[key]), format_bytes(totals[key])) for key in counts]
    rows.append(("all", "", str(len(sizes)), str(sum(sizes.values())), format_bytes(sum(sizes.values()))))
    for line in table_lines(rows, right=frozenset({2, 3, 4})):
        click.echo(line)


def _check_space(out: Path, sizes: dict[str, int]) -> None:
    """UnavailableError where the disk can't take the files; those that they replace count as room."""
    from generators.casegen.manifest import case_files
    from schemas.errors import UnavailableError

    existing = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    needed = sum(sizes.values())
    if needed > free:
        replaced = sum(path.stat().st_size for _, path in case_files(out, sizes))
        # A file is replaced only once the new one is whole, so the largest case needs its room twice.
        needed += max(sizes.values()) - replaced
    if needed > free:
        raise UnavailableError(f"{out}: needs {format_bytes(needed)}, the disk has {format_bytes(free)} free")


def _write(tasks: Sequence[Task], out: Path, jobs: int, plugins: Sequence[Path]) -> int:
    """Make all cases, then the manifest, also of what is done when something stops it; the exit code."""
    from generators.casegen.manifest import refuse_foreign, remove_stale, update_manifest
    from generators.casegen.worker_pool import run_tasks
    from schemas.errors import MluopsError, UnavailableError

    make_folder(out)
    refuse_foreign(out, [task.id for task in tasks])  # before anything is written
    done: dict[str, dict[str, Any]] = {}
    code = 0
    try:
        with closing(run_tasks(tasks, jobs, partial(load_plugins, tuple(plugins)))) as results:
            for case_id, result in _shown(results, len(tasks)):
                if isinstance(result, UnavailableError):
                    raise result  # a full disk is not the case's fault: the next one would fare no better
                if isinstance(result, MluopsError):
                    click.echo(str(result), err=True)
                    code = max(code, result.exit_code)
                else:
                    for warning in result.get("warnings", ()):
                        click.echo(f"warning: {warning}", err=True)
                    done[case_id] = result
    finally:
        if done:
            update_manifest(out, done)
            stale = remove_stale(out, done)
            if stale:
                click.echo(f"{len(stale)} files of earlier cases of these names removed, such as {stale[0]}", err=True)
    click.echo(f"{len(done)} cases, {format_bytes(sum(entry['bytes'] for entry in done.values()))} in {out}")
    return code


def _shown(results: Iterable[Result], total: int) -> Iterator[Result]:
    """The results as they come, with a bar on a terminal and a line now and then elsewhere, on stderr."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("gen", total=total)
            for result in results:
                progress.advance(bar)
                yield result
        return
    last = time.monotonic()
    for number, result in enumerate(results, start=1):
        if time.monotonic() - last >= _HEARTBEAT:
            last = time.monotonic()
            click.echo(f"gen: {number} of {total} cases", err=True)
        yield result
