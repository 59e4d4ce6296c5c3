"""`torch` where PyTorch is installed (`make test-torch`): hand values, the small suites of all operators, devices."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mluops_cli.implementations.base import Call, CannotShow
from mluops_cli.implementations.registry import implementation_named
from mluops_cli.implementations.torch import Torch
from schemas.errors import InputError, UnavailableError
from schemas.tensor_descriptor import Descriptor
from tests.mluops_cli.implementations.calls import check_hand_values, masked_im2col, output_of, psamask

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")
pytestmark = pytest.mark.torch

OPERATORS = {
    "psamask_forward", "psamask_backward", "masked_im2col_forward", "roi_crop_forward", "roi_crop_backward",
    "voxel_pooling_forward", "get_indice_pairs", "roialign_forward", "masked_col2im_forward",
    "indice_convolution_forward",
}  # fmt: skip


def test_its_operators() -> None:
    assert set(Torch.operators()) == OPERATORS
    assert Torch.unavailable() is None


def test_hand_values() -> None:
    check_hand_values(Torch().call)


def test_the_small_suites_pass(suites: Path, run: Callable[..., Any]) -> None:
    ran = run(suites, "--impl", "torch", "-j", "1")
    assert ran.code == 0
    assert set(ran.statuses.values()) == {"pass", "empty", "skip"}
    passed = {record["op"] for record in ran.records.values() if record["status"] == "pass"}
    assert passed == OPERATORS
    # It needs no workspace and no descriptor of the parameters, so it can't be denied one; everything else is shown.
    skipped = {name: record["reason"] for name, record in ran.records.items() if record["status"] == "skip"}
    assert all("workspace" in reason or "parameters" in reason for reason in skipped.values()), skipped


def test_columns_are_copied_bit_for_bit() -> None:
    payload = np.array([0x7FA00001, 0x80000000, 0x00000001, 0xFF800000], np.uint32).view(np.float32)
    call = masked_im2col()
    feature = np.ascontiguousarray(np.resize(payload, (1, 1, 3, 3)))
    call = Call(call.op, {**call.inputs, "feature": feature}, call.outputs, call.params, call.descriptors)
    Torch().call(call)
    column = output_of(call, "data_col")[:, 1].view(np.uint32)
    assert column.tolist() == feature[0, 0, :2, :2].reshape(-1).view(np.uint32).tolist()


def test_latency_is_the_computation_s() -> None:
    outcome = Torch().call(psamask())
    assert outcome.latency_us is not None
    assert 0 < outcome.latency_us < 1e6
    assert Torch().call(psamask(2)).latency_us is None  # refused, nothing was computed


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"faults": ("null_handle",)}, "BAD_PARAM"),
        ({"descriptors": {"x": None}}, "BAD_PARAM"),
        ({"descriptors": {"x": Descriptor("NCHW", "float", (1, 1, 2, 3))}}, "BAD_PARAM"),
        ({"descriptors": {"x": Descriptor("NHWC", "float", (1, 1, 2, 3), (12, 12, 6, 2))}}, "NOT_SUPPORTED"),
    ],
)
def test_refusals(changes: dict[str, Any], status: str) -> None:
    assert Torch().call(psamask(**changes)).status == status


def test_workers_use_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    Torch()
    assert torch.get_num_threads() == 1


def test_an_unknown_operator_is_a_skip() -> None:
    with pytest.raises(CannotShow, match="no kernel for operator abs"):
        Torch().call(Call("abs", {}, {}, {}, {}))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ("device=gpu", InputError, "device is 'gpu', expected cpu, cuda, mlu or xpu"),
        ("dev=cpu", InputError, "torch has no option 'dev'"),
        ("device=cpu,device=cpu", InputError, "given twice"),
        ("device=mlu", UnavailableError, "needs the package torch_mlu"),
    ],
)
def test_wrong_options(options: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        implementation_named(f"torch:{options}")


def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "cuda", SimpleNamespace(is_available=lambda: False))
    with pytest.raises(UnavailableError, match="no cuda device is available"):
        Torch("device=cuda")
    monkeypatch.setattr(torch, "cuda", SimpleNamespace(is_available=lambda: True, device_count=lambda: 2))
    with pytest.raises(UnavailableError, match="no device cuda:2, there are 2"):
        Torch("device=cuda:2")


def test_a_broken_torch_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnavailableError, match="can't import torch"):
        Torch()
