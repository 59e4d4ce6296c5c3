"""get_indice_pairs, right and wrong: sorted unique coordinate rows, with one injected fault per name.

Each is an implementation `python:FILE.py:NAME`; written from the definition, independent of the
reference: coordinates are never flattened to cell numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS

NAMES = ("batch", "pad", "stride", "dilation", "input_space", "filter_space", "output_space", "sub_m")


def _status(inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any, fault: str) -> str | None:
    """The status of what is wrong with the call, workspace aside, or None."""
    if handle is None or any(each is None for each in descriptors.values()):
        return BAD_PARAM
    batch, pad, stride, dilation, space, kernel, out_space, sub_m = (params[name] for name in NAMES)
    if params["dimnb"] != 5 or batch <= 0 or params["inverse"] or min(*space, *kernel, *out_space) < 1:
        return BAD_PARAM
    if params["transpose"] and fault != "accepts_transpose":
        return BAD_PARAM
    if any(each.dtype != "int32" for each in descriptors.values()):
        return BAD_PARAM
    indices, out, pairs, num = (descriptors[name] for name in ("indices", "out_indices", "indice_pairs", "indice_num"))
    if [len(each.dims) for each in (indices, out, pairs, num)] != [2, 2, 3, 1]:
        return BAD_PARAM
    if min(pad) < 0 or min(stride) < 1 or min(dilation) < 1:
        return BAD_PARAM
    K, L = int(np.prod(kernel)), indices.dims[0]
    if indices.dims[1] != 4 or out.dims[1] != 4 or pairs.dims != (K, 2, L) or num.dims != (K,):
        return BAD_PARAM
    if any(s != 1 and d != 1 for s, d in zip(stride, dilation, strict=True)) and fault != "accepts_stride_and_dilation":
        return BAD_PARAM
    if sub_m and (max(*stride, *dilation) > 1 or list(space) != list(out_space) or out.dims[0] < L):
        return SUCCESS if fault == "accepts_any_subm" else BAD_PARAM
    cells, out_cells = (batch * int(np.prod(each, dtype=object)) for each in (space, out_space))
    if cells < L or out.dims[0] > out_cells:
        return BAD_PARAM
    if K > 4096 and fault != "accepts_any_kernel":
        return BAD_PARAM
    if any(each.strides is not None for each in descriptors.values()):
        return NOT_SUPPORTED
    if L > 1_000_000 or any(np.prod(each.dims, dtype=object) >= 2**31 for each in descriptors.values()):
        return NOT_SUPPORTED
    return None


class _Rulebook:
    """The implementation with one fault, or none."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def workspace_size(self, op: str, inputs: Any, outputs: Any, params: Any, size: Any) -> Any:
        if size is None:
            return BAD_PARAM
        size[0] = 64 + outputs["indice_pairs"].nbytes
        return SUCCESS

    def __call__(self, op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any) -> Any:
        fault = self.fault
        status = _status(inputs, outputs, params, descriptors, handle, fault)
        if status is not None:
            return status
        if descriptors["indices"].dims[0] == 0:
            if fault == "refuses_zero_elements":
                return BAD_PARAM
            if fault != "counts_of_nothing_not_written":
                outputs["indice_num"][:] = 0
            return {"status": SUCCESS, "num_act_out": 0}
        if any(each is None for each in (*inputs.values(), *outputs.values())):
            return BAD_PARAM
        workspace = params["workspace"]
        if fault != "ignores_the_workspace" and (
            workspace is None or workspace.size < 64 + outputs["indice_pairs"].nbytes
        ):
            return BAD_PARAM
        rows = len(outputs["out_indices"])
        if fault != "writes_nothing":
            rows = self.compute(inputs["indices"], params, outputs)
        return {"status": SUCCESS, "num_act_out": rows + (fault == "num_act_out_one_too_many")}

    def compute(self, indices: Any, params: Any, outputs: Any) -> Any:
        fault = self.fault
        _, pad, stride, dilation, _, kernel, out_space, sub_m = (
            np.array(params[name]) if isinstance(params[name], list) else params[name] for name in NAMES
        )
        offsets = np.stack(np.meshgrid(*map(np.arange, kernel), indexing="ij"), axis=-1).reshape(-1, 3)
        if fault == "offsets_w_slowest":
            offsets = np.stack(np.meshgrid(*map(np.arange, kernel[::-1]), indexing="ij"), -1).reshape(-1, 3)[:, ::-1]
        if fault == "kernel_mirrored":
            offsets = kernel - 1 - offsets
        if fault == "pad_ignored":
            pad = pad * 0
        if fault == "pad_of_axis_0":
            pad = np.repeat(pad[0], 3)
        if fault == "dilation_ignored":
            dilation = dilation * 0 + 1
        if fault == "stride_of_axis_0":
            stride = np.repeat(stride[0], 3)
        if fault == "subm_as_default":
            sub_m = 0
        moved = indices[None, :, 1:].astype(np.int64) + pad - (offsets * dilation)[:, None]  # K, L, 3
        reached = moved // stride
        ok = ((reached >= 0) & (reached < out_space)).all(-1)
        if fault == "divisibility_not_checked":
            ok = ok & (moved >= 0).all(-1)
        else:
            ok &= (moved % stride == 0).all(-1)
        for axis, name in enumerate("dhw"):
            if fault == f"first_{name}_lost":
                ok &= reached[..., axis] > 0
            if fault == f"last_{name}_lost":
                ok &= reached[..., axis] < out_space[axis] - 1
        image = np.broadcast_to(indices[None, :, :1], (*ok.shape, 1))
        if fault == "batch_lost":
            image = image * 0
        out = np.concatenate([image, reached], axis=-1)
        if fault == "wraps_in_32_bits":
            D, H, W = (int(each) for each in out_space)
            cell = (((out[..., 0] * D + out[..., 1]) * H + out[..., 2]) * W + out[..., 3]).astype(np.int32)
            cell = cell.astype(np.int64)
            parts = (cell // (D * H * W), cell // (H * W) % D, cell // W % H, cell % W)
            out = np.stack(parts, axis=-1)
        if fault == "keys_in_32_bits":  # sites whose cells are alike in the lower 32 bits are one
            D, H, W = (int(each) for each in out_space)
            key = (((out[..., 0] * D + out[..., 1]) * H + out[..., 2]) * W + out[..., 3]) & 0xFFFFFFFF
            _, first, same = np.unique(key[ok], return_index=True, return_inverse=True)
            out[ok] = out[ok][first[same.ravel()]]
        hits = out[ok]
        if sub_m:
            sites = indices.astype(np.int64)
            together, inverse = np.unique(np.concatenate([sites, hits]), axis=0, return_inverse=True)
            inverse = inverse.ravel()
            row_of = np.full(len(together), -1)
            row_of[inverse[: len(sites)]] = np.arange(len(sites))
            if fault == "site_0_is_empty":
                row_of[inverse[0]] = -1
            numbers, active = row_of[inverse[len(sites) :]], sites
            ok[ok] = numbers >= 0
            numbers = numbers[numbers >= 0]
        elif len(hits):
            active, numbers = np.unique(hits, axis=0, return_inverse=True)
            numbers = numbers.ravel()
            if fault == "outputs_unsorted":
                active, numbers = active[::-1], len(active) - 1 - numbers
        else:
            active, numbers = hits, np.zeros(0, np.int64)
        if fault == "last_site_lost" and len(indices) > 1:
            kept = np.nonzero(ok)[1] < len(indices) - 1
            numbers = numbers[kept]
            ok[:, -1] = False
        k, j = np.nonzero(ok)
        rank = (np.cumsum(ok, axis=1) - 1)[k, j]
        count = ok.sum(axis=1)
        if fault == "pairs_backwards":
            rank = count[k] - 1 - rank
        pairs, num, out_indices = (outputs[name] for name in ("indice_pairs", "indice_num", "out_indices"))
        first, second = (numbers, j) if fault == "pairs_swapped" else (j, numbers)
        pairs[k, 0, rank], pairs[k, 1, rank] = first, second
        num[:] = count + (fault == "counts_one_too_many")
        if fault == "centre_counts_only" and len(num) > 1:
            num[:] = np.where(np.arange(len(num)) == len(num) // 2, count, 0)
        if fault == "columns_xyz":
            active = active[:, [0, 3, 2, 1]]
        rows = min(len(active), len(out_indices))
        if fault != "out_indices_not_written":
            out_indices[:rows] = active[:rows]
        if fault == "coordinates_in_16_bits":
            out_indices &= 0xFFFF
        if fault == "counts_in_16_bits":
            num &= 0xFFFF
        return len(active)


# fault -> what the reason must speak of: a criterion, the output, the scalar, the status, or unwritten memory
REASONS = {
    "offsets_w_slowest": "indice_pairs",
    "kernel_mirrored": "indice_pairs",
    "pad_ignored": "num_act_out",
    "pad_of_axis_0": "",
    "dilation_ignored": "num_act_out",
    "stride_of_axis_0": "",
    "subm_as_default": "num_act_out",
    "divisibility_not_checked": "num_act_out",
    "first_d_lost": "num_act_out",
    "first_h_lost": "num_act_out",
    "first_w_lost": "num_act_out",
    "last_d_lost": "num_act_out",
    "last_h_lost": "num_act_out",
    "last_w_lost": "num_act_out",
    "batch_lost": "num_act_out",
    "wraps_in_32_bits": "out_indices",
    "keys_in_32_bits": "",
    "site_0_is_empty": "indice_num",
    "outputs_unsorted": "out_indices",
    "last_site_lost": "indice_num",
    "pairs_backwards": "indice_pairs",
    "pairs_swapped": "indice_pairs",
    "counts_one_too_many": "indice_num",
    "centre_counts_only": "indice_num",
    "coordinates_in_16_bits": "out_indices",
    "counts_in_16_bits": "indice_num",
    "columns_xyz": "out_indices",
    "out_indices_not_written": "out_indices",
    "num_act_out_one_too_many": "num_act_out",
    "writes_nothing": "diff3",
    "accepts_transpose": "got",
    "accepts_stride_and_dilation": "got",
    "accepts_any_subm": "got",
    "accepts_any_kernel": "got",
    "refuses_zero_elements": "got",
    "ignores_the_workspace": "got",
}
# The vendor leaves indice_num of an empty call unwritten: all cases pass.
BEYOND_DESIGN = {"counts_of_nothing_not_written": _Rulebook("counts_of_nothing_not_written")}
FAULTS = {name: (_Rulebook(name), reason) for name, reason in REASONS.items()}
right = _Rulebook()
globals().update({name: implementation for name, (implementation, _) in FAULTS.items()} | BEYOND_DESIGN)
