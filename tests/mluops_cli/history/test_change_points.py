"""Changes of level among noisy latencies: found where they are, and nowhere else."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mluops_cli.history.change_points import change_points
from schemas.errors import UnavailableError

RUNS = 60
SLOWER = 40  # the index of the first slower run


def history(seed: int, noise: str = "normal") -> list[float]:
    """Latencies of sixty runs of the same code, with noise of 5 %."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(0, 0.05, RUNS) if noise == "normal" else rng.uniform(-0.05, 0.05, RUNS)
    return [float(value) for value in 100 * np.exp(drawn)]


def slower(values: list[float], factor: float = 1.15, first: int = SLOWER) -> list[float]:
    return [*values[:first], *(value * factor for value in values[first:])]


@pytest.fixture
def ruptures() -> None:
    pytest.importorskip("ruptures", reason="needs ruptures: pip install 'mluops[history]'")


@pytest.mark.usefixtures("ruptures")
@pytest.mark.parametrize("noise", ["normal", "uniform"])
def test_the_same_code_gives_no_finding(noise: str) -> None:
    assert [seed for seed in range(20) if change_points(history(seed, noise))] == []


@pytest.mark.usefixtures("ruptures")
def test_a_slow_down_of_15_percent_is_found_at_its_run() -> None:
    """Noise that reaches 5 % never hides the run."""
    for seed in range(20):
        (found,) = change_points(slower(history(seed, "uniform")))
        assert found.first == SLOWER
        assert found.ratio == pytest.approx(1.15, abs=0.04)


@pytest.mark.usefixtures("ruptures")
def test_with_normal_noise_a_neighbour_may_look_like_the_run() -> None:
    """A standard deviation of 5 % puts one run in fifteen nearer to the other level: no method knows better.

    The most likely cut, by trying all of them, is the comparison.
    """
    for seed in range(20):
        values = slower(history(seed))
        (found,) = change_points(values)
        logs = np.log(values)
        cost = [logs[:k].var() * k + logs[k:].var() * (RUNS - k) for k in range(3, RUNS - 2)]
        assert found.first == 3 + int(np.argmin(cost))
        assert abs(found.first - SLOWER) <= 3


@pytest.mark.usefixtures("ruptures")
def test_two_changes_and_a_mended_one() -> None:
    values = [*([100.0] * 20), *([120.0] * 20), *([100.0] * 20)]
    scattered = [value * factor / 100 for value, factor in zip(values, history(1), strict=True)]
    assert [(found.first, found.ratio > 1) for found in change_points(scattered)] == [(20, True), (40, False)]


@pytest.mark.usefixtures("ruptures")
def test_odd_runs_are_no_level() -> None:
    values = history(3)
    for index in (0, 17, 44, 59):
        values[index] *= 2
    assert change_points(values) == []


@pytest.mark.usefixtures("ruptures")
def test_equal_figures_and_what_is_too_small_to_matter() -> None:
    assert change_points([100.0] * 60) == []
    assert change_points([*([100.0] * 30), *([102.5] * 30)]) == []
    (found,) = change_points([*([100.0] * 30), *([105.0] * 30)])
    assert (found.first, found.before, found.after) == (30, 100.0, 105.0)


def test_a_short_history_has_no_changes() -> None:
    """Without ruptures too."""
    assert change_points([]) == []
    assert change_points([1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0, 9.0]) == []


def test_what_to_install_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)
    with pytest.raises(UnavailableError, match=r"pip install 'mluops\[history\]'"):
        change_points([100.0] * 60)
