"""`mluops gen`: specs, or existing case files, into case files with baselines."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from mluops_cli.commands.heartbeat import Heartbeat
from mluops_cli.commands.options import (
    ByteSize,
    generation_option,
    jobs_option,
    keywords_option,
    make_folder,
    plugin_option,
    spec_option,
    suites_option,
)
from mluops_cli.commands.problems import report_problem, report_warning
from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.filters import parse_keywords
from mluops_cli.core.statuses import NOTHING_SELECTED, WRONG_INPUT
from mluops_cli.core.units import format_bytes
from mluops_cli.implementations.plugins import load_plugins
from schemas.case_ids import id_parts
from schemas.suggest import counted

if TYPE_CHECKING:
    from generators.casegen.thresholds import Metrics
    from generators.casegen.worker_pool import Result, Task
    from generators.casegen.write_options import WriteOptions
    from mluops_cli.core.filters import Matcher

_BESIDE: Final = 64 << 20  # bytes a worker takes besides a case's tensors
_PEAK: Final = 2.5  # memory of a case that is being made, in bytes of its tensors


@dataclass(slots=True)
class Plan:
    """What a gen is to make: a task per case, the bytes of its files by case id, and what is wrong with the others."""

    tasks: list[Task] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@click.command(epilog="Example: mluops gen psamask_forward --suite boundary,invalid --out cases")
@click.argument("ops", metavar="[OP]...", nargs=-1)
@suites_option
@keywords_option
@spec_option
@click.option(
    "--out", default="mluops-cases", show_default=True, type=click.Path(path_type=Path), help="Folder for it."
)
@click.option(
    "--format",
    "format_",
    default="pb",
    show_default=True,
    type=click.Choice(["pb", "prototxt", "both"]),
    help="Binary files, text files, or each case as both.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0, 2**64 - 1), help="Of all random data.")
@jobs_option("Worker processes.")
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
    "--no-bounds",
    "bounds",
    flag_value=False,
    default=True,
    help="Leave out the error bounds of outputs; run computes them then.",
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
    keywords: str | None,
    specs: tuple[Path, ...],
    sources: tuple[Path, ...],
    dry_run: bool,
    plugins: tuple[Path, ...],
    **given: Any,
) -> int:
    """Generate case files with baselines, of all operators or of the named ones.

    Writes OUT/operator/suite/name.pb and OUT/manifest.json. The same specs and seed give the same bytes.
    """
    if sources and (ops or specs or suites):
        raise click.UsageError("--from takes files as they are: it goes without OP, --suite and --spec")
    options = _options(given)
    matches = parse_keywords(keywords) if keywords is not None else lambda case: True
    plan = _completions(sources, matches, options) if sources else _generations(ops, suites, specs, matches, options)
    for problem in plan.problems:
        report_problem(problem)
    code = WRONG_INPUT if plan.problems else 0
    if not plan.tasks:
        click.echo("nothing selected", err=True)
        return code or NOTHING_SELECTED
    if dry_run:
        _print_plan(plan.sizes)
        return code
    _check_space(options.out, plan.sizes)
    return max(code, _write(plan.tasks, options, plugins))


def make_cases(
    ops: Sequence[str], suites: frozenset[str], matches: Matcher, options: WriteOptions, plugins: Sequence[Path]
) -> int:
    """Generate the built-in cases of some operators as the command does; the exit code. Nothing may be selected."""
    plan = _generations(ops, suites, (), matches, options)
    if not plan.tasks:
        return 0
    _check_space(options.out, plan.sizes)
    return _write(plan.tasks, options, plugins)


def _options(given: dict[str, Any]) -> WriteOptions:
    from generators.casegen.write_options import WriteOptions

    return WriteOptions(
        out=given["out"],
        format=given["format_"],
        inline_limit=given["inline_limit"],
        seed=given["seed"],
        jobs=given["jobs"],
        dynamic_thresholds=given["dynamic"],
        bounds=given["bounds"],
        enum_numbering=given["enum_numbering"],
    )


def _generations(
    ops: Sequence[str], suites: frozenset[str], specs: Sequence[Path], matches: Matcher, options: WriteOptions
) -> Plan:
    """The selected cases of the specs."""
    from generators.casegen.case_data import case_bytes
    from generators.casegen.generate import generate
    from generators.casegen.size_estimate import planned_size
    from generators.casegen.worker_pool import Task
    from generators.specs.selection import select_cases

    metrics = _metrics(options)
    plan = Plan()
    for case in select_cases(ops, suites, specs, options.seed):
        if matches(case.id):
            plan.tasks.append(Task(case.id, _peak(case_bytes(case)), partial(generate, case, options, metrics)))
            plan.sizes[case.id] = planned_size(case, options)
    return plan


def _completions(sources: Sequence[Path], matches: Matcher, options: WriteOptions) -> Plan:
    """The existing files that can be completed, with the bytes of their tensors, and what is wrong with the others."""
    from generators.casegen.completion import bind_known, complete
    from generators.casegen.worker_pool import Task
    from generators.contracts.bound_case import stored_bytes
    from mluops_cli.core.discovery import plan_cases
    from schemas.casefiles.reading import read_case
    from schemas.errors import MluopsError

    metrics = _metrics(options)
    plan = Plan()
    for planned in plan_cases(sources, enum_numbering=options.enum_numbering):
        if not matches(planned.id):
            continue
        path, name = Path(planned.file), id_parts(planned.id)[2]
        try:
            with read_case(path, options.enum_numbering) as file:
                bound = bind_known(file, name, planned.manifest_meta)
                size = stored_bytes(bound)
                if bound.id in plan.sizes:
                    raise MluopsError(f"{planned.file}: another file has the case id {bound.id} too")
        except MluopsError as error:
            plan.problems.append(str(error))
            continue
        make = partial(complete, path, name, planned.manifest_meta, options, metrics)
        plan.tasks.append(Task(bound.id, _peak(size), make))
        plan.sizes[bound.id] = size
    return plan


def _metrics(options: WriteOptions) -> Metrics | None:
    """What measures an output where thresholds are to be dynamic."""
    if not options.dynamic_thresholds:
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
        op, suite, _ = id_parts(case_id)
        counts[op, suite] += 1
        totals[op, suite] += size
    rows = [("operator", "suite", "cases", "bytes", "")]
    rows += [(*key, str(counts[key]), str(totals[key]), format_bytes(totals[key])) for key in counts]
    rows.append(("all", "", str(len(sizes)), str(sum(sizes.values())), format_bytes(sum(sizes.values()))))
    for line in table_lines(rows, right=frozenset({2, 3, 4})):
        click.echo(line)


def _check_space(out: Path, sizes: dict[str, int]) -> None:
    """UnavailableError where the disk can't take the files; the space of those that they replace counts as free."""
    from generators.casegen.manifest import case_files
    from schemas.errors import UnavailableError

    existing = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    needed = sum(sizes.values())
    if needed > free:
        replaced = sum(path.stat().st_size for _, path in case_files(out, sizes))
        # A file is replaced only once the new one is whole, so both of the largest case are there for a moment.
        needed += max(sizes.values()) - replaced
    if needed > free:
        raise UnavailableError(f"{out}: needs {format_bytes(needed)}, the disk has {format_bytes(free)} free")


