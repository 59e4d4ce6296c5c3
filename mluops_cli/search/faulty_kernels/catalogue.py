"""The faulty kernels by operator: what they are called, and how the command line loads them."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Final

RIGHT: Final = "right"  # the name of the kernel without a fault
MODULES: Final = {
    "masked_im2col_forward": "masked_im2col",
    "psamask_forward": "psamask",
    "psamask_backward": "psamask",
    "roi_crop_forward": "roi_crop",
    "roi_crop_backward": "roi_crop",
    "voxel_pooling_forward": "voxel_pooling",
    "get_indice_pairs": "get_indice_pairs",
    "roialign_forward": "roialign",
    "masked_col2im_forward": "masked_col2im",
    "indice_convolution_forward": "indice_convolution",
}
_PRECISION: Final = "accuracy"


def plugin(op: str) -> ModuleType:
    """The module of the operator's kernels."""
    return _module(MODULES[op])


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__package__}.{name}")


def faults(op: str) -> list[str]:
    """The faults that can be injected into this operator."""
    module = plugin(op)
    return [name for name in module.FAULTS if op in getattr(module, "OPERATORS", {}).get(name, MODULES)]


def beyond_design(op: str) -> list[str]:
    """The deviations of this operator that neither its design nor the vendor calls wrong."""
    return list(getattr(plugin(op), "BEYOND_DESIGN", ()))


def precision_faults(op: str) -> list[str]:
    """The faults of precision that apply to this operator: the thresholds may not notice them."""
    return [name for name, fault in _module(_PRECISION).PRECISION_FAULTS.items() if op in fault.operators]


def implementation(op: str, name: str) -> str:
    """The `--impl` of a kernel: python:FILE.py:NAME."""
    return f"python:{kernel_file(op, name)}:{name}"


def kernel_file(op: str, name: str) -> Path:
    """The file that a kernel is in."""
    module = _PRECISION if name in _module(_PRECISION).PRECISION_FAULTS else MODULES[op]
    return Path(__file__).with_name(f"{module}.py")
