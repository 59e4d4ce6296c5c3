"""`mluops selftest`: faults are injected into right outputs; the judge must fail each that the criteria can detect."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mluops_cli.commands.options import (
    generation_option,
    jobs_option,
    keywords_option,
    plugin_option,
    suites_option,
)
from mluops_cli.commands.problems import brief, none_selected, report_problem
from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.escaping import one_line

if TYPE_CHECKING:
    from mluops_cli.core.discovery import PlannedCase
    from mluops_cli.execution.case.fault_trials import Tested
    from mluops_cli.search.exploits.trials import Trial


@click.command(epilog="Example: mluops selftest out/cases -k 'psamask and boundary'")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--exploits", is_flag=True, help="Run kernels that try to pass without computing. -k: parts of names.")
@keywords_option
@suites_option
@jobs_option("Threads that judge; exploits at once.")
@generation_option
@plugin_option
def command(
    paths: tuple[Path, ...],
    exploits: bool,
    keywords: str | None,
    suites: frozenset[str],
    jobs: int,
    enum_numbering: str,
    plugins: tuple[Path, ...],
) -> int:
    """Inject faults into the right outputs of case files and check that the judge fails each that can be detected.

    Without PATH: the small built-in suites of every operator. Prints for each case and each fault how many were
    injected and caught, and which faults the thresholds can't detect and why. Exit code: 0 all caught, 1 a fault was
    missed, a right output failed or nothing was injected, 2 a case file is wrong, 5 nothing selected.

    With --exploits: prints for each exploit what happened and in which words. Exit code 1 where something else happens
    than is listed, or something is said of a right kernel.
    """
    if exploits:
        if paths or suites or plugins:
            raise click.UsageError("--exploits has its own cases: PATH, --suite and --plugin can't be given with it")
        return _test_exploits(keywords, jobs)
    from mluops_cli.core.discovery import plan_cases
    from mluops_cli.core.statuses import FAILED, PASSED, WRONG_INPUT
    from schemas.errors import MluopsError

    with _case_files(paths, suites) as folders:
        cases = plan_cases(folders, suites=suites, keywords=keywords, enum_numbering=enum_numbering)
        if not cases:
            return none_selected()
        tested, broken = [], False
        for case in cases:
            try:
                tested.append(_test(case, jobs))
            except MluopsError as error:
                report_problem(f"{case.id}: {error}")
                broken = True
                continue
            _print_case(tested[-1])
    _print_faults(tested)
    trials = [trial for each in tested for trial in each.trials if trial.injected]
    if not trials:
        click.echo("nothing was injected", err=True)
    bad = not trials or any(trial.missed for trial in trials) or any(each.alarm for each in tested)
    return WRONG_INPUT if broken else FAILED if bad else PASSED


def _test_exploits(keywords: str | None, jobs: int) -> int:
    """Run the exploits whose kind/name matches, print what came of each; return the exit code."""
    from mluops_cli.core.filters import parse_keywords
    from mluops_cli.core.statuses import FAILED, INTERRUPTED, NOTHING_SELECTED, PASSED
    from mluops_cli.search.exploits.corpus import exploits
    from mluops_cli.search.exploits.trials import run_trials

    matches = parse_keywords(keywords) if keywords is not None else bool
    chosen = [each for each in exploits() if matches(f"{each.kind}/{each.name}")]
    if not chosen:
        click.echo("no exploit is selected", err=True)
        return NOTHING_SELECTED
    width = max(len(each.name) for each in chosen)
    trials = []
    for trial in run_trials(chosen, jobs):
        trials.append(trial)
        click.echo(_exploit_line(trial, width))
    counts = Counter(trial.exploit.expected for trial in trials if not trial.problem)
    wrong = sum(bool(trial.problem) for trial in trials)
    counts["not as listed"] = wrong
    counted = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    click.echo(f"\n{len(trials)} kernels: {counted}")
    return FAILED if wrong else PASSED if len(trials) == len(chosen) else INTERRUPTED


def _exploit_line(trial: Trial, width: int) -> str:
    """The row of an exploit: its name, what happened, the words of the report."""
    happened, words = trial.happened, trial.words
    if trial.problem:
        happened, words = happened.upper(), f"NOT AS LISTED, {trial.problem}: {words}"
    return f"{trial.exploit.name:{width}}  {happened:8}  {brief(words)}".rstrip()


@contextmanager
def _case_files(paths: Sequence[Path], suites: frozenset[str]) -> Iterator[Sequence[Path]]:
    """Yield the paths; without any, a temporary folder with the small built-in suites."""
    if paths:
        yield paths
        return
    from generators.casegen.generate import generate
    from generators.casegen.write_options import WriteOptions
    from generators.specs.selection import select_cases, small_suites

    with tempfile.TemporaryDirectory(prefix="mluops-selftest-") as folder:
        for case in select_cases((), suites or small_suites(), (), 1):
            generate(case, WriteOptions(Path(folder)))
        yield [Path(folder)]


def _test(case: PlannedCase, threads: int) -> Tested:
    from mluops_cli.core.discovery import open_case
    from mluops_cli.execution.case.fault_trials import selftest_case

    with open_case(case) as file:
        return selftest_case(file, threads)


def _print_case(tested: Tested) -> None:
    injected = [trial for trial in tested.trials if trial.injected]
    caught = sum(trial.caught for trial in injected)
    unseen = sum(not (trial.caught or trial.must_fail) for trial in injected)
    beyond = f", {unseen} below the thresholds" if unseen else ""
    click.echo(one_line(f"{tested.case}: {caught} of {len(injected)} caught{beyond}"))
    if tested.alarm:
        click.echo(f"  FALSE ALARM: the judge fails right outputs: {tested.alarm}")
    for trial in injected:
        if trial.missed:
            click.echo(f"  MISSED: {trial.fault} in {trial.output or 'the call'} ({trial.reason})")


def _print_faults(tested: Sequence[Tested]) -> None:
    """Print a row per fault; then the undetectable ones, per output and fault, with the reason of one of them."""
    rows: list[tuple[str, ...]] = [("fault", "injected", "caught", "missed", "undetectable", "not applicable")]
    counts: dict[str, Counter[str]] = {}
    unseen: dict[str, list[str]] = {}
    for each in tested:
        for trial in each.trials:
            word = trial.word
            counts.setdefault(trial.fault, Counter())[word] += 1
            if word == "unseen":
                where = f"{each.op} {trial.output}, {trial.fault}"
                unseen.setdefault(where, []).append(f"{each.case.split('/', 1)[1]}: {trial.reason}")
    for fault, found in counts.items():
        injected = found["caught"] + found["missed"] + found["unseen"]
        numbers = (injected, found["caught"], found["missed"], found["unseen"], found["not planted"])
        rows.append((fault, *map(str, numbers)))
    total = [sum(int(row[column]) for row in rows[1:]) for column in range(1, 6)]
    rows.append(("all", *map(str, total)))
    click.echo("")
    for line in table_lines(rows, right=frozenset(range(1, 6))):
        click.echo(line)
    if unseen:
        click.echo("\nfaults that the thresholds can't detect:")
    for where, reasons in unseen.items():
        click.echo(f"  {where}: {len(reasons)} case(s), such as {reasons[0]}")
