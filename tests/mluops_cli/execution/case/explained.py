"""Float32 kernels of the operators that add, right and wrong, for `--impl python:`; no code of the package here.

EXPLAINED faults are those that a diagnosis names, UNEXPLAINED ones those that it must not explain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Arrays = dict[str, Any]
Kernel = Callable[[str, Arrays, Arrays, dict[str, Any]], Any]
F = np.float32

# operator -> the input that is added up, the output that holds the sums
VALUES = {
    "roi_crop_forward": ("input", "output"),
    "roi_crop_backward": ("grad_output", "grad_input"),
    "voxel_pooling_forward": ("input_features", "output_features"),
}


def _corners(grid: Array, B: int, H: int, W: int, *, edges: bool = False, dtype: Any = F) -> Any:
    """Per corner of the cells: image, row, column, weight, and whether it is inside."""
    y, x = grid.reshape(-1, 2).astype(dtype).T
    one, two = dtype(1), dtype(2)
    if edges:
        a, b = ((y + one) * dtype(H) - one) / two, ((x + one) * dtype(W) - one) / two
    else:
        a, b = (y + one) * dtype(H - 1) / two, (x + one) * dtype(W - 1) / two
    low_y, low_x = np.floor(a), np.floor(b)
    wy, wx = one - (a - low_y), one - (b - low_x)
    image = np.repeat(np.arange(len(grid)) // (len(grid) // B), len(y) // len(grid))
    for down in (0, 1):
        for across in (0, 1):
            row, column = (low_y + dtype(down)).astype(int), (low_x + dtype(across)).astype(int)
            inside = (row >= 0) & (row < H) & (column >= 0) & (column < W)
            yield image, row, column, (one - wy if down else wy) * (one - wx if across else wx), inside


def _compute(op: str, inputs: Arrays, outputs: Arrays, params: dict[str, Any], **how: Any) -> None:
    """A right kernel; edges and dtype as for _corners, dtype also that of all sums."""
    dtype = how.get("dtype", F)
    if op == "voxel_pooling_forward":
        return _pool(inputs, outputs, params, dtype)
    values = inputs[VALUES[op][0]].astype(dtype)
    image = outputs["grad_input"] if op == "roi_crop_backward" else values
    B, H, W, C = image.shape
    sums = np.zeros(outputs[VALUES[op][1]].shape, dtype)
    flat = (values if op == "roi_crop_backward" else sums).reshape(-1, C)
    for n, row, column, weight, inside in _corners(inputs["grid"], B, H, W, **how):
        at = n[inside], row[inside], column[inside]
        if op == "roi_crop_backward":
            np.add.at(sums, at, weight[inside, None] * flat[inside])
        else:
            flat[inside] += weight[inside, None] * image[at]
    outputs[VALUES[op][1]][...] = sums
    return None


def _pool(inputs: Arrays, outputs: Arrays, params: dict[str, Any], dtype: Any) -> None:
    xyz, features = inputs["geom_xyz"], inputs["input_features"]
    limits = [params[f"num_voxel_{axis}"] for axis in "xyz"]
    b, n = np.nonzero(((xyz >= 0) & (xyz < limits)).all(axis=-1))
    x, y, _ = xyz[b, n].T
    sums = np.zeros(outputs["output_features"].shape, dtype)
    np.add.at(sums, (b, y, x), features[b, n].astype(dtype))
    outputs["output_features"][...] = sums
    outputs["pos_memo"][...] = -1
    outputs["pos_memo"][b, n] = np.stack((b, y, x), axis=-1)


def _with_inputs(change: Callable[[str, Array], Array], *, all_of_them: bool = False, **how: Any) -> Kernel:
    """A kernel that reads changed values; change(name, array) is called for the input that is added up, or for all."""

    def call(op: str, inputs: Arrays, outputs: Arrays, params: dict[str, Any]) -> Any:
        read = dict(inputs)
        for name in inputs if all_of_them else (VALUES[op][0],):
            read[name] = change(name, inputs[name])
        _compute(op, read, outputs, params, **how)

    return call


def _then(change: Callable[[Array, Arrays], Any]) -> Kernel:
    """A right kernel whose sums are changed in place afterwards; change(sums, inputs)."""

    def call(op: str, inputs: Arrays, outputs: Arrays, params: dict[str, Any]) -> Any:
        _compute(op, inputs, outputs, params)
        change(outputs[VALUES[op][1]], inputs)

    return call


def _floats_rounded(dtype: Any) -> Callable[[str, Array], Array]:
    return lambda _, array: array.astype(dtype).astype(F) if array.dtype == F else array


def _to_tf32(_: str, array: Array) -> Any:
    mantissa, exponent = np.frexp(array.astype(np.float64))
    return np.ldexp(np.rint(mantissa * 2**11) / 2**11, exponent).astype(F)


def _swap(name: str, array: Array) -> Any:
    return array[..., [1, 0, *range(2, array.shape[-1])]] if name in ("grid", "geom_xyz") else array


def _row(change: float) -> Kernel:
    """The terms of one row of the input are added 1 + change times: the first whose sums hold other terms too."""

    def call(op: str, inputs: Arrays, outputs: Arrays, params: dict[str, Any]) -> Any:
        name, computed = VALUES[op]
        values = inputs[name]
        rows = values.reshape(-1, values.shape[-1])
        _compute(op, inputs, outputs, params)
        right = outputs[computed].copy()
        for row in range(len(rows)):
            alone = np.zeros_like(rows)
            alone[row] = rows[row]
            _compute(op, {**inputs, name: alone.reshape(values.shape)}, outputs, params)
            share = outputs[computed].copy()
            others = np.abs(right - share).reshape(-1, values.shape[-1]).any(axis=1)
            if others[share.reshape(others.shape[0], -1).any(axis=1)].any():
                break
        rest = rows.copy()
        rest[row] *= F(1 + change)
        _compute(op, {**inputs, name: rest.reshape(values.shape)}, outputs, params)

    return call


def _noise(sums: Array, inputs: Arrays) -> None:
    rng = np.random.default_rng(3)
    sums += F(np.abs(sums).mean() * 1e-3) * np.asarray(rng.standard_normal(sums.shape), F)


def _relative_noise(sums: Array, inputs: Arrays) -> None:
    rng = np.random.default_rng(4)
    sums *= np.asarray(rng.uniform(0.999, 1.001, sums.shape), F)


def _one_element(sums: Array, inputs: Arrays) -> None:
    flat = sums.reshape(-1)
    flat[len(flat) // 2] += F(1e-4) * np.abs(flat).max()


def _one_row(sums: Array, inputs: Arrays) -> None:
    rows = sums.reshape(-1, sums.shape[-1])
    rows[len(rows) // 2] += np.random.default_rng(5).uniform(-1, 1, sums.shape[-1]).astype(F)


def _tile_zeroed(sums: Array, inputs: Arrays) -> None:
    flat = sums.reshape(-1)
    flat[len(flat) // 3 : len(flat) // 3 + len(flat) // 4] = 0


def _row_scales(sums: Array, inputs: Arrays) -> None:
    rows = sums.reshape(-1, sums.shape[-1])
    rows *= np.random.default_rng(6).uniform(0.9, 1.1, (len(rows), 1)).astype(F)


def _channels_reversed(sums: Array, inputs: Arrays) -> None:
    sums[...] = sums[..., ::-1].copy()


def _moved_by_one(sums: Array, inputs: Arrays) -> None:
    sums[...] = np.roll(sums.reshape(-1), 1).reshape(sums.shape)


def _offset(sums: Array, inputs: Arrays) -> None:
    sums += F(1e-2)


def _shuffled(sums: Array, inputs: Arrays) -> None:
    sums[...] = np.random.default_rng(7).permutation(sums.reshape(-1)).reshape(sums.shape)


def _half_of_a_batch(sums: Array, inputs: Arrays) -> None:
    sums[-1] += sums[0] * F(0.5)


def _scaled(factor: float) -> Callable[[Array, Arrays], None]:
    def change(sums: Array, inputs: Arrays) -> None:
        sums *= F(factor)

    return change


def _next_item(sums: Array, inputs: Arrays) -> None:
    sums[...] = np.roll(sums, 1, axis=0)


def _sum_of_items(sums: Array, inputs: Arrays) -> None:
    sums[-1] += sums[0]


def _through_half(sums: Array, inputs: Arrays) -> None:
    sums[...] = sums.astype(np.float16)


def right(op: str, inputs: Arrays, outputs: Arrays, params: dict[str, Any]) -> None:
    """Float32 throughout."""
    _compute(op, inputs, outputs, params)


def _read_item_0(name: str, array: Array) -> Any:
    return np.broadcast_to(array[:1], array.shape).copy()


# fault -> kernel, the word of its explanation, part of the text
EXPLAINED: dict[str, tuple[Kernel, str, str]] = {
    "one_percent": (_then(_scaled(1.01)), "factor", "the baseline times 1.01 (least squares"),
    "one_per_mille": (_then(_scaled(1.001)), "factor", "the baseline times 1.001 (least squares"),
    "swapped": (_with_inputs(_swap, all_of_them=True), "swapped coordinates", " swapped"),
    "edges": (_with_inputs(lambda _, a: a, edges=True), "other corners", "align_corners = False"),
    "half_values": (_with_inputs(_floats_rounded(np.float16)), "rounded inputs", " rounded to half"),
    "tf32_values": (_with_inputs(_to_tf32), "rounded inputs", "tf32"),
    "bfloat16_values": (_with_inputs(_floats_rounded(ml_dtypes.bfloat16)), "rounded inputs", " rounded to bfloat16"),
    "bfloat16_inputs": (
        _with_inputs(_floats_rounded(ml_dtypes.bfloat16), all_of_them=True),
        "rounded inputs",
        " rounded to bfloat16",
    ),
    "half_sums": (_with_inputs(lambda _, a: a, dtype=np.float16), "sums in half", "sums in half"),
    "half_output": (_then(_through_half), "rounded through half", "rounded through half"),
    "term_missing": (_row(-1), "missing term", "] missing"),
    "term_twice": (_row(1), "doubled term", "] added twice"),
    "next_item": (_then(_next_item), "mixed batch", "item 0 holds item"),
    "sum_of_items": (_then(_sum_of_items), "mixed batch", "holds item 0 + item"),
    "item_0_read": (_with_inputs(_read_item_0), "mixed batch", "item 0 of "),
}
UNEXPLAINED: dict[str, Kernel] = {
    "noise": _then(_noise),
    "relative_noise": _then(_relative_noise),
    "one_element": _then(_one_element),
    "one_row": _then(_one_row),
    "tile_zeroed": _then(_tile_zeroed),
    "row_scales": _then(_row_scales),
    "channels_reversed": _then(_channels_reversed),
    "moved_by_one": _then(_moved_by_one),
    "offset": _then(_offset),
    "shuffled": _then(_shuffled),
    "half_of_a_batch": _then(_half_of_a_batch),
}
globals().update({name: kernel for name, (kernel, _, _) in EXPLAINED.items()} | UNEXPLAINED)
