"""`mluops mutate`: mutants of an implementation's own source show what its cases are worth."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from mluops_cli.commands import run_options
from mluops_cli.commands.gen import make_cases
from mluops_cli.commands.heartbeat import Heartbeat
from mluops_cli.commands.options import jobs_option, keywords_option, made_folder, plugin_option, suites_option
from mluops_cli.commands.problems import none_selected
from mluops_cli.commands.run_options import DEFAULTS
from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.escaping import one_line
from mluops_cli.core.statuses import FAILED, INTERRUPTED, PASSED
from schemas.case_ids import id_parts
from schemas.suggest import counted

if TYPE_CHECKING:
    from mluops_cli.core.discovery import PlannedCase
    from mluops_cli.search.mutation.mutation_run import OperatorSession
    from mluops_cli.search.mutation.records import MutantRecord, OperatorMutants

_CASES: Final = "cases"  # the folder of the generated cases in OUT


@click.command(epilog="Example: mluops mutate psamask_forward --impl python:my_kernels.py:psamask")
@click.argument("ops", metavar="[OP]...", nargs=-1)
@run_options.impl_option
@click.option("--catalogue", is_flag=True, help="The bundled faulty kernels instead of mutants of an implementation.")
@click.option(
    "--cases",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Case files to run instead of the small built-in suites.",
)
@suites_option
@keywords_option
@click.option(
    "--out", default="mluops-mutants", show_default=True, type=click.Path(path_type=Path), help="Folder of the results."
)
@jobs_option("Mutants at once.")
@click.option("--matrix", is_flag=True, help="Run every case on every mutant: which case kills what.")
@click.option(
    "--drawn",
    default=100,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Calls drawn from the contract that a mutant which no case shows is compared on.",
)
@click.option(
    "--keep", type=click.Path(path_type=Path), metavar="DIR", help="Write the sources of the survivors there."
)
@click.option("--resume", is_flag=True, help="Keep results in OUT that would be the same, judge the other mutants.")
@run_options.judging_options
@plugin_option
def command(ops: tuple[str, ...], paths: tuple[Path, ...], out: Path, **given: Any) -> int:
    """Make mutants of an implementation's own source, small faults, and see which of them the cases kill.

    A mutant that no case fails for is a survivor: a fault that the cases would miss. Not counted in the score: one
    that gives the same bits in every case and in N calls drawn from the contract is taken for equivalent; one whose
    answers differ only where the rules allow it (NOT_SUPPORTED, nothing is compared, no design demands an answer,
    outputs within their error bounds) is allowed.

    --catalogue needs no source: it shows which of the bundled faulty kernels the cases kill.

    Exit code: 0 no survivor, 1 survivors, 2 the command or a case file is wrong, 3 our own failure, 5 nothing selected,
    130 interrupted.
    """
    from mluops_cli.execution.interrupt import interruptible
    from mluops_cli.search.mutation import summary
    from mluops_cli.search.mutation.records import mutant_file

    session_of = _sessions(given)
    cases = _selected(ops, paths, out, given)
    if not cases:
        return none_selected()
    found: list[OperatorMutants] = []
    with made_folder(out), mutant_file(out, resume=given["resume"]) as file, interruptible() as interrupt:
        for op, chosen in cases.items():
            with closing(_Progress()) as watcher:
                result = session_of(op)(cases=chosen, file=file, watcher=watcher, interrupt=interrupt).run()
            if result is not None:
                found.append(result)
                _print_operator(result, given["matrix"])
            if interrupt.is_set():
                break
        interrupted = interrupt.is_set()
    for line in table_lines([summary.HEADER, *_rows(found)], right=frozenset(range(1, 7))):
        click.echo(line)
    if interrupted:
        click.echo(f"interrupted; the results so far are in {out}, --resume goes on from them", err=True)
        return INTERRUPTED
    return FAILED if any(map(summary.survivors, found)) else PASSED


def _sessions(given: dict[str, Any]) -> Callable[[str], Callable[..., OperatorSession]]:
    """What makes the session of an operator, of the chosen implementation or of the catalogue."""
    from dataclasses import replace

    from mluops_cli.core.case_options import WorkerSettings
    from mluops_cli.search.mutation.catalogue_mutants import catalogue_of
    from mluops_cli.search.mutation.mutation_run import OperatorSession
    from mluops_cli.search.mutation.sources import source_modules
    from schemas.errors import InputError

    if given["catalogue"] and given["impl"] != DEFAULTS.impl:
        raise InputError("--catalogue has its own kernels: --impl can't be given with it")
    options = run_options.case_options(given)
    common = {name: given[name] for name in ("jobs", "matrix", "drawn", "keep")}
    if not given["catalogue"]:
        modules = source_modules(options.impl)
        return lambda op: partial(OperatorSession, op, settings=WorkerSettings(options), modules=modules, **common)

    def catalogued(op: str) -> Callable[..., OperatorSession]:
        found = catalogue_of(op)
        settings = WorkerSettings(replace(options, impl=found.impl))
        return partial(OperatorSession, op, settings=settings, modules=found.modules, make=found.make, **common)

    return catalogued


def _selected(
    ops: Sequence[str], paths: Sequence[Path], out: Path, given: dict[str, Any]
) -> dict[str, list[PlannedCase]]:
    """Operator -> its selected cases, which are generated first where no path is given."""
    from generators.operator_registry import operator_named
    from mluops_cli.core.discovery import plan_cases
    from mluops_cli.implementations.registry import operators_of
    from mluops_cli.search.mutation.catalogue_mutants import catalogued
    from schemas.errors import InputError

    for op in ops:
        operator_named(op)
    if not paths:
        wanted = ops or (catalogued() if given["catalogue"] else operators_of(given["impl"]))
        if not wanted:
            raise InputError(f"--impl {given['impl']} doesn't tell its operators: name them, or give --cases")
        _generate(wanted, given, out / _CASES)
        paths = [folder for op in wanted if (folder := out / _CASES / op).is_dir()]
    selected: dict[str, list[PlannedCase]] = {}
    for case in plan_cases(paths, suites=given["suites"], keywords=given["keywords"]):
        if not ops or case.op in ops:
            selected.setdefault(case.op, []).append(case)
    return selected


def _generate(ops: Sequence[str], given: dict[str, Any], folder: Path) -> None:
    """Write the built-in suites of the operators, those of network scale left out."""
    from generators.casegen.write_options import WriteOptions
    from generators.specs.selection import LARGE_SUITE

    options = WriteOptions(folder, jobs=given["jobs"])
    make_cases(ops, given["suites"], lambda case: id_parts(case)[1] != LARGE_SUITE, options, given["plugins"])


class _Progress:
    """Says how many mutants are judged, then compared: a bar on a terminal, a line now and then elsewhere, on stderr.

    clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = self.done = self.found = 0
        self._heartbeat = Heartbeat(clock)
        self.op, self.text = "", ""
        self._bar: Any = None

    def begins(self, op: str, mutants: int, done: int) -> None:
        """Show that an operator begins."""
        self.op = op
        self._phase("{done} of {mutants}, {found} killed", op, mutants, done)

    def judged(self, record: MutantRecord) -> None:
        """Count one mutant."""
        self._count(record.status == "killed")

    def compares(self, mutants: int) -> None:
        """Show that the mutants that no case tells from the right source are compared with it."""
        text = "{done} of {mutants} compared on drawn calls, {found} of them differ"
        self._phase(text, f"{self.op}, drawn calls", mutants, 0)

    def compared(self, record: MutantRecord) -> None:
        """Count one of these."""
        self._count(record.shown_by is not None)

    def _phase(self, text: str, label: str, mutants: int, done: int) -> None:
        self.text, self.total, self.done, self.found = text, mutants, done, 0
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self.close()
            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._bar.add_task(label, total=mutants, completed=done)

    def _count(self, found: bool) -> None:
        self.done += 1
        self.found += found
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0])
        else:
            self._heartbeat.say(self._line)

    def _line(self) -> str:
        text = self.text.format(done=self.done, mutants=counted(self.total, "mutant"), found=self.found)
        return f"{self.op}: {text}"

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def _print_operator(found: OperatorMutants, matrix: bool) -> None:
    """The survivors of an operator, and what the matrix shows."""
    from mluops_cli.search.mutation import summary

    cases = found.cases
    for case, reason in sorted(cases.left_out.items()):
        click.echo(one_line(f"{case} is left out: it doesn't pass with {cases.impl}: {reason}"), err=True)
    for line in summary.survivor_lines(found):
        click.echo(line)
    if cases.unreached:
        names = ", ".join(each.partition(" ")[2] for each in cases.unreached)
        count = counted(len(cases.unreached), "function")
        click.echo(f"{cases.op}: {count} that no case calls, not mutated: {names}")
    if matrix:
        for line in summary.matrix_lines(found):
            click.echo(line)
    click.echo("")


def _rows(found: Sequence[OperatorMutants]) -> list[tuple[str, ...]]:
    from mluops_cli.search.mutation import summary

    rows = [summary.row(each.cases.op, summary.counts(each)) for each in found]
    return [*rows, summary.row("all", summary.total(found))] if len(rows) > 1 else rows
