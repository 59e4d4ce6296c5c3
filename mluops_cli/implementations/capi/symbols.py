"""The vendor library's C interface as data: functions with their arguments, runtime names, numbers of dtypes, layouts.

The operators' functions are those of the public mlu_op.h. The runtime's names and directions come from public SDK
documentation: correct them here where yours differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SPARSE_CONVOLUTION_DESCRIPTOR: Final = "sparse_conv_desc"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A function that returns a scalar result after the call, with its arguments (`result` takes the int).

    unstored_with names a parameter: where it is not 0 the library never stores the result.
    """

    function: str
    arguments: str
    unstored_with: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """How an operator is called.

    arguments are words in the order of C: `handle`; T_desc and T, descriptor and data of the tensor T; `workspace`,
    `workspace_size`; `sparse_conv_desc`; any other word is a parameter: int, float or bool.
    size names the function that returns the bytes of workspace, with its arguments (`size` takes them).
    """

    name: str
    arguments: str
    size: tuple[str, str] | None = None
    scalars: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The library's functions that a call needs, besides those that every call needs."""
        names = [self.name, *(scalar.function for scalar in self.scalars.values())]
        names += [] if self.size is None else [self.size[0]]
        return (*names, *(SPARSE_CONVOLUTION if SPARSE_CONVOLUTION_DESCRIPTOR in self.arguments.split() else ()))


OPERATORS: Final[Mapping[str, Function]] = {
    "masked_im2col_forward": Function(
        "mluOpMaskedIm2colForward",
        "handle feature_desc feature mask_h_idx_desc mask_h_idx mask_w_idx_desc mask_w_idx "
        "kernel_h kernel_w pad_h pad_w workspace workspace_size data_col_desc data_col",
        size=(
            "mluOpGetMaskedIm2colForwardWorkspaceSize",
            "handle feature_desc mask_h_idx_desc mask_w_idx_desc kernel_h kernel_w data_col_desc size",
        ),
    ),
    "psamask_forward": Function("mluOpPsamaskForward", "handle psa_type x_desc x h_mask w_mask y_desc y"),
    "psamask_backward": Function("mluOpPsamaskBackward", "handle psa_type dy_desc dy h_mask w_mask dx_desc dx"),
    "roi_crop_forward": Function("mluOpRoiCropForward", "handle input_desc input grid_desc grid output_desc output"),
    "roi_crop_backward": Function(
        "mluOpRoiCropBackward", "handle grad_output_desc grad_output grid_desc grid grad_input_desc grad_input"
    ),
    "voxel_pooling_forward": Function(
        "mluOpVoxelPoolingForward",
        "handle batch_size num_points num_channels num_voxel_x num_voxel_y num_voxel_z geom_xyz_desc geom_xyz "
        "input_features_desc input_features output_features_desc output_features pos_memo_desc pos_memo",
    ),
    "get_indice_pairs": Function(
        "mluOpGetIndicePairs",
        "handle sparse_conv_desc indices_desc indices workspace workspace_size "
        "indice_pairs_desc indice_pairs out_indices_desc out_indices indice_num_desc indice_num",
        size=(
            "mluOpGetIndicePairsWorkspaceSize",
            "handle sparse_conv_desc indices_desc indice_pairs_desc out_indices_desc indice_num_desc size",
        ),
        scalars={"num_act_out": Scalar("mluOpGetSparseConvolutionNumActOut", "sparse_conv_desc result", "sub_m")},
    ),
}

# How the descriptor of a sparse convolution is made, destroyed and set.
SPARSE_CONVOLUTION: Final = (
    "mluOpCreateSparseConvolutionDescriptor",
    "mluOpDestroySparseConvolutionDescriptor",
    "mluOpSetSparseConvolutionDescriptor",
)
# The setter's parameters after the descriptor, in its order.
SPARSE_CONVOLUTION_PARAMS: Final = (
    "dimnb", "batch", "pad", "stride", "dilation", "input_space", "filter_space", "output_space",
    "sub_m", "transpose", "inverse",
)  # fmt: skip

# What every call needs, besides the operators' functions.
LIBRARY: Final = (
    "mluOpCreate", "mluOpDestroy", "mluOpSetQueue", "mluOpGetErrorString",
    "mluOpCreateTensorDescriptor", "mluOpDestroyTensorDescriptor",
    "mluOpSetTensorDescriptor", "mluOpSetTensorDescriptorEx",
)  # fmt: skip

# Setters of tensor descriptors that take int dims and strides -> the same with int64_t, which some libraries have.
WIDE_SETTERS: Final[Mapping[str, str]] = {
    "mluOpSetTensorDescriptor": "mluOpSetTensorDescriptor_v2",
    "mluOpSetTensorDescriptorEx": "mluOpSetTensorDescriptorEx_v2",
}

# What the adapter calls a function of the runtime -> its name.
RUNTIME: Final[Mapping[str, str]] = {
    "device_count": "cnrtGetDeviceCount",
    "set_device": "cnrtSetDevice",
    "queue_create": "cnrtQueueCreate",
    "queue_destroy": "cnrtQueueDestroy",
    "queue_sync": "cnrtQueueSync",
    "malloc": "cnrtMalloc",
    "free": "cnrtFree",
    "memcpy": "cnrtMemcpy",
    "memset": "cnrtMemset",
    "notifier_create": "cnrtNotifierCreate",
    "notifier_place": "cnrtPlaceNotifier",
    "notifier_duration": "cnrtNotifierDuration",
    "notifier_destroy": "cnrtNotifierDestroy",
}
HOST_TO_DEVICE: Final = 0  # directions of cnrtMemcpy
DEVICE_TO_HOST: Final = 2

DTYPES: Final[Mapping[str, int]] = {
    "half": 1, "float": 2, "int8": 3, "int16": 4, "int31": 5, "int32": 6, "uint8": 7, "bool": 8, "int64": 9,
    "uint32": 11, "uint64": 12, "uint16": 13, "double": 14, "complex_half": 15, "complex_float": 16, "bfloat16": 17,
}  # fmt: skip
LAYOUTS: Final[Mapping[str, int]] = {
    "NCHW": 0, "NHWC": 1, "HWCN": 2, "NDHWC": 3, "ARRAY": 4, "NCDHW": 5, "TNC": 6, "NTC": 7, "NC": 8, "NLC": 9,
    "NCL": 10,
}  # fmt: skip
