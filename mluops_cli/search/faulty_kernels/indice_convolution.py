"""indice_convolution_forward, right and wrong: gather, multiply, scatter per offset, with one injected fault per name.

Each is an implementation `python:FILE.py:NAME`; written from spconv's formula, independent of the reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS

F = np.float32


def _status(params: Any, inputs: Any, outputs: Any, descriptors: Any, handle: Any, fault: str) -> str | None:
    """The status of what is wrong with the call, workspace aside, or None."""
    if handle is None or any(each is None for each in descriptors.values()):
        return BAD_PARAM
    features, filters, pairs, output = descriptors.values()
    if params["inverse"] != 0 and fault != "accepts_inverse":
        return BAD_PARAM
    if min(params["indice_num"], default=0) < 0 and fault != "accepts_negative_counts":
        return BAD_PARAM
    if features.dtype not in ("half", "float") or pairs.dtype != "int32":
        return BAD_PARAM
    if not features.dtype == filters.dtype == output.dtype and fault != "accepts_mixed_dtypes":
        return BAD_PARAM
    if [len(each.dims) for each in (features, filters, pairs, output)] != [2, 5, 3, 2]:
        return BAD_PARAM
    N, CI = features.dims
    *kernel, depth, CO = filters.dims
    if (depth, pairs.dims[1], pairs.dims[2]) != (CI, 2, N) or output.dims != (params["num_active_out"], CO):
        return BAD_PARAM
    if pairs.dims[0] != np.prod(kernel, dtype=object):
        return SUCCESS if fault == "accepts_other_offsets" else BAD_PARAM
    if any(each.strides is not None for each in descriptors.values()):
        return SUCCESS if fault == "accepts_strides" else NOT_SUPPORTED
    if any(np.prod(each.dims, dtype=object) >= 2**31 for each in descriptors.values()):
        return NOT_SUPPORTED
    if 0 in filters.dims:
        return SUCCESS if fault == "accepts_no_channels" else BAD_PARAM
    missing = [name for name, array in {**inputs, **outputs}.items() if array is None]
    return BAD_PARAM if any(np.prod(descriptors[name].dims) for name in missing) else None


class _Convolution:
    """The implementation with one fault, or none."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def workspace_size(self, op: str, inputs: Any, outputs: Any, params: Any, size: Any) -> Any:
        if size is None:
            return BAD_PARAM
        size[0] = 4 * outputs["features_out"].size
        return SUCCESS

    def __call__(self, op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any) -> Any:
        fault = self.fault
        status = _status(params, inputs, outputs, descriptors, handle, fault)
        if status is not None or fault == "writes_nothing":
            return status or SUCCESS
        output = outputs["features_out"]
        workspace = params.get("workspace")
        if not output.size or (not inputs["features"].size and fault == "no_sites_not_stored"):
            return SUCCESS
        if fault != "ignores_the_workspace" and (workspace is None or workspace.size < 4 * output.size):
            return BAD_PARAM
        with np.errstate(all="ignore"):
            self.compute(inputs["features"], inputs["filters"], inputs["indice_pairs"], output, params)
        return SUCCESS

    def compute(self, features: Any, filters: Any, pairs: Any, output: Any, params: Any) -> None:
        fault = self.fault
        K, N = len(pairs), len(features)
        weights = filters.reshape(K, *filters.shape[3:])
        if fault == "offsets_reversed":
            weights = weights[::-1]
        if fault == "kernel_axes_swapped":
            weights = np.swapaxes(filters, 0, 2).reshape(weights.shape)
        if fault == "filters_transposed":
            weights = weights.reshape(K, weights.shape[2], weights.shape[1]).swapaxes(1, 2)
        if fault == "square_filters_transposed" and weights.shape[1] == weights.shape[2]:
            weights = weights.swapaxes(1, 2)
        values = np.where(np.isnan(features), features.dtype.type(0), features) if fault == "nan_dropped" else features
        if fault == "through_half":
            values = values.astype(np.float16)
        sums = np.zeros(output.shape, np.float16 if fault == "sums_in_half" else F)
        if fault == "no_zero_fill":
            sums[...] = output
        numbers = list(params["indice_num"])
        if fault == "last_pair_lost":
            numbers = [max(number - 1, 0) for number in numbers]
        if fault == "pair_tail_lost":
            numbers = [number // 64 * 64 if number > 64 else number for number in numbers]
        if fault == "count_of_first_offset":
            numbers = [min(numbers[0], number) for number in numbers]
        for k, (sources, targets) in enumerate(pairs):
            middle = k == K // 2
            if fault == "last_offset_lost" and k == K - 1 and K > 1:
                continue
            if fault == "middle_lost" and middle and params["sub_m"]:
                continue
            reached, found = targets[: numbers[k]].astype(np.int64), sources[: numbers[k]].astype(np.int64)
            if fault == "counts_ignored":  # to the first -1
                end = int((np.append(sources, -1) == -1).argmax())
                reached, found = targets[:end].astype(np.int64), sources[:end].astype(np.int64)
            if fault == "middle_always_whole" and middle and len(output) == N:
                reached = found = np.arange(N)
            if fault == "sides_swapped":
                reached, found = found % max(len(output), 1), reached % max(N, 1)
            if fault == "rows_in_16_bits":
                reached = reached % 2**16
            if fault == "sites_in_16_bits":
                found = found % 2**16
            product = values[found].astype(F) @ weights[k].astype(F)
            if fault == "not_added":
                sums[reached] = product
            elif fault == "product_rounded":
                sums[reached] += product.astype(np.float16)
            else:
                sums[reached] += product.astype(sums.dtype)
        if fault == "unreached_not_stored":
            hit = np.unique(np.concatenate([t[:n] for (_, t), n in zip(pairs, params["indice_num"], strict=True)]))
            output[hit] = sums[hit]
            return
        output[...] = sums
        if fault == "channel_tail_lost" and output.shape[1] > 64:
            output[:, output.shape[1] // 64 * 64 :] = 0
        if fault == "input_channel_tail_lost" and features.shape[1] > 64:
            cut = features.shape[1] // 64 * 64
            self.__class__().compute(features[:, :cut], filters[..., :cut, :], pairs, output, params)
        if fault == "last_output_lost":
            output[-1] = 0


# fault -> what the reason must speak of: a criterion, NaN / Inf, the status
REASONS = {
    "offsets_reversed": "diff1",
    "kernel_axes_swapped": "diff1",
    "filters_transposed": "diff1",
    "square_filters_transposed": "diff1",
    "nan_dropped": "NaN",
    "through_half": "diff1",
    "sums_in_half": "diff1",
    "product_rounded": "diff1",
    "no_zero_fill": "diff1",
    "last_pair_lost": "diff1",
    "pair_tail_lost": "diff1",
    "count_of_first_offset": "diff1",
    "last_offset_lost": "diff1",
    "middle_lost": "diff1",
    "counts_ignored": "diff1",
    "middle_always_whole": "diff1",
    "sides_swapped": "diff1",
    "rows_in_16_bits": "diff1",
    "sites_in_16_bits": "diff1",
    "not_added": "diff1",
    "unreached_not_stored": "diff1",
    "channel_tail_lost": "diff1",
    "input_channel_tail_lost": "diff1",
    "last_output_lost": "diff1",
    "no_sites_not_stored": "diff1",
    "writes_nothing": "diff1",
    "accepts_mixed_dtypes": "got",
    "accepts_other_offsets": "got",
    "accepts_strides": "got",
    "accepts_no_channels": "got",
    "ignores_the_workspace": "got",
}
FAULTS = {name: (_Convolution(name), reason) for name, reason in REASONS.items()}
# No design and no vendor demands a refusal here: all cases pass.
BEYOND_DESIGN = {name: _Convolution(name) for name in ("accepts_inverse", "accepts_negative_counts")}
right = _Convolution()
globals().update({name: implementation for name, (implementation, _) in FAULTS.items()} | BEYOND_DESIGN)
