"""indice_convolution_forward in PyTorch: per kernel offset a gather, a matrix product and a scatter (spconv)."""

from __future__ import annotations

import torch

from mluops_cli.implementations.preconditions import indice_convolution as checks
from mluops_cli.implementations.preconditions.base import Params
from mluops_cli.implementations.torch.base import Shapes, Torches, TorchKernel


class IndiceConvolutionForward(TorchKernel, checks.IndiceConvolutionForward):
    """Sums are float32 for half too, rounded once."""

    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """Outputs without a pair stay 0."""
        features, filters = inputs["features"].float(), inputs["filters"].float().flatten(0, 2)
        output = torch.zeros(shapes["features_out"])
        for number, weight, pairs in zip(params["indice_num"], filters, inputs["indice_pairs"], strict=True):
            sources, targets = pairs[:, :number].long()
            output.index_add_(0, targets, features[sources] @ weight)
        return {"features_out": output.to(inputs["features"].dtype)}


KERNELS = {"indice_convolution_forward": IndiceConvolutionForward}
