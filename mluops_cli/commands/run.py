"""`mluops run`: run an implementation on case files and judge every case."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mluops_cli.commands import run_options
from mluops_cli.commands.options import (
    Seconds,
    generation_option,
    keywords_option,
    made_folder,
    plugin_option,
    suites_option,
)
from mluops_cli.commands.problems import none_selected
from mluops_cli.commands.run_options import DEFAULTS, Given
from mluops_cli.core.filters import is_partial
from mluops_cli.core.hardware.machine import cores
from mluops_cli.core.statuses import FAILING, INTERRUPTED, NOTHING_SELECTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from mluops_cli.core.discovery import PlannedCase
    from mluops_cli.core.events import Listener
    from mluops_cli.core.record import Record
    from mluops_cli.execution.supervisor import RunSettings
    from mluops_cli.reports.console import ConsoleReport
    from mluops_cli.results.finished import FinishedRun
    from mluops_cli.results.jsonl import JsonResults


@click.command(epilog="Example: mluops run cases --impl python:my_kernels.py:roi_crop -k 'roi_crop and not network'")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@run_options.impls_option
@click.option(
    "--out", default="mluops-out", show_default=True, type=click.Path(path_type=Path), help="The folder of the results."
)
@click.option("-j", "--jobs", show_default="cores; 1 with --perf", type=click.IntRange(1), help="Worker processes.")
@click.option(
    "--timeout",
    default=DEFAULTS.timeout,
    show_default=True,
    type=Seconds(),
    metavar="S",
    help="Seconds a case may take.",
)
@run_options.memory_option
@keywords_option
@suites_option
@click.option(
    "--select",
    "listed",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Only the cases whose ids the file lists (mluops subset).",
)
@click.option("--shard", "part", metavar="I/N", help="Only the I-th (from 1) of N parts of about equal bytes.")
@click.option(
    "--last-failed",
    is_flag=True,
    help="Only what failed in the run in OUT, or has another case file now; the other results stay there.",
)
@click.option("--collect-only", is_flag=True, help="Print the ids of the selected cases and run none.")
@run_options.repeat_option
@run_options.threads_option
@click.option("--max-fail", "max_failures", type=click.IntRange(1), metavar="N", help="Stop after N failing cases.")
@click.option("--resume", is_flag=True, help="Keep results in OUT that would be the same, run the other cases.")
@run_options.reasons_option
@click.option(
    "--strict",
    is_flag=True,
    help="A pass that proves nothing (mistrusted) or is beyond its error bound fails; with --bound off none is known.",
)
@run_options.judging_options
@run_options.perf_options
@run_options.fleet_options
@run_options.report_options
@generation_option
@plugin_option
def command(paths: tuple[Path, ...], out: Path, impls: tuple[str, ...], **given: Any) -> int:
    """Run an implementation on the case files at PATH... and judge what it computes.

    Folders are searched with all below them, links too; files and folders whose name begins with a dot are left out.
    A case that is there as .pb and as .prototxt runs once, as .pb. --resume runs a case again if its file or an option
    that decides its result has changed. --last-failed runs the selected cases that failed. OUT keeps the results of all
    others, which must be of the same --impl and options.

    An operator whose valid cases are all skipped is not validated, even if its invalid cases pass. Of a --shard this is
    only reported, since other shards may validate it. A shard may be empty, where there are fewer cases than shards.
    `mluops merge` makes one folder of the results of all shards.

    With several --impl the results of each are in OUT/<implementation>, and --html, --md and --csv write one matrix of
    operators by implementations, as `mluops report` does of several folders. The exit code is the highest one.

    Exit code: 0 all passed, 1 something failed or nothing was validated, 2 the command or a case file is wrong,
    3 our own failure, 5 nothing selected in any shard, 130 interrupted.
    """
    if given["collect_only"]:
        return _collect(paths, out, impls, given)
    if len(impls) == 1:
        return _run(paths, out, given | {"impl": impls[0]})
    return _run_several(paths, out, impls, given)


def _run_several(paths: tuple[Path, ...], out: Path, impls: Sequence[str], given: Given) -> int:
    """One run after the other, then the matrix of those that have results; an interrupt ends the runs.

    All implementations are loaded before the first run, so that a mistyped one costs no time and writes nothing.
    """
    from mluops_cli.commands.several import FORMATS, check_formats, result_folders, write_matrix
    from mluops_cli.execution.supervisor import check_loads
    from mluops_cli.results.finished import read_run

    check_formats(given)
    folders = result_folders(out, impls)
    if not given["scheduler"]:  # the workers of a cluster may have what this machine lacks
        for impl, folder in folders.items():
            check_loads(_settings(folder, given | {"impl": impl}))
    codes = []
    for impl, folder in folders.items():
        code = _run(paths, folder, given | dict.fromkeys(FORMATS) | {"impl": impl})
        if code == INTERRUPTED or (code == NOTHING_SELECTED and not given["last_failed"]):
            return code
        codes += [code] if code != NOTHING_SELECTED else []  # nothing failed last time
    if not codes:
        return NOTHING_SELECTED
    write_matrix([read_run(folder) for folder in folders.values()], given)
    return max(codes)


def _collect(paths: tuple[Path, ...], out: Path, impls: Sequence[str], given: Given) -> int:
    """Print the ids of the cases that would run, with --last-failed those that failed with any implementation."""
    from mluops_cli.commands.several import result_folders

    folders = [out] if len(impls) == 1 else result_folders(out, impls).values()
    plans = [_plan(paths, folder, given) for folder in (folders if given["last_failed"] else [out])]
    cases = {case.id: case for plan in plans for case in plan.cases}
    return _list([*cases.values()]) if any(plan.selected for plan in plans) else NOTHING_SELECTED


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be run.

    selected: whether there are cases to run, in any shard. cases: those that this run runs. last: the run in OUT, with
    --last-failed. shard and selection: for the summary, I/N and all cases of which that is a part.
    """

    selected: bool
    cases: Sequence[PlannedCase]
    last: FinishedRun | None
    shard: str
    selection: Mapping[str, Any] | None


