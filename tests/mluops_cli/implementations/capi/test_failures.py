"""What fails in `capi`: statuses, errors of the device, faults of the library, missing libraries, wrong options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.implementations.base import Call, OutOfBounds
from mluops_cli.implementations.capi import CApi
from mluops_cli.implementations.registry import implementation_named
from schemas.errors import InputError, UnavailableError
from schemas.status import STATUS_NUMBERS
from schemas.tensor_descriptor import Descriptor
from tests.mluops_cli.execution.conftest import write_psamask
from tests.mluops_cli.implementations.calls import (
    psamask,
    voxel_pooling,
)


@pytest.mark.parametrize("status", sorted(set(STATUS_NUMBERS) - {"SUCCESS"}))
def test_every_status_is_passed_on(status: str, standin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_STATUS", str(STATUS_NUMBERS[status]))
    assert CApi(standin).call(psamask()).status == status
    assert CApi(standin).call(voxel_pooling()).status == status


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        ("malloc", "ALLOC_FAILED", "cnrtMalloc returned 632003"),
        ("sync", "EXECUTION_FAILED", "cnrtQueueSync returned"),
        ("memcpy", "EXECUTION_FAILED", "cnrtMemcpy returned"),
    ],
)
def test_errors_of_the_device_are_statuses(
    fault: str, status: str, said: str, standin: str, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    x = np.zeros((1, 1, 1024, 1024), np.float32)
    outputs = {"y": np.zeros((1, 1, 1024, 1024), np.float32)}
    described = {name: Descriptor("NHWC", "float", (1, 1, 1024, 1024)) for name in "xy"}
    params = {"psa_type": 0, "h_mask": 1, "w_mask": 1024}
    implementation = CApi(standin)
    monkeypatch.setenv("STANDIN_FAULT", fault)
    assert implementation.call(Call("psamask_forward", {"x": x}, outputs, params, described)).status == status
    assert said in capfd.readouterr().err


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        ("wrong", "fail", "diff3"),
        ("silent", "fail", "diff3"),
        ("overrun", "fail", "y: written out of bounds, directly behind the end"),
        ("input", "fail", "input 'x' was changed"),
        ("crash", "crash", "signal 11"),
        ("nostatus", "error", "returned 99, which is no status"),
    ],
)
def test_faults_of_the_library_are_found(
    fault: str, status: str, reason: str, standin: str, run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    case = write_psamask(tmp_path / "cases", "case")
    monkeypatch.setenv("STANDIN_FAULT", fault)
    ran = run(case, "--impl", f"capi:{standin}")
    (record,) = ran.records.values()
    assert record["status"] == status
    assert reason in record["reason"]
    assert ran.code == 1


def test_an_overrun_is_found_in_every_output(standin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_FAULT", "overrun")
    with pytest.raises(OutOfBounds, match="pos_memo: written out of bounds"):
        CApi(standin).call(voxel_pooling())


# ---- what the machine lacks ----


def test_missing_libraries_are_one_line_and_exit_code_3(standin: str, run: Callable[..., Any], tmp_path: Path) -> None:
    case = write_psamask(tmp_path / "cases", "case")
    ran = run(case, "--impl", "capi:runtime=libno_such_runtime.so")
    assert ran.code == 3
    assert "capi: can't load libno_such_runtime.so" in ran.err
    assert "Traceback" not in ran.err
    runtime = standin.partition(",")[2]
    with pytest.raises(UnavailableError, match=r"can't load libno_such_library.so"):
        CApi(f"library=libno_such_library.so,{runtime}")


def test_missing_functions_are_one_line(standin: str) -> None:
    library, _, runtime = standin.partition(",")
    library, runtime = library.partition("=")[2], runtime.partition("=")[2]
    with pytest.raises(UnavailableError, match=r"libmluops.so has no function cnrtGetDeviceCount"):
        CApi(f"library={library},runtime={library}")
    with pytest.raises(UnavailableError, match=r"libcnrt.so has no function mluOpCreate"):
        CApi(f"library={runtime},runtime={runtime}")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ("device=1", UnavailableError, "no device 1"),
        ("device=first", InputError, "device is 'first', expected a number from 0"),
        ("libary=x", InputError, "capi has no option 'libary': did you mean 'library'"),
    ],
)
def test_wrong_options(options: str, error: type[Exception], message: str, standin: str) -> None:
    with pytest.raises(error) as raised:
        implementation_named(f"capi:{standin},{options}")
    assert message in str(raised.value)


def test_no_device_and_no_handle(standin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_DEVICES", "0")
    with pytest.raises(UnavailableError, match=r"no device 0, .* finds 0"):
        CApi(standin)
    monkeypatch.setenv("STANDIN_DEVICES", "1")
    monkeypatch.setenv("STANDIN_FAULT", "create")
    with pytest.raises(UnavailableError, match=r"mluOpCreate returned 5 \(ARCH_MISMATCH\)"):
        CApi(standin)
