"""Calls as files: the same whatever the number of processes is; what goes wrong on the way."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generators.operator_registry import add_operators, operators
from mluops_cli.execution.kernel_process.frames import wait_readable
from mluops_cli.search.fuzz import supply
from mluops_cli.search.fuzz.drawing import Drawn
from mluops_cli.search.fuzz.factors import domain_of
from mluops_cli.search.fuzz.supply import Search, Supplied, supplied, supplying
from tests.downstream.acme_ops.operators import TileRows

SEARCH = Search(("psamask_forward", "voxel_pooling_forward"), 3, 1 << 20)


def files(folder: Path, jobs: int, count: int) -> dict[str, str]:
    """Case id -> hash of its file, in the order in which they are taken."""
    found = {}
    with supplying(SEARCH, folder, jobs, (), count) as supplying_:
        while not supplying_.exhausted:
            wait_readable([supplying_.handle], 1)
            for call in supplying_.take(5):
                assert call.planned is not None
                found[call.planned.id] = hashlib.sha256(Path(call.planned.file).read_bytes()).hexdigest()
    return found


@pytest.mark.slow
def test_the_cases_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    one, three = files(tmp_path / "1", 1, 60), files(tmp_path / "3", 3, 60)
    assert one == three
    assert len(one) >= 55
    numbers = [int(case.rpartition("_")[2]) for case in one if case.startswith(SEARCH.ops[0])]
    assert numbers == sorted(numbers), "one process makes them in their order"


def test_calls_that_are_made_do_not_wait_for_those_before_them(tmp_path: Path) -> None:
    pool = _Pool()
    supply_ = supply.Supply(pool, SEARCH, tmp_path, 1, None)  # type: ignore[arg-type]
    slow, later, last = (Supplied(name, Drawn({}, {}), None) for name in ("slow", "later", "last"))
    assert supply_.take(4) == []
    pool.futures[1].set_result([later])
    assert supply_.take(4) == [later]
    pool.futures[0].set_result([slow])
    pool.futures[2].set_result([last])
    assert supply_.take(4) == [slow, last]
    supply_.close()


class _Pool:
    """Keeps what is submitted."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, *_: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]


def test_operators_take_turns(tmp_path: Path) -> None:
    calls = [supplied(SEARCH, number, tmp_path) for number in range(4)]
    assert [call.op for call in calls if call] == [*SEARCH.ops, *SEARCH.ops]


@pytest.fixture
def tile_rows(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """The operator of another author, with a reference kernel that is patched."""
    operator = TileRows()
    monkeypatch.setattr(operator, "reference", request.param)
    add_operators(SimpleNamespace(OPERATORS=(operator,)))
    domain_of.cache_clear()
    yield
    del operators()["tile_rows"]
    domain_of.cache_clear()


def raising(inputs: Any, env: Any) -> Any:
    raise ZeroDivisionError("in the reference kernel")


def slow(inputs: Any, env: Any) -> Any:
    while True:
        pass


@pytest.mark.parametrize("tile_rows", [raising], indirect=True)
@pytest.mark.usefixtures("tile_rows")
def test_a_reference_kernel_that_raises_is_a_problem_of_the_call(tmp_path: Path) -> None:
    call = supplied(Search(("tile_rows",), 1, 1 << 20), 0, tmp_path)
    assert call is not None
    assert call.planned is None
    assert call.problem.endswith(": reference kernel of tile_rows: ZeroDivisionError: in the reference kernel")


@pytest.mark.parametrize("tile_rows", [slow], indirect=True)
@pytest.mark.usefixtures("tile_rows")
def test_a_call_that_takes_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supply, "_SLOWEST", 0.1)
    start = time.monotonic()
    assert supply._chunk(Search(("tile_rows",), 1, 1 << 20), range(3), tmp_path) == []
    assert time.monotonic() - start < 10
