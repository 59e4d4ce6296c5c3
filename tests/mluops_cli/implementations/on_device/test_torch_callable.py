"""`--impl torch:FILE.py:NAME`: the example passes the small suites of its operator, faulty kernels fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.implementations.on_device.device_options import split_target
from mluops_cli.implementations.registry import implementation_named, operators_of
from mluops_cli.implementations.torch import Torch, TorchCallable
from schemas.errors import InputError, UnavailableError
from tests.conftest import PROJECT
from tests.mluops_cli.execution.conftest import SUITE, write_psamask

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")
pytestmark = pytest.mark.torch

EXAMPLE = f"{PROJECT}/examples/device_kernels/psamask_torch.py:psamask"
FAULTY = Path(__file__).parent / "faulty.py"


def test_the_example_passes_the_small_suites(small: Callable[[str], Path], run: Callable[..., Any]) -> None:
    ran = run(small("psamask_forward"), "--impl", f"torch:{EXAMPLE}", "-j", "1")
    assert ran.code == 0
    assert set(ran.statuses.values()) == {"pass", "empty", "skip"}
    skipped = {record["reason"] for record in ran.records.values() if record["status"] == "skip"}
    assert all("takes no keyword" in reason or "workspace" in reason or "parameters" in reason for reason in skipped)


def test_faulty_kernels_fail(tmp_path: Path, run: Callable[..., Any]) -> None:
    from .faulty import FIRST, WAYS

    for number, way in enumerate(WAYS):
        write_psamask(tmp_path / "cases", way.__name__, h_mask=FIRST + number)
    ran = run(tmp_path / "cases", "--impl", f"torch:{FAULTY}:everything", "-j", "1")
    for way, (status, reason) in WAYS.items():
        record = ran.records[f"{SUITE}/{way.__name__}"]
        assert record["status"] == status, record
        assert reason in (record["reason"] or ""), record


def test_any_operator_may_be_in_a_callable() -> None:
    implementation = implementation_named(f"torch:{EXAMPLE},device=cpu")
    assert isinstance(implementation, TorchCallable)
    assert implementation.operators() is None
    assert operators_of(f"torch:{EXAMPLE}") == ()
    assert set(operators_of("torch:device=cpu")) == set(Torch.operators())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ("", "")),
        ("device=cuda:1", ("", "device=cuda:1")),
        ("k.py:f", ("k.py:f", "")),
        ("a,b/k.py:Space.f,device=cuda:1", ("a,b/k.py:Space.f", "device=cuda:1")),
        ("package.module:f,interpret", ("package.module:f", "interpret")),
    ],
)
def test_options(options: str, expected: tuple[str, str]) -> None:
    assert split_target(options) == expected


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (f"{EXAMPLE},device=gpu", InputError, "torch: device is 'gpu', expected cpu, cuda, mlu or xpu"),
        (f"{EXAMPLE},interpret", InputError, "torch has no option 'interpret'"),
        (f"{EXAMPLE},device=xpu", UnavailableError, "no xpu device is available"),
        (f"{EXAMPLE}s", InputError, "did you mean 'psamask'"),
        ("none.py:f", InputError, "no such Python file"),
    ],
)
def test_wrong_options(options: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        implementation_named(f"torch:{options}")