def _write(tasks: Sequence[Task], options: WriteOptions, plugins: Sequence[Path]) -> int:
    """Make all cases, then the manifest, also of what is done when something stops it; the exit code."""
    from generators.casegen.output_folder import open_output
    from generators.casegen.worker_pool import run_tasks
    from schemas.errors import MluopsError, UnavailableError

    make_folder(options.out)
    sizes: list[int] = []
    code = 0
    with open_output(options, [task.id for task in tasks], partial(click.echo, err=True)) as lock:
        prepare = partial(load_plugins, tuple(plugins))
        with closing(run_tasks(tasks, options.jobs, prepare, lock)) as results:
            for _, result in _shown(results, len(tasks)):
                if isinstance(result, UnavailableError):
                    raise result  # a full disk is not the case's fault: the next one would fail too
                if isinstance(result, MluopsError):
                    report_problem(result)
                    code = max(code, result.exit_code)
                else:
                    for warning in result.get("warnings", ()):
                        report_warning(warning)
                    sizes.append(result["bytes"])
    click.echo(f"{counted(len(sizes), 'case')}, {format_bytes(sum(sizes))} in {options.out}")
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
    heartbeat = Heartbeat()
    for number, result in enumerate(results, start=1):
        heartbeat.say(lambda number=number: f"gen: {number} of {counted(total, 'case')}")  # type: ignore[misc]
        yield result
