"""What a record means to pytest: a pass, a skip, a failed assertion with the diagnosis, warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import pytest

from mluops_cli.core.escaping import one_line
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import FAILING
from mluops_cli.execution.case.calls import Result
from mluops_cli.implementations.base import Call, Implementation, Outcome
from mluops_cli.pytest_plugin import MluopsWarning
from mluops_cli.reports.cautions import cautions

# What ends a test, or the session, wherever it is raised: a kernel that raises it has not failed.
_ENDS: Final = (KeyboardInterrupt, pytest.skip.Exception, pytest.fail.Exception, pytest.exit.Exception)


def settle(record: Record) -> list[MluopsWarning]:
    """The doubts about a case that passed.

    AssertionError with what `mluops run` prints of a failing case; a skipped case skips the test.
    """
    __tracebackhide__ = True
    if record.status in FAILING:
        from mluops_cli.reports.console import failure_lines  # here: it imports rich

        raise AssertionError("\n".join(map(one_line, failure_lines(record))))
    if record.status == "skip":
        pytest.skip(f"{record.case}: {record.reason}")
    return [MluopsWarning(f"{record.case}: {text}") for text in _doubts(record)]


def _doubts(record: Record) -> Iterator[str]:
    if record.status == "mistrusted":
        yield f"mistrusted: {record.reason}"
    if record.unexpected:
        yield record.reason
    yield from (f"{caution.title}: {caution.text}" for caution in cautions(record))
    yield from (f"{name} is unverified: it was not returned" for name in record.unverified)


class _Through:
    """An implementation that keeps the exception, where a call raises one that ends a test."""

    def __init__(self, inner: Implementation) -> None:
        self._inner = inner
        self.end: BaseException | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def call(self, call: Call) -> Outcome:
        try:
            return self._inner.call(call)
        except _ENDS as end:
            self.end = end
            raise


def called(implementation: Implementation, run: Callable[[Implementation], Result]) -> Result:
    """The result of run(implementation); raises Ctrl-C, pytest.skip and the pytest.fail of a time limit."""
    through = _Through(implementation)
    result = run(cast(Implementation, through))
    if through.end is not None:
        raise through.end
    return result
