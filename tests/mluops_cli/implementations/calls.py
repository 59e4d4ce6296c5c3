"""Hand-checked calls of operators, as the runner makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from generators.contracts.faults import Fault
from mluops_cli.implementations.base import Call, Outcome
from schemas.tensor_descriptor import Descriptor

_NAMES = {"float32": "float", "int32": "int32", "float16": "half", "float64": "double"}


def make_call(
    op: str, inputs: dict[str, Any], outputs: dict[str, Any], params: dict[str, Any], layout: str, **more: Any
) -> Call:
    """A call with dense descriptors; tensors of four dims have the given layout. faults in their text form."""
    for array in inputs.values():
        array.flags.writeable = False
    described = {
        name: Descriptor(layout if array.ndim == 4 else "ARRAY", _NAMES[array.dtype.name], array.shape)
        for name, array in {**inputs, **outputs}.items()
    }
    faults = tuple(map(Fault.parse, more.pop("faults", ())))
    return Call(op, inputs, outputs, params, {**described, **more.pop("descriptors", {})}, faults, **more)


def psamask(psa_type: int = 0, **more: Any) -> Call:
    """H=1, W=2, mask 1x3, x = [1,2,3], [4,5,6]: COLLECT [2,3], [4,5]; DISTRIBUTE [2,4], [3,5]."""
    x = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 2, 3)
    params = {"psa_type": psa_type, "h_mask": 1, "w_mask": 3}
    return make_call("psamask_forward", {"x": x}, {"y": np.full((1, 1, 2, 2), 77, np.float32)}, params, "NHWC", **more)


def masked_im2col(**more: Any) -> Call:
    """Feature 1..9, masks at (-1, -1) and (1, 1), kernel 2x2, pad 1: [[0,1],[0,2],[0,4],[0,5]]."""
    mask = np.array([-1, 1], np.int32)
    feature = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    inputs = {"feature": feature, "mask_h_idx": mask, "mask_w_idx": mask.copy()}
    params = {"kernel_h": 2, "kernel_w": 2, "pad_h": 1, "pad_w": 1}
    outputs = {"data_col": np.full((4, 2), 77, np.float32)}
    return make_call("masked_im2col_forward", inputs, outputs, params, "NCHW", **more)


CROPS = {
    (-1, -1): 1,
    (-1, 1): 2,
    (1, -1): 3,
    (1, 1): 4,
    (0, 0): 2.5,
    (1, 0): 3.5,
    (0, 1): 3,
    (0, 1.5): 2.25,
    (0, -1.5): 1.5,
}


def roi_crop() -> Call:
    """The image [[1,2],[3,4]] at the grid points (y, x) of CROPS; then points far outside, which give 0."""
    points = [*CROPS, (5, 5), (3e38, -3e38)]
    grid = np.array(points, np.float32).reshape(1, 1, -1, 2)
    image = np.array([1, 2, 3, 4], np.float32).reshape(1, 2, 2, 1)
    output = np.full((1, 1, len(points), 1), 77, np.float32)
    return make_call("roi_crop_forward", {"input": image, "grid": grid}, {"output": output}, {}, "NHWC")


def voxel_pooling() -> Call:
    """Four points in a 2x2 grid with Z=2: two share a column, one is beyond x, one below z; features 1, 2, 4, 8."""
    geom = np.array([[[1, 0, 0], [1, 0, 1], [2, 0, 0], [0, 1, -1]]], np.int32)
    features = np.array([1, 2, 4, 8], np.float32).reshape(1, 4, 1)
    outputs = {"output_features": np.full((1, 2, 2, 1), 77, np.float32), "pos_memo": np.full((1, 4, 3), -1, np.int32)}
    names = ("batch_size", "num_points", "num_channels", "num_voxel_x", "num_voxel_y", "num_voxel_z")
    params = dict(zip(names, (1, 4, 1, 2, 2, 2), strict=True))
    inputs = {"geom_xyz": geom, "input_features": features}
    return make_call("voxel_pooling_forward", inputs, outputs, params, "NHWC")


def get_indice_pairs() -> Call:
    """A row of 4 cells, sites at 3 and 0, kernel 3 with pad 1: the outputs 0, 1, 2, 3, in that order."""
    space = [1, 1, 4]
    outputs = {
        "out_indices": np.full((4, 4), 77, np.int32),
        "indice_pairs": np.full((3, 2, 2), 77, np.int32),
        "indice_num": np.full(3, 77, np.int32),
    }
    params = {
        "dimnb": 5, "batch": 1, "pad": [0, 0, 1], "stride": [1, 1, 1], "dilation": [1, 1, 1], "input_space": space,
        "filter_space": [1, 1, 3], "output_space": space, "sub_m": 0, "transpose": 0, "inverse": 0,
    }  # fmt: skip
    inputs = {"indices": np.array([[0, 0, 0, 3], [0, 0, 0, 0]], np.int32)}
    return make_call("get_indice_pairs", inputs, outputs, params, "ARRAY")


def output_of(made: Call, name: str) -> Any:
    """The array of an output, which was not omitted."""
    array = made.outputs[name]
    assert array is not None
    return array


def check_hand_values(call: Callable[[Call], Outcome]) -> None:
    """Run every call above through an implementation's call and compare with the values worked out by hand."""
    for psa_type, expected in ((0, [[2, 3], [4, 5]]), (1, [[2, 4], [3, 5]])):
        made = psamask(psa_type)
        assert call(made).status == "SUCCESS"
        assert output_of(made, "y").reshape(2, 2).tolist() == expected
    made = masked_im2col()
    call(made)
    assert output_of(made, "data_col").tolist() == [[0, 1], [0, 2], [0, 4], [0, 5]]
    made = roi_crop()
    call(made)
    np.testing.assert_allclose(output_of(made, "output").reshape(-1), [*CROPS.values(), 0, 0], rtol=1e-6)
    made = voxel_pooling()
    call(made)
    assert output_of(made, "output_features").reshape(-1).tolist() == [0, 3, 0, 0]
    assert output_of(made, "pos_memo").tolist() == [[[0, 0, 1], [0, 0, 1], [-1, -1, -1], [-1, -1, -1]]]
    made = get_indice_pairs()
    assert call(made).scalars == {"num_act_out": 4}
    assert output_of(made, "out_indices")[:, 3].tolist() == [0, 1, 2, 3]
    # o = p + 1 - k: site 0 at p = 3 reaches (4), 3, 2 by k = 0, 1, 2; site 1 at p = 0 reaches 1, 0, (-1).
    pairs = output_of(made, "indice_pairs")
    assert output_of(made, "indice_num").tolist() == [1, 2, 1]
    assert pairs[0, :, :1].tolist() == [[1], [1]]
    assert pairs[1].tolist() == [[0, 1], [3, 0]]
    assert pairs[2, :, :1].tolist() == [[0], [2]]
