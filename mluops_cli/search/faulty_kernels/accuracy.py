"""Faults of precision, and single adds: the right kernels of this folder, spoiled by less than the thresholds notice.

Each is an implementation `python:FILE.py:NAME`, for every operator that the fault applies to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np

from mluops_cli.search.faulty_kernels import roi_crop
from mluops_cli.search.faulty_kernels.catalogue import MODULES, plugin
from schemas.status import SUCCESS

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]
Kernel = Callable[[Arrays, Arrays], Any]  # the right kernel, from inputs to outputs

ALL: Final = tuple(MODULES)
ROIS: Final = ("roi_crop_forward", "roi_crop_backward")
ADDING: Final = (*ROIS, "voxel_pooling_forward")  # in the output itself
SUMS: Final = (*ADDING, "roialign_forward", "indice_convolution_forward")
FLOATS: Final = tuple(op for op in ALL if op != "get_indice_pairs")


def right_kernel(op: str) -> Any:
    """The right kernel of an operator."""
    return plugin(op).right


@dataclass(frozen=True)
class PrecisionFault:
    """A kernel with one fault. spoil is called for what the right kernel accepts, in place of it or after it.

    operators: those that it applies to; any other one is computed without the fault.
    """

    name: str
    operators: tuple[str, ...]
    spoil: Callable[[str, Kernel, Arrays, Arrays], Any]

    @staticmethod
    def workspace_size(op: str, inputs: Any, outputs: Any, params: Any, size: Any) -> Any:
        """That of the right kernel; 0 where it has none."""
        asked = getattr(right_kernel(op), "workspace_size", None)
        if asked is not None:
            return asked(op, inputs, outputs, params, size)
        size[0] = 0
        return SUCCESS

    def __call__(self, op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any) -> Any:
        """Call the right kernel, spoil what it computes."""
        right = right_kernel(op)
        answer = right(op, inputs, outputs, params, descriptors, handle)
        status = answer["status"] if isinstance(answer, Mapping) else answer
        empty = any(array is None or not array.size for array in (*inputs.values(), *outputs.values()))
        if status != SUCCESS or empty or op not in self.operators:
            return answer

        def kernel(given: Arrays, computed: Arrays) -> Any:
            return right(op, given, computed, params, descriptors, handle)

        with np.errstate(over="ignore", invalid="ignore"):
            spoiled = self.spoil(op, kernel, inputs, outputs)
        return answer if spoiled is None else spoiled


def _linear(op: str, inputs: Arrays) -> str:
    """The input whose values the outputs are made of; of a rulebook, the sites."""
    return "input_features" if op == "voxel_pooling_forward" else next(iter(inputs))


def _result(outputs: Arrays) -> Array:
    """The first output; the others are integers."""
    return next(iter(outputs.values()))


def _rounded(array: Array, through: Any) -> Array:
    return array.astype(through).astype(array.dtype)


def _through(dtype: Any) -> Callable[[str, Kernel, Arrays, Arrays], Any]:
    """Values that are read in another dtype."""

    def spoil(op: str, kernel: Kernel, inputs: Arrays, outputs: Arrays) -> Any:
        name = _linear(op, inputs)
        return kernel({**inputs, name: _rounded(inputs[name], dtype)}, outputs)

    return spoil


def _grid_through(dtype: Any) -> Callable[[str, Kernel, Arrays, Arrays], Any]:
    """Coordinates that are read in another dtype."""

    def spoil(op: str, kernel: Kernel, inputs: Arrays, outputs: Arrays) -> Any:
        return kernel({**inputs, "grid": _rounded(inputs["grid"], dtype)}, outputs)

    return spoil


def _scaled(op: str, kernel: Kernel, inputs: Arrays, outputs: Arrays) -> None:
    result = _result(outputs)
    result[...] = result * result.dtype.type(1.001)


def _half_accumulator(op: str, kernel: Kernel, inputs: Arrays, outputs: Arrays) -> Any:
    """Every add is rounded to half."""
    name, result = next(iter(outputs.items()))
    sums = np.zeros(result.shape, np.float16)
    answer = kernel(inputs, {**outputs, name: sums})
    result[...] = sums
    return answer


def _terms(op: str, inputs: Arrays, outputs: Arrays) -> tuple[tuple[int, ...], Array]:
    """The element, in the first channel, with the most terms in its sum, and these terms."""
    if op == "voxel_pooling_forward":
        memo = outputs["pos_memo"]
        inside = memo[..., 0] >= 0
        cells, cell_of = np.unique(memo[inside], axis=0, return_inverse=True)
        places = [(*map(int, cell), 0) for cell in cells]
        number, terms = cell_of.reshape(-1), inputs["input_features"][inside][:, 0]
    else:
        image = inputs["input"] if op == "roi_crop_forward" else outputs["grad_input"]
        bins = outputs["output"] if op == "roi_crop_forward" else inputs["grad_output"]
        corners = roi_crop.corners(inputs["grid"], *image.shape[:3])
        pixels = np.concatenate([np.ravel_multi_index((n, y, x), image.shape[:3]) for n, y, x, _, _ in corners])
        weights = np.concatenate([weight * read for *_, weight, read in corners])
        bin_of = np.tile(np.arange(bins[..., 0].size), len(corners))
        if op == "roi_crop_forward":
            number, terms, shape = bin_of, weights * image[..., 0].reshape(-1)[pixels], bins.shape
        else:
            number, terms, shape = pixels, weights * bins[..., 0].reshape(-1)[bin_of], image.shape
        places = [(*map(int, np.unravel_index(each, shape[:3])), 0) for each in range(int(np.prod(shape[:3])))]
    kept = np.isfinite(terms) & (terms != 0)
    if not kept.any():
        return (), terms[kept]
    number, terms = number[kept], terms[kept]
    most = int(np.bincount(number).argmax())
    return places[most], terms[number == most]


def _add(factor: int) -> Callable[[str, Kernel, Arrays, Arrays], None]:
    """One add too few or too many: of the longest sum, the term of middle size. Of a rulebook, one pair."""

    def spoil(op: str, kernel: Kernel, inputs: Arrays, outputs: Arrays) -> None:
        if op == "get_indice_pairs":
            pairs, number = outputs["indice_pairs"], outputs["indice_num"]
            offset = int(np.argmax(np.where(number < pairs.shape[2], number, 0)))
            if 0 < number[offset] < pairs.shape[2]:
                pairs[offset, :, number[offset]] = pairs[offset, :, number[offset] - 1]
                number[offset] += factor
            return
        at, terms = _terms(op, inputs, outputs)
        if len(terms):
            _result(outputs)[at] += factor * terms[np.argsort(np.abs(terms))[len(terms) // 2]]

    return spoil


def _one_element(op: str, kernel: Kernel, inputs: Arrays, outputs: Arrays) -> None:
    """The element in the middle, off by 1e-4 of the largest one; of a rulebook, the last input site, by one."""
    if op == "get_indice_pairs":
        number = outputs["indice_num"]
        offset = int(number.argmax())
        outputs["indice_pairs"][offset, 0, max(0, number[offset] - 1)] ^= 1
        return
    result = _result(outputs)
    places = np.flatnonzero(np.isfinite(result) & (result != 0))
    if len(places):
        scale = np.abs(result.reshape(-1)[places].astype(np.float64)).max()
        middle = np.unravel_index(places[len(places) // 2], result.shape)
        result[middle] = np.float64(result[middle]) + 1e-4 * scale


PRECISION_FAULTS: Final = {
    each.name: each
    for each in (
        PrecisionFault("input_through_half", ALL, _through(np.float16)),
        PrecisionFault("input_through_bfloat16", ALL, _through(ml_dtypes.bfloat16)),
        PrecisionFault("grid_through_half", ROIS, _grid_through(np.float16)),
        PrecisionFault("grid_through_bfloat16", ROIS, _grid_through(ml_dtypes.bfloat16)),
        PrecisionFault("output_times_1_001", FLOATS, _scaled),
        PrecisionFault("half_accumulator", ADDING, _half_accumulator),
        PrecisionFault("one_add_lost", (*ADDING, "get_indice_pairs"), _add(-1)),
        PrecisionFault("one_add_doubled", (*ADDING, "get_indice_pairs"), _add(1)),
        PrecisionFault("one_element_off", ALL, _one_element),
    )
}
globals().update(PRECISION_FAULTS)