def _plan(paths: tuple[Path, ...], out: Path, given: Given) -> _Plan:
    """Select the cases; say so where there are none.

    --last-failed looks for failures in the shard, and the results stay those of the shard that they were.
    """
    from mluops_cli.commands.last_failed import failed_last
    from mluops_cli.core.discovery import plan_cases
    from mluops_cli.core.fingerprint import describe_selection
    from mluops_cli.results.finished import read_run
    from schemas.errors import InputError

    chosen = {name: given[name] for name in ("suites", "keywords", "listed")}
    selected = plan_cases(paths, **chosen, out=out, enum_numbering=given["enum_numbering"])
    cases = _shard(selected, given["part"]) if given["part"] else selected
    if given["last_failed"]:
        if given["resume"]:
            raise InputError("--last-failed with --resume: expected one of them: --resume keeps results of failures")
        last = read_run(out)
        cases = failed_last(last, cases)
        summary = last.summary
        return _Plan(bool(cases), cases, last, str(summary.get("shard") or ""), summary.get("selection"))
    if not selected:
        none_selected()
    selection = describe_selection(selected) if given["part"] and selected else None
    return _Plan(bool(selected), cases, None, given["part"] or "", selection)


def _run(paths: tuple[Path, ...], out: Path, given: Given) -> int:
    """Run one implementation; the exit code."""
    from mluops_cli.execution.supervisor import run_cases
    from mluops_cli.results.resume import earlier_results, results_beside

    settings = _settings(out, given)
    plan = _plan(paths, out, given)
    cases = plan.cases
    if not plan.selected:
        return NOTHING_SELECTED
    if plan.last is not None:
        settings.earlier = results_beside(plan.last, {case.id for case in cases}, settings.options)
        settings.partial = is_partial(plan.shard)
        if settings.max_failures is not None:  # of this run: those that stay don't count
            settings.max_failures += sum(kept.status in FAILING for kept in settings.earlier.kept.values())
    reports = run_options.report_files(out, given)
    if reports is not None:
        reports.refuse_inputs([given["waivers"], *(file for case in cases for file in case.files)])
    with (
        made_folder(out),
        closing(_results(out, plan, given)) as results,
        closing(_console(given["reasons"])) as console,
    ):
        if given["resume"]:
            settings.earlier = earlier_results(out, cases, settings.options)
        results.keep_only(settings.earlier.kept, settings.earlier.devices)
        listeners: list[Listener] = [results, console, *_keeping(out, settings.earlier.kept)]
        listeners += [reports] if reports is not None else []
        if given["scheduler"] and cases:
            from mluops_cli.execution.cluster.client import run_on_fleet

            return run_on_fleet(given["scheduler"], given["resource"], cases, settings, listeners).exit_code
        return run_cases(cases, settings, listeners).exit_code


def _results(out: Path, plan: _Plan, given: Given) -> JsonResults:
    from mluops_cli.results.jsonl import JsonResults, refuse_foreign

    refuse_foreign(out)
    return JsonResults(out, strict=given["strict"], shard=plan.shard, selection=plan.selection)


def _shard(cases: Sequence[PlannedCase], part: str) -> list[PlannedCase]:
    """The cases of shard I/N, which may be none: there may be fewer cases than shards."""
    from mluops_cli.core.filters import parse_shard, shard

    return shard(cases, *parse_shard(part), weight=lambda case: case.size, name=lambda case: case.id)


def _settings(out: Path, given: Given) -> RunSettings:
    from mluops_cli.core.case_options import WorkerSettings
    from mluops_cli.execution.supervisor import RunSettings
    from schemas.errors import InputError

    if given["resource"] and not given["scheduler"]:
        raise InputError("--resource needs --scheduler")
    options = run_options.case_options(given)
    waive: Callable[[Record], Record] | None = None
    if given["waivers"]:
        from mluops_cli.results.waivers import load_waivers

        waive = load_waivers(given["waivers"])
    return RunSettings(
        WorkerSettings(options, keep_outputs=given["keep_outputs"], out=os.path.abspath(out)),
        out,
        jobs=given["jobs"] or (1 if options.measured else cores()),
        max_failures=given["max_failures"],
        strict=given["strict"],
        partial=is_partial(given["part"] or ""),
        waive=waive,
    )


def _list(cases: Sequence[PlannedCase]) -> int:
    """Print the ids, as --select reads them."""
    from mluops_cli.core.escaping import one_line
    from schemas.suggest import counted

    for case in cases:
        click.echo(one_line(case.id))
    click.echo(f"{counted(len(cases), 'case')} selected, none run", err=True)
    return 0


def _console(reasons: str) -> ConsoleReport:
    from rich.console import Console

    from mluops_cli.reports.console import ConsoleReport

    return ConsoleReport(Console(), reasons)


def _keeping(out: Path, stay: Collection[str]) -> Sequence[Listener]:
    from mluops_cli.results.kept_cases import KeepFailures

    return (KeepFailures(out, lambda line: click.echo(line, err=True), stay),)
