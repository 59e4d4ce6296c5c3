"""`mluops fuzz`: legal calls drawn from the contracts, until the implementation under test fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from mluops_cli.commands import run_options
from mluops_cli.commands.heartbeat import Heartbeat
from mluops_cli.commands.options import ByteSize, Duration, Seconds, jobs_option, plugin_option, seed_option
from mluops_cli.commands.problems import brief
from schemas.suggest import counted

if TYPE_CHECKING:
    from mluops_cli.search.fuzz.findings import Finding
    from mluops_cli.search.fuzz.fuzz_run import Outcome
    from mluops_cli.search.spec_saving import SpecSaver

_MINUTE: Final = 60.0


@click.command(epilog="Example: mluops fuzz roi_crop_forward --impl python:my_kernels.py:roi_crop --save found.yaml")
@click.argument("ops", metavar="[OP]...", nargs=-1)
@run_options.impl_option
@click.option(
    "--time", "seconds", type=Duration(), metavar="TIME", help="End after 90s, 5m, 1h.  [default: 1m without --cases]"
)
@click.option("--cases", "count", type=click.IntRange(1), metavar="N", help="End after N cases.")
@click.option(
    "--findings", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="End after N findings."
)
@seed_option("Which cases are drawn.")
@click.option(
    "--max-bytes", default="64MiB", show_default=True, type=ByteSize(), metavar="SIZE", help="Of a case's tensors."
)
@click.option("--illegal", is_flag=True, help="Illegal cases too: each rule broken, alone and with another.")
@click.option("--no-shrink", is_flag=True, help="Leave the findings as they were drawn.")
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="SPEC.yaml",
    help="Write the findings as a spec, for `mluops gen --spec`; with several operators a folder of specs.",
)
@jobs_option("Worker processes.")
@click.option(
    "--timeout", default=30.0, show_default=True, type=Seconds(), metavar="S", help="Seconds a case may take."
)
@run_options.memory_option
@run_options.threads_option
@run_options.searching_options
@plugin_option
def command(ops: tuple[str, ...], plugins: tuple[Path, ...], no_shrink: bool, **given: Any) -> int:
    """Draw legal cases from the operators' contracts and run the implementation on them.

    Sizes, parameters, dtypes and values are drawn where faults live: 0, 1, 2, primes, powers of two and what is beside
    them, equal and unequal pairs, borders, special numbers. The first failure of each symptom (operator, output, kind
    of difference, region) is a finding. It is shrunk to the smallest case that fails alike and printed as an entry of
    a spec. The same seed draws the same cases, whatever -j is. Without OP, all operators take turns.

    Exit code: 0 nothing found, 1 a finding or nothing was judged, 2 the command is wrong, 3 our own failure, 5 no legal
    case was drawn, 130 interrupted.
    """
    from generators.operator_registry import operator_named, operators
    from mluops_cli.search.fuzz.fuzz_run import FuzzRun, Limits
    from mluops_cli.search.fuzz.supply import Search
    from mluops_cli.search.shrinking.reduction import finding_reducer
    from mluops_cli.search.spec_saving import SpecSaver

    names = tuple(dict.fromkeys(ops)) or tuple(sorted(operators()))
    for op in names:
        operator_named(op)
    options = run_options.case_options(given | {"plugins": plugins})
    seconds = given["seconds"] or (None if given["count"] else _MINUTE)
    saver = SpecSaver(given["save"], names) if given["save"] is not None else None
    search = Search(names, given["seed"], given["max_bytes"], given["illegal"])
    with _telling(saver) as telling:
        limits = Limits(seconds, given["count"], given["findings"])
        reduce = None if no_shrink else finding_reducer(options, names)
        outcome = FuzzRun(search, options, limits, given["jobs"], telling, reduce).run()
    _sum_up(outcome, given["save"])
    return outcome.exit_code


class _Telling:
    """Saves each finding as it comes, prints it when it is shrunk, and says now and then how far the search is."""

    def __init__(self, saver: SpecSaver | None, progress: Any) -> None:
        self._saver = saver
        self._progress = progress
        self._heartbeat = Heartbeat()

    def found(self, outcome: Outcome, finding: Finding) -> None:
        """Save the findings, the last one as it was drawn: shrinking it may be interrupted."""
        self._save(outcome)

    def dropped(self, outcome: Outcome) -> None:
        """Save the findings without one that equals an earlier one."""
        self._save(outcome)

    def settled(self, outcome: Outcome, finding: Finding) -> None:
        """Print and save a finding as it stays."""
        self._save(outcome)
        lines = [f"finding {outcome.settled}: {finding.symptom}", f"  {brief(finding.record.reason)}"]
        lines += [f"  {finding.shrunk}"] if finding.shrunk else []
        self._print("\n".join([*lines, *(line for line in finding.saved.lines() if not line.startswith("    #"))]))

    def _save(self, outcome: Outcome) -> None:
        if self._saver is not None:
            self._saver.save([each.saved for each in outcome.findings])

    def _print(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text)

    def beat(self, outcome: Outcome) -> None:
        """Say how far the search is."""
        text = f"{_rate(outcome)}, {counted(len(outcome.findings), 'finding')}"
        if self._progress is not None:
            self._progress.update(0, description=text)
        else:
            self._heartbeat.say(lambda: f"fuzz: {text}")


@contextmanager
def _telling(saver: SpecSaver | None) -> Iterator[_Telling]:
    if not sys.stderr.isatty():
        yield _Telling(saver, None)
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=not sys.stdout.isatty()), transient=True) as progress:
        progress.add_task("", total=None)
        yield _Telling(saver, progress)


def _rate(outcome: Outcome) -> str:
    cases, seconds = outcome.tally.total, outcome.seconds
    return f"{counted(cases, 'case')} in {seconds:.1f} s ({cases / max(seconds, 1e-9):.0f}/s)"


def _sum_up(outcome: Outcome, save: Path | None) -> None:
    """The last lines: cases, rate, findings, what was covered."""
    for problem in outcome.problems:
        click.echo(problem, err=True)
    for sentence in outcome.tally.unproven_sentences:
        click.echo(sentence)
    if not outcome.tally.total:
        click.echo("no legal case was drawn", err=True)
    counts = ", ".join(f"{count} {status}" for status, count in outcome.tally.counts.most_common())
    click.echo(f"{_rate(outcome)}: {counts}" if counts else _rate(outcome))
    for op, coverage in outcome.coverage.items():
        click.echo(f"{op}: {len(coverage.seen)} of {coverage.pairs} pairs of classes covered")
    again = f", {counted(outcome.again, 'further failure')} like them" if outcome.again else ""
    saved = f", saved in {save}" if save is not None and outcome.findings else ""
    click.echo(f"{counted(len(outcome.findings), 'finding')}{again}{saved}")
