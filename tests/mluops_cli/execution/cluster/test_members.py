"""Which workers of a cluster are usable, from what its scheduler says of them."""

from __future__ import annotations

from typing import Any

import pytest

from mluops_cli.execution.cluster.members import Members
from schemas.errors import InputError, UnavailableError


def worker(name: str, *, nthreads: int = 1, seen: float = 0.0, **resources: float) -> dict[str, Any]:
    return {"name": name, "nthreads": nthreads, "resources": resources, "last_seen": seen}


def test_a_worker_runs_as_many_cases_as_it_has_threads_and_resources_for() -> None:
    members = Members({"MLU": 2.0})
    members.update({"a": worker("one", nthreads=4, MLU=5), "b": worker("two", MLU=1), "c": worker("three", MLU=2)})
    assert members.capacity == 3
    assert set(members.usable) == {"a", "c"}
    members.refuse("a", "too old")
    members.update({"a": worker("one", nthreads=4, MLU=5), "c": worker("three", MLU=2)})
    assert set(members.usable) == {"c"}
    assert (members.name("a"), members.name("z")) == ("one", "z")


def test_no_usable_worker_is_told_at_once() -> None:
    members = Members({"GPU": 1.0})
    with pytest.raises(UnavailableError, match="no worker is connected to the scheduler"):
        members.demand({})
    with pytest.raises(InputError, match="--resource GPU=1: no worker has it; the 2 workers have MLU=1; none"):
        members.demand({"a": worker("one", MLU=1), "b": worker("two")})


def test_a_worker_without_heartbeats_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    members = Members({})
    members.update({"a": worker("one", seen=1.0), "b": worker("two", seen=1.0)})
    now = 155.0
    members.update({"a": worker("one", seen=1.0), "b": worker("two", seen=50.0)})
    now = 170.0
    assert members.silent() == ["a"]


def test_a_replacement_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    members = Members({})
    members.update({"a": worker("one")})
    members.refuse("a", "worker one has mluops 0.1")
    now = 120.0
    assert members.gone() == ""
    now = 131.0
    assert members.gone().endswith("none came within 30 s: worker one has mluops 0.1")
