"""`pytest --mluops PATH`: case files as tests of an implementation."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from mluops_cli.core.case_options import CaseOptions, WorkerSettings, repro_line
from mluops_cli.core.discovery import PlannedCase, plan_cases
from mluops_cli.core.record import Record
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.execution.kernel_process.floating_point import MODE
from mluops_cli.execution.recorder import record_of
from mluops_cli.implementations.registry import implementation_named
from mluops_cli.pytest_plugin import MluopsWarning
from mluops_cli.pytest_plugin.judging_options import judging_options
from mluops_cli.pytest_plugin.marker import marks_of
from mluops_cli.pytest_plugin.outcome import called, settle
from schemas.errors import MluopsError

_OUT: Final = "mluops-out"  # as --out of mluops run


class CaseFiles:
    """Collects the case files of --mluops and runs them on the implementation of --mluops-impl.

    Without other arguments nothing else is collected. Arguments that are some of the case files select these alone.
    UsageError for a path, an implementation or options that mluops run would refuse.
    """

    def __init__(self, config: pytest.Config) -> None:
        try:
            options = judging_options(config.getoption("mluops_options") or "")
            options = replace(options, impl=config.getoption("mluops_impl") or CaseOptions.impl)
            paths = [Path(path) for path in config.getoption("mluops")]
            self.cases = {
                Path(case.file).absolute(): case for case in plan_cases(paths, enum_numbering=options.enum_numbering)
            }
            with MODE.of_implementation():
                self.implementation = implementation_named(options.impl)
        except MluopsError as error:
            raise pytest.UsageError(str(error)) from None
        self.settings = WorkerSettings(options)
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args = []
        folder = config.invocation_params.dir
        self.named = {folder / argument.partition("::")[0] for argument in config.args} & self.cases.keys()

    def run(self, case: PlannedCase) -> Record:
        """The record of a case."""
        task = {
            "case": case.id,
            "file": case.file,
            "manifest_meta": case.manifest_meta,
            "enum_numbering": case.enum_numbering,
        }
        result = called(self.implementation, lambda each: run_case(task, each, self.settings))
        record = record_of(case, self.settings.options.impl, result)
        record.repro = repro_line(self.settings.options, case.file, _OUT)
        return record

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the case files to what the session collects."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed and not self.named:
            report.result += [self._node(collector, path) for path in self.cases]
        return report

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Return the node of a case file that an argument names."""
        return self._node(parent, file_path) if file_path in self.named else None

    def pytest_unconfigure(self) -> None:
        """Release what the implementation holds."""
        self.implementation.close()

    def _node(self, parent: pytest.Collector, path: Path) -> pytest.Collector:
        node: pytest.Collector = CaseFileNode.from_parent(parent, path=path, case=self.cases[path], runner=self)
        return node


class CaseFileNode(pytest.File):
    """A case file, which holds one case."""

    def __init__(self, *, case: PlannedCase, runner: CaseFiles, **given: Any) -> None:
        super().__init__(**given)
        self.case = case
        self.runner = runner

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the test of the case."""
        yield CaseItem.from_parent(self, name=self.case.id, case=self.case, runner=self.runner)


class CaseItem(pytest.Item):
    """The test of one case file."""

    def __init__(self, *, case: PlannedCase, runner: CaseFiles, **given: Any) -> None:
        super().__init__(**given)
        self.case = case
        self.runner = runner
        for mark in marks_of(self.config, case.suite, case.tags):
            self.add_marker(mark)

    def runtest(self) -> None:
        """Run the case and report the outcome to pytest."""
        __tracebackhide__ = True
        try:
            if self.case.problem is not None:
                raise AssertionError(f"ERROR {self.case.id}: {self.case.problem}")
            for doubt in settle(self.runner.run(self.case)):
                self.warn(doubt)
        except (AssertionError, MluopsWarning) as wrong:  # a warning is an error with -W error
            raise pytest.fail.Exception(str(wrong), pytrace=False) from None

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the case stands, for reports: the file, which has no lines."""
        return self.path, 0, self.case.id
