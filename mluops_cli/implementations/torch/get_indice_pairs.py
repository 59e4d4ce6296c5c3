"""get_indice_pairs in PyTorch: all pairs of kernel offsets and sites at once, output rows by sorting (spconv)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from mluops_cli.implementations.preconditions import get_indice_pairs as checks
from mluops_cli.implementations.preconditions.base import Params
from mluops_cli.implementations.torch.base import Shapes, Torches, TorchKernel


class GetIndicePairs(TorchKernel, checks.GetIndicePairs):
    """Site j at p reaches output o by offset k where o*stride = p + pad - k*dilation; cells are numbered in 64 bits."""

    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """Which cells are reached, the active ones in order, and per offset the pairs of site and output row."""
        indices, space = inputs["indices"], params["output_space"]
        cell, reached = _reached(indices.long(), params)
        if params["sub_m"]:
            out_indices = indices
            active, rows = _numbers(indices.long(), space).sort()
        else:
            active = torch.unique(cell[reached])  # sorted
            rows = torch.arange(len(active))
            out_indices = _sites(active, space).int()
        at = torch.searchsorted(active, cell)
        if len(active):
            at.clamp_(max=len(active) - 1)
            reached &= active[at] == cell
        indice_num = reached.sum(dim=1)
        indice_pairs = torch.full((len(cell), 2, len(indices)), -1, dtype=torch.int32)
        k, j = reached.nonzero(as_tuple=True)  # in the order of k, then j
        position = reached.cumsum(dim=1)[k, j] - 1
        indice_pairs[k, 0, position] = j.int()
        indice_pairs[k, 1, position] = rows[at[k, j]].int()
        return {"out_indices": out_indices, "indice_pairs": indice_pairs, "indice_num": indice_num.int()}

    def scalars(self, computed: Torches) -> Mapping[str, int]:
        """The number of active outputs."""
        return {"num_act_out": len(computed["out_indices"])}


def _reached(sites: torch.Tensor, params: Params) -> tuple[torch.Tensor, torch.Tensor]:
    """Per kernel offset and site [K, L] the cell number of its output, and whether it is a whole one in bounds."""
    pad, stride, dilation, space = (
        torch.tensor(params[name]) for name in ("pad", "stride", "dilation", "output_space")
    )
    offset = _sites(torch.arange(math.prod(params["filter_space"])), params["filter_space"])[:, None, 1:]
    moved = sites[:, 1:] + pad - offset * dilation
    output = moved.div(stride, rounding_mode="floor")
    reached = ((output * stride == moved) & (output >= 0) & (output < space)).all(dim=2)
    batch = sites[:, 0].expand(len(offset), -1)
    return _numbers(torch.cat([batch[..., None], output], dim=2), params["output_space"]), reached


def _numbers(sites: torch.Tensor, space: list[int]) -> torch.Tensor:
    """((n*D + d)*H + h)*W + w of sites (n, d, h, w) in the last dim."""
    n, d, h, w = sites.unbind(-1)
    D, H, W = space
    return ((n * D + d) * H + h) * W + w


def _sites(numbers: torch.Tensor, space: list[int]) -> torch.Tensor:
    """The sites (n, d, h, w) of cell numbers, in a new last dim."""
    D, H, W = space
    return torch.stack([numbers // (D * H * W), numbers // (H * W) % D, numbers // W % H, numbers % W], dim=-1)


KERNELS = {"get_indice_pairs": GetIndicePairs}
