from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.events import Heartbeat, RunStarted
from mluops_cli.reports.progress import RunProgress


def test_a_line_of_progress_counts_failures_and_says_how_long_the_rest_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    said: list[str] = []
    progress = RunProgress(Console(file=io.StringIO(), force_terminal=False), said.append)
    progress.start(RunStarted(CaseOptions("x"), 110, 1, Path("out"), done=10))
    progress.case_finished(failed=False)
    now = 131.0
    progress.beat(Heartbeat((), 1))
    for failed in (True, False, True, False, False, False, False, False, False):
        progress.case_finished(failed=failed)
    now = 200.0  # 10 of 100 in 100 s
    progress.beat(Heartbeat((("op/general/slow", 9.0),), 10))
    assert said == [
        "1 of 110 cases finished; running: none",
        "10 of 110 cases finished, 2 failed, about 15 min left; running: op/general/slow (9 s)",
    ]


def test_the_bar_shows_failures_and_the_time_that_is_left() -> None:
    out = io.StringIO()
    progress = RunProgress(Console(file=out, width=100, force_terminal=True, color_system=None), lambda text: None)
    progress.start(RunStarted(CaseOptions("x"), 4, 1, Path("out")))
    progress.case_started("op/general/\x1b[2Jodd[red]")
    progress.case_finished(failed=True)
    progress.stop()
    last = out.getvalue().split("\r")[-1] if "1/4" not in out.getvalue() else out.getvalue()
    assert "1/4 1 failed 0:00:0" in last
    assert r"op/general/\x1b[2Jodd[red]" in last
