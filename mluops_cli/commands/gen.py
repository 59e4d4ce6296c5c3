"""`mluops gen`: specs, or existing case files, into case files with baselines."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mluops_cli.commands.gen_plans import Plan, completions, generations
from mluops_cli.commands.heartbeat import Heartbeat
from mluops_cli.commands.options import (
    ByteSize,
    generation_option,
    jobs_option,
    keywords_option,
    made_folder,
    plugin_option,
    seed_option,
    spec_option,
    suites_option,
)
from mluops_cli.commands.problems import report_problem, report_warning
from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.filters import parse_keywords
from mluops_cli.core.statuses import NOTHING_SELECTED, OUR_FAILURE, WRONG_INPUT
from mluops_cli.core.units import format_bytes
from mluops_cli.implementations.plugins import load_plugins
from schemas.case_ids import id_parts
from schemas.suggest import counted

if TYPE_CHECKING:
    from generators.casegen.manifest import Entry
    from generators.casegen.output_folder import MadeOf
    from generators.casegen.worker_pool import Result
    from generators.casegen.write_options import WriteOptions
    from mluops_cli.core.filters import Matcher


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
@seed_option("Of all random data.")
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
@click.option(
    "--prune",
    is_flag=True,
    help="Remove the cases in OUT that these specs made once and no longer make; with --dry-run list them.",
)
@click.option("--dry-run", is_flag=True, help="Check the specs, count cases and bytes, write nothing.")
@click.option(
    "--print-key",
    is_flag=True,
    help="Print a key for caches, which changes with the specs and whatever else decides the files; write nothing.",
)
@generation_option
@plugin_option
def command(
    ops: tuple[str, ...],
    suites: frozenset[str],
    keywords: str | None,
    specs: tuple[Path, ...],
    sources: tuple[Path, ...],
    dry_run: bool,
    print_key: bool,
    prune: bool,
    plugins: tuple[Path, ...],
    **given: Any,
) -> int:
    """Generate case files with baselines, of all operators or of the named ones.

    Writes OUT/operator/suite/name.pb and OUT/manifest.json. The same specs and seed give the same bytes. A case that is
    there, made of the same entry and options by the same source, isn't made again if its files are unchanged.
    """
    if sources and (ops or specs or suites):
        raise click.UsageError("--from takes files as they are: OP, --suite and --spec can't be given with it")
    if sources and (prune or print_key):
        raise click.UsageError("--from takes files as they are: --prune and --print-key can't be given with it")
    options = _options(given)
    matches = parse_keywords(keywords) if keywords is not None else lambda case: True
    plan = completions(sources, matches, options) if sources else generations(ops, suites, specs, matches, options)
    for problem in plan.problems:
        report_problem(problem)
    code = WRONG_INPUT if plan.problems else 0
    if not plan.tasks:
        click.echo("nothing selected", err=True)
        return code or NOTHING_SELECTED
    if print_key:
        from generators.casegen.recipes import cache_key

        click.echo(cache_key(plan.recipes))
        return code
    made = _MadeOfSpecs(ops, specs, plan.ops, suites, matches)
    if dry_run:
        _print_plan(plan.sizes)
        if prune:
            _print_unmade(options.out, plan.sizes, made)
        return code
    _check_space(options.out, plan.sizes)
    return max(code, _write(plan, options, plugins, made, prune))


def make_cases(
    ops: Sequence[str], suites: frozenset[str], matches: Matcher, options: WriteOptions, plugins: Sequence[Path]
) -> int:
    """Generate the built-in cases of some operators as the command does; the exit code. Nothing may be selected."""
    plan = generations(ops, suites, (), matches, options)
    if not plan.tasks:
        return 0
    _check_space(options.out, plan.sizes)
    return _write(plan, options, plugins)


@dataclass(frozen=True)
class _MadeOfSpecs:
    """Whether a case of a manifest is within the selection of this gen, and a spec of this gen made it."""

    ops: Sequence[str]
    specs: Sequence[Path]
    found_ops: Collection[str]
    suites: Collection[str]
    matches: Matcher

    @cached_property
    def origins(self) -> frozenset[str]:
        from generators.casegen.node import origin
        from generators.specs.selection import selected_files

        return frozenset(map(origin, selected_files(self.ops, self.specs)))

    def __call__(self, case: str, entry: Entry) -> bool:
        op, suite, _ = id_parts(case)
        selected = op in self.found_ops and (not self.suites or suite in self.suites) and self.matches(case)
        return selected and entry.get("origin") in self.origins


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


def _print_unmade(out: Path, cases: Collection[str], made_of_specs: MadeOf) -> None:
    """The cases that --prune would remove, one a line."""
    from generators.casegen.manifest import read_stored
    from generators.casegen.output_folder import find_unmade

    for case in sorted(find_unmade(read_stored(out), cases, made_of_specs)):
        click.echo(f"would remove {case}")


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


def _write(
    plan: Plan, options: WriteOptions, plugins: Sequence[Path], made_of_specs: MadeOf | None = None, prune: bool = False
) -> int:
    """Make the cases that have changed, then the manifest, also where it is interrupted; return the exit code."""
    from generators.casegen.output_folder import open_output
    from generators.casegen.recipes import unchanged
    from generators.casegen.worker_pool import run_tasks
    from schemas.errors import MluopsError, UnavailableError

    code = 0
    problems: Counter[str] = Counter()
    say = partial(click.echo, err=True)
    with (
        made_folder(options.out),
        open_output(options, list(plan.sizes), say, made_of_specs, prune=prune) as lock,
    ):
        kept = unchanged(options.out, plan.recipes)
        sizes = [entry["bytes"] for entry in kept.values()]
        tasks = [task for task in plan.tasks if task.id not in kept]
        prepare = partial(load_plugins, tuple(plugins))
        with closing(run_tasks(tasks, options.jobs, prepare, lock)) as results:
            for case, result in _shown(results, len(tasks)):
                if isinstance(result, UnavailableError):
                    raise result  # a full disk is not the case's fault: the next one would fail too
                if isinstance(result, MluopsError):
                    text = str(result)
                    problems[text] += 1
                    if problems[text] == 1:  # a missing reference kernel is one of all cases
                        named = result.exit_code != OUR_FAILURE or case in text
                        report_problem(text if named else f"{case}: {text}")
                    code = max(code, result.exit_code)
                else:
                    for warning in result.get("warnings", ()):
                        report_warning(warning)
                    sizes.append(result["bytes"])
    if problems.total() > len(problems):
        report_problem(f"{problems.total()} cases are not made: {counted(len(problems), 'problem')}")
    stayed = f", {len(kept)} of them unchanged" if kept else ""
    click.echo(f"{counted(len(sizes), 'case')}{stayed}, {format_bytes(sum(sizes))} in {options.out}")
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
