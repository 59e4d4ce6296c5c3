"""`--impl triton[:device=DEVICE][:interpret]`: the operators as kernels in Triton, for a device or in its interpreter.

`--impl triton:FILE.py:NAME[,device=DEVICE][,interpret]`: a callable on torch tensors, which launches kernels.

The kernels' modules import triton, which reads TRITON_INTERPRET when a kernel is defined; so they are imported when an
operator is called first, after the options are known.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Final

from mluops_cli.implementations.base import Call, CannotShow, Implementation, Outcome
from mluops_cli.implementations.loading import load_callable
from mluops_cli.implementations.named_options import named_options
from mluops_cli.implementations.on_device.base import DeviceImplementation, DeviceKernel
from mluops_cli.implementations.on_device.device_options import device_named, import_problem, split_target
from schemas.errors import InputError, UnavailableError

INTERPRETED: Final = 1 << 16  # elements of all tensors from which the interpreter takes too long
_KERNELS: Final = {
    "get_indice_pairs": "get_indice_pairs:GetIndicePairs",
    "masked_col2im_forward": "masked_col2im:MaskedCol2imForward",
    "masked_im2col_forward": "masked_im2col:MaskedIm2colForward",
    "psamask_backward": "psamask:PsamaskBackward",
    "psamask_forward": "psamask:PsamaskForward",
    "roi_crop_backward": "roi_crop:RoiCropBackward",
    "roi_crop_forward": "roi_crop:RoiCropForward",
    "voxel_pooling_forward": "voxel_pooling:VoxelPoolingForward",
}


class Triton(DeviceImplementation):
    """The operators in Triton, independent of the reference kernels."""

    name = "triton"
    needs = "the packages torch and triton; perhaps FILE.py:NAME, a callable; device=cuda (also cuda:1), or interpret"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        target, rest = split_target(options)
        given = named_options("triton", rest, {"device": "", "interpret": "no"})
        if given["interpret"] not in ("", "no"):
            raise InputError(f"triton: interpret is {given['interpret']!r}, expected no value")
        self.interpreted = not given["interpret"]
        if self.interpreted:
            os.environ["TRITON_INTERPRET"] = "1"  # triton reads it when a kernel is defined
        if reason := import_problem("torch", "triton") or import_problem("triton", "triton"):
            raise UnavailableError(reason)
        device = _device(given["device"], interpreted=self.interpreted)
        try:
            self.on = device_named("triton", device)
        except UnavailableError as error:
            raise UnavailableError(f"{error}; --impl triton:interpret needs none") from None
        self._kernels: dict[str, DeviceKernel] = {}
        self._target = self._kernel(load_callable("triton", target)) if target else None

    @classmethod
    def chosen(cls, options: str) -> type[Implementation]:
        """Return TritonCallable where the options name a callable."""
        return TritonCallable if split_target(options)[0] else cls

    @classmethod
    def unavailable(cls) -> str | None:
        """Return why triton can't be imported, None where it can."""
        return import_problem("torch", "triton") or import_problem("triton", "triton")

    @classmethod
    def operators(cls) -> tuple[str, ...] | None:
        """Return the operators with a kernel here; none where triton is missing."""
        return () if cls.unavailable() else tuple(_KERNELS)

    def call(self, call: Call) -> Outcome:
        """Compute on the device, or in the interpreter; CannotShow for what the interpreter can't show."""
        if self.interpreted:
            _refuse_in_interpreter(call)
        if self._target is not None:
            return self._target(call)
        if call.op not in _KERNELS:
            raise CannotShow(f"triton has no kernel for operator {call.op}")
        if call.op not in self._kernels:
            module, _, name = _KERNELS[call.op].partition(":")
            self._kernels[call.op] = self._kernel(getattr(importlib.import_module(f"{__name__}.{module}"), name)())
        return self._kernels[call.op](call)

    def _kernel(self, target: Any) -> DeviceKernel:
        if not self.interpreted:
            return DeviceKernel(target, self.on)
        from mluops_cli.implementations.triton.pointer_checks import checked_pointers

        return DeviceKernel(target, self.on, checked_pointers)


class TritonCallable(Triton):
    """A callable f(op, inputs, outputs, params) of a Python file or module, which launches kernels of Triton."""

    @classmethod
    def operators(cls) -> tuple[str, ...] | None:
        """Return None: only a call can tell."""
        return None


def _device(name: str, *, interpreted: bool) -> str:
    """Return the device of the options; InputError for one that Triton can't compute on."""
    name = name or ("cpu" if interpreted else "cuda")
    if (name == "cpu") != interpreted:
        wanted = "cpu is the interpreter's: use device=cuda without it, or interpret alone"
        raise InputError(f"triton: device is {name!r}{' with interpret' if interpreted else ''}; {wanted}")
    return name


def _refuse_in_interpreter(call: Call) -> None:
    """Raise CannotShow for bfloat16, whose arithmetic is wrong there, and for tensors that take too long."""
    for name, descriptor in call.descriptors.items():
        if descriptor is not None and descriptor.dtype == "bfloat16":
            raise CannotShow(f"{name} is bfloat16, whose arithmetic is wrong in Triton's interpreter")
    arrays = (*call.inputs.values(), *call.outputs.values())
    if (elements := sum(array.size for array in arrays if array is not None)) >= INTERPRETED:
        raise CannotShow(f"{elements} elements, Triton's interpreter is given fewer than {INTERPRETED}")
