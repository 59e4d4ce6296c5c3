"""Callables for `--impl python:`: the reference kernels, with faults that only a related call shows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from generators.operator_registry import operators

_numbers = count(1)
Fault = Callable[[Any, Any], None]  # changes inputs or outputs in place


def _kernel(before: Fault | None = None, after: Fault | None = None) -> Callable[..., Any]:
    def call(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any) -> Any:
        inputs = {name: array.copy() for name, array in inputs.items()}
        if before is not None:
            before(inputs, outputs)
        own = {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}
        shapes = {name: each.dims for name, each in descriptors.items()}
        for name, array in operators()[op].baseline(inputs, shapes, own).items():
            outputs[name][tuple(map(slice, array.shape))] = array
        if after is not None:
            after(inputs, outputs)

    return call


def _clamp(inputs: Any, outputs: Any) -> None:
    for array in inputs.values():
        if array.dtype.kind == "f" and array.shape[-1] != 2:  # not the grid
            np.clip(array, -2, 2, out=array)


def _edge(inputs: Any, outputs: Any) -> None:
    """Positions outside are moved to the edge."""
    limits = {"geom_xyz": (0, None), "grid": (-1, 1), "mask_h_idx": (0, None), "mask_w_idx": (0, None)}
    for name in inputs.keys() & limits.keys():
        np.clip(inputs[name], *limits[name], out=inputs[name])


def _last_gradient(inputs: Any, outputs: Any) -> None:
    if "grad_output" in inputs:
        inputs["grad_output"][-1] *= np.float32(1.001)


def _minus_zero(inputs: Any, outputs: Any) -> None:
    """Zeros are negative where all outputs are."""
    if not _first(outputs).any():
        _first(outputs)[...] = -0.0


def _last_point(inputs: Any, outputs: Any) -> None:
    inputs["input_features"][:, -1] *= np.float32(1.001)


def _first(outputs: Any) -> Any:
    return next(iter(outputs.values()))


def _neighbours(inputs: Any, outputs: Any) -> None:
    _first(outputs)[...] += np.float32(1e-4) * np.roll(_first(outputs), 1, axis=0)


def _last_channel(inputs: Any, outputs: Any) -> None:
    _first(outputs)[..., -1] *= np.float32(1.001)


def _last_row(inputs: Any, outputs: Any) -> None:
    _first(outputs)[-1] *= np.float32(1.001)


def _last_image_channel(inputs: Any, outputs: Any) -> None:
    _first(outputs)[:, -1] *= np.float32(1.001)


def _last_mask(inputs: Any, outputs: Any) -> None:
    inputs["col"][:, -1] *= np.float32(1.001)


def _last_feature(inputs: Any, outputs: Any) -> None:
    inputs["features"][:, -1] *= np.float32(1.001)


def _offset(inputs: Any, outputs: Any) -> None:
    _first(outputs)[...] += np.float32(1e-4)


def _fewer_batches(inputs: Any, outputs: Any) -> None:
    """The pair of the last site, by coordinates, is lost where there are sites of several batches."""
    if len(np.unique(inputs["indices"][:, 0])) > 1:
        middle = len(outputs["indice_num"]) // 2
        pairs = outputs["indice_pairs"][middle, :, : outputs["indice_num"][middle]]
        lost = np.lexsort(inputs["indices"][pairs[0]].T[::-1])[-1]
        pairs[:, lost] = pairs[:, -1]
        outputs["indice_num"][middle] -= 1


def _first_site(inputs: Any, outputs: Any) -> None:
    """The pair of the first site with the central offset is lost."""
    middle = len(outputs["indice_num"]) // 2
    outputs["indice_num"][middle] -= 1
    outputs["indice_pairs"][middle, :, :-1] = outputs["indice_pairs"][middle, :, 1:]


def _wild(inputs: Any, outputs: Any) -> None:
    outputs["indice_pairs"][...] = 1 << 20


right = _kernel()
clamp = _kernel(before=_clamp)
edge = _kernel(before=_edge)
last_gradient = _kernel(before=_last_gradient)
minus_zero = _kernel(after=_minus_zero)
last_point = _kernel(before=_last_point)
neighbours = _kernel(after=_neighbours)
last_channel = _kernel(after=_last_channel)
last_row = _kernel(after=_last_row)
last_image_channel = _kernel(after=_last_image_channel)
last_mask = _kernel(before=_last_mask)
last_feature = _kernel(before=_last_feature)
offset = _kernel(after=_offset)
fewer_batches = _kernel(after=_fewer_batches)
first_site = _kernel(after=_first_site)
wild = _kernel(after=_wild)


def wrong_way_back(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any) -> Any:
    """Right, but for the backward direction: the last row of its result is halved."""
    right(op, inputs, outputs, params, descriptors)
    if op.endswith("backward"):
        _first(outputs)[:, -1] *= np.float32(0.5)


def refuses_one_image(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any) -> Any:
    """Right, but for a batch of one."""
    if len(_first(inputs)) == 1:
        return "NOT_SUPPORTED"
    return right(op, inputs, outputs, params, descriptors)


def fails_on_zeros(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any) -> Any:
    """Right, but for an input of zeros."""
    if not _first(inputs).any():
        raise ValueError("nothing to do")
    return right(op, inputs, outputs, params, descriptors)


def varying_copies(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any) -> Any:
    """Right, but for the first channel: another number in each call."""
    right(op, inputs, outputs, params, descriptors)
    _first(outputs)[..., 0] = next(_numbers)
