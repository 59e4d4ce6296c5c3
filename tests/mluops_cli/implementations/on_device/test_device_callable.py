"""Callables on tensors of a device: copies, bands around them, time, a lost device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.implementations.base import Call, OutOfBounds
from mluops_cli.implementations.on_device.base import DeviceKernel
from schemas.tensor_descriptor import Descriptor
from tests.mluops_cli.implementations.calls import output_of

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")
pytestmark = pytest.mark.torch


def make_call(dtype: Any = np.float32) -> Call:
    x, y = np.arange(6).reshape(2, 3).astype(dtype), np.zeros((2, 3), dtype)
    x.flags.writeable = False
    described = {name: Descriptor("ARRAY", "float", (2, 3)) for name in "xy"}
    return Call("alien_op", {"x": x}, {"y": y}, {"k": 3}, described)


def beyond(tensor: Any, by: int) -> Any:
    """One element behind (by = n) or before (by = -1) a tensor."""
    return tensor.as_strided((1,), (1,), tensor.storage_offset() + by)


def copies(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    outputs["y"].copy_(inputs["x"])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.bool_, np.complex64, ml_dtypes.bfloat16])
def test_tensors_are_copied_there_and_back(apart: Callable[..., Any], dtype: Any) -> None:
    call = make_call(dtype)
    outcome = DeviceKernel(copies, apart())(call)
    assert (output_of(call, "y") == call.inputs["x"]).all()
    assert outcome.status == "SUCCESS"
    assert outcome.latency_us == pytest.approx(7)


def test_a_strided_input_keeps_its_strides(apart: Callable[..., Any]) -> None:
    call = make_call()
    x = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
    x.flags.writeable = False
    call = Call(call.op, {"x": x}, call.outputs, {}, call.descriptors)
    seen: list[Any] = []

    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        seen.extend((inputs["x"].stride(), inputs["x"].tolist()))

    DeviceKernel(kernel, apart())(call)
    assert seen == [(6, 2), [[0, 2, 4], [6, 8, 10]]]


def test_the_output_s_memory_goes_there_before_the_call(apart: Callable[..., Any]) -> None:
    call = make_call()
    output_of(call, "y")[...] = np.nan

    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        outputs["y"] += 1

    DeviceKernel(kernel, apart())(call)
    assert np.isnan(output_of(call, "y")).all()


def test_a_read_beyond_an_input_finds_nan(apart: Callable[..., Any]) -> None:
    call = make_call()

    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        outputs["y"][0, 0] = beyond(inputs["x"], 6)[0]
        outputs["y"][0, 1] = beyond(inputs["x"], -1)[0]

    DeviceKernel(kernel, apart())(call)
    assert np.isnan(output_of(call, "y")[0, :2]).all()


@pytest.mark.parametrize(
    ("name", "by", "message"),
    [
        ("y", 6, "y: written out of bounds, directly behind the end"),
        ("y", -1, "y: written out of bounds, 4 bytes before the start"),
        ("x", 6, "x: written out of bounds, directly behind the end"),
        ("x", 0, "input 'x' was changed"),
    ],
)
def test_writes_out_of_bounds_are_named(apart: Callable[..., Any], name: str, by: int, message: str) -> None:
    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        beyond({**inputs, **outputs}[name], by).fill_(42)

    with pytest.raises(OutOfBounds, match=message):
        DeviceKernel(kernel, apart())(make_call())


def test_a_workspace_is_on_the_device_and_guarded(apart: Callable[..., Any]) -> None:
    class Kernel:
        size = 8
        asked: Any = None

        def workspace_size(self, op: str, inputs: Any, outputs: Any, params: Any) -> int:
            self.asked = (inputs["x"].device.type, tuple(outputs["y"].shape))
            return self.size

        def __call__(self, op: str, inputs: Any, outputs: Any, params: Any) -> None:
            workspace = params["workspace"]
            assert workspace.dtype == torch.uint8
            assert workspace.tolist() == [0xFF] * 8
            if params["k"] == 4:
                beyond(workspace, 8).fill_(1)

    kernel = Kernel()
    outcome = DeviceKernel(kernel, apart())(make_call())
    assert outcome.workspace_bytes == 8
    assert kernel.asked == ("meta", (2, 3))
    call = make_call()
    with pytest.raises(OutOfBounds, match="workspace: written out of bounds, directly behind"):
        DeviceKernel(kernel, apart())(Call(call.op, call.inputs, call.outputs, {"k": 4}, call.descriptors))


def test_keywords_are_those_of_the_callable(apart: Callable[..., Any]) -> None:
    seen: list[Any] = []

    def kernel(op: str, inputs: Any, outputs: Any, params: Any, *, descriptors: Any) -> str:
        seen.append(descriptors["x"].dims)
        return "BAD_PARAM"

    assert DeviceKernel(kernel, apart())(make_call()).status == "BAD_PARAM"
    assert seen == [(2, 3)]


def test_work_on_other_streams_counts(apart: Callable[..., Any]) -> None:
    """The events of the current stream are 7 µs apart; the whole device is idle 5 ms later."""
    outcome = DeviceKernel(copies, apart(lambda: time.sleep(0.005)))(make_call())
    assert outcome.latency_us is not None
    assert 5000 < outcome.latency_us < 1e6


def test_the_cache_is_flushed_after_the_copies(apart: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    device = apart()
    steps: list[str] = []
    monkeypatch.setattr(device, "_flush", lambda: steps.append("flush"))
    module = "mluops_cli.implementations.on_device.device_memory.shared"
    from mluops_cli.implementations.on_device.device import shared

    def copied(array: Any) -> Any:
        steps.append("copy")
        return shared(array)

    monkeypatch.setattr(module, copied)

    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        steps.append("call")

    device.flush_cache()
    DeviceKernel(kernel, device)(make_call())
    assert steps[:4] == ["copy", "copy", "flush", "call"]


def test_the_callable_s_synchronize_is_timed(apart: Callable[..., Any]) -> None:
    class Kernel:
        done = False

        def synchronize(self) -> None:
            self.done = True

        def __call__(self, op: str, inputs: Any, outputs: Any, params: Any) -> None:
            self.done = False

    kernel = Kernel()
    DeviceKernel(kernel, apart())(make_call())
    assert kernel.done


def test_a_lost_device_ends_the_worker(apart: Callable[..., Any]) -> None:
    broken: list[bool] = []

    def synchronize() -> None:
        if broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        broken.append(True)

    with pytest.raises(OutOfBounds, match="the device can't be used any more: RuntimeError: CUDA error: an illegal"):
        DeviceKernel(kernel, apart(synchronize))(make_call())


def test_an_error_of_the_callable_stays_its_own(apart: Callable[..., Any]) -> None:
    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        DeviceKernel(kernel, apart())(make_call())
