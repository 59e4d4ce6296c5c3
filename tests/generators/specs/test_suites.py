"""The built-in suites: network shapes exactly as the documents list them, one broken rule per invalid case, sizes."""

from __future__ import annotations

import collections
from pathlib import Path

import numpy as np
import pytest

from generators.casegen.case_data import case_bytes, draw_inputs
from generators.contracts.case import Case
from generators.contracts.negative_cases import broken
from generators.operator_registry import operator_named, operators
from generators.specs.expansion import expand, expand_operator
from generators.specs.loader import load_spec

BOTH = [(0,), (1,)]
# operator -> (shapes of all tensors, dtype of the first) of each network case
NETWORK = {
    "masked_im2col_forward": [
        ([[1, 256, 20, 20], [200], [200], [rows, 200]], dtype) for rows in (2304, 256) for dtype in ("float", "half")
    ],
    "psamask_forward": [
        (shapes, "float")
        for shapes in (
            [[2, 49, 49, 9409], [2, 49, 49, 2401]],
            [[4, 32, 32, 4356], [4, 32, 32, 1024]],
            [[4, 32, 32, 9409], [4, 32, 32, 1024]],
            [[123, 3, 12, 638], [123, 3, 12, 36]],
        )
        for _ in BOTH
    ],
    "psamask_backward": [
        (shapes, "float")
        for shapes in (
            [[2, 49, 49, 2401], [2, 49, 49, 9409]],
            [[4, 32, 32, 1024], [4, 32, 32, 4356]],
            [[4, 32, 32, 1024], [4, 32, 32, 9409]],
            [[16, 128, 32, 4096], [16, 128, 32, 1024]],
        )
        for _ in BOTH
    ],
    "roi_crop_forward": [
        (shapes, "float")
        for shapes in (
            [[1, 5, 5, 1], [1, 3, 1, 2], [1, 3, 1, 1]],
            [[1, 32, 32, 500], [1, 5, 5, 2], [1, 5, 5, 500]],
            [[1, 32, 32, 50000], [1, 5, 5, 2], [1, 5, 5, 50000]],
            [[4, 32, 32, 500], [16, 3, 5, 2], [16, 3, 5, 500]],
            [[4, 13, 15, 5000], [16, 5, 9, 2], [16, 5, 9, 5000]],
            [[8, 32, 32, 500], [16, 25, 25, 2], [16, 25, 25, 500]],
        )
    ],
    "roi_crop_backward": [
        (shapes, "float")
        for shapes in (
            [[1, 3, 1, 1], [1, 3, 1, 2], [1, 5, 5, 1]],
            [[1, 5, 5, 500], [1, 5, 5, 2], [1, 32, 32, 500]],
            [[1, 5, 5, 50000], [1, 5, 5, 2], [1, 32, 32, 50000]],
            [[16, 3, 5, 50000], [16, 3, 5, 2], [4, 32, 32, 50000]],
            [[16, 13, 25, 500], [16, 13, 25, 2], [4, 32, 32, 500]],
            [[16, 25, 25, 500], [16, 25, 25, 2], [4, 32, 32, 500]],
        )
    ],
    "voxel_pooling_forward": [
        ([[2, 473088, 3], [2, 473088, 80], [2, 128, 128, 80], [2, 473088, 3]], "int32"),
    ],
    "masked_col2im_forward": [([[256, 200], [200], [200], [1, 256, 20, 20]], dtype) for dtype in ("float", "half")],
    "roialign_forward": [
        (shapes, "float")
        for shapes in (
            [[2, 50, 76, 256], [128, 5], [128, 7, 7, 256]],
            [[2, 25, 38, 256], [128, 5], [128, 7, 7, 256]],
            [[1, 50, 76, 256], [32, 5], [32, 14, 14, 256]],
        )
    ],
    "indice_convolution_forward": [
        (shapes, dtype)
        for shapes, dtype in (
            ([[60000, 4], [3, 3, 3, 4, 16], [27, 2, 60000], [60000, 16]], "float"),
            ([[60000, 16], [3, 3, 3, 16, 32], [27, 2, 60000], [43000, 32]], "float"),
            ([[30000, 64], [3, 3, 3, 64, 64], [27, 2, 30000], [30000, 64]], "float"),
            ([[30000, 64], [3, 3, 3, 64, 64], [27, 2, 30000], [30000, 64]], "half"),
            ([[20000, 64], [3, 1, 1, 64, 128], [3, 2, 20000], [13000, 128]], "float"),
            ([[24000, 128], [3, 3, 3, 128, 128], [27, 2, 24000], [24000, 128]], "float"),
        )
    ],
    "get_indice_pairs": [
        ([[248636, 4], [248636, 4], [27, 2, 248636], [27]], "int32"),
        ([[149100, 4], [58838, 4], [27, 2, 149100], [27]], "int32"),
    ],
}
SUITES = {"network", "boundary", "general", "nan_inf", "zero_element", "invalid", "demo"}
SUMS = {
    "roi_crop_forward",
    "roi_crop_backward",
    "voxel_pooling_forward",
    "roialign_forward",
    "indice_convolution_forward",
}


def cases(op: str, *suites: str) -> list[Case]:
    return list(expand_operator(op, set(suites) or None))


def test_the_lists_are_of_all_operators() -> None:
    assert set(NETWORK) == set(operators())


@pytest.mark.parametrize("op", NETWORK)
def test_network_suite(op: str) -> None:
    found = [
        ([list(plan.dims) for plan in (*case.inputs, *case.outputs)], case.inputs[0].dtype)
        for case in cases(op, "network")
    ]
    assert found == NETWORK[op]


@pytest.mark.parametrize("op", ["psamask_forward", "psamask_backward"])
def test_network_masks_and_modes(op: str) -> None:
    found = [(case.params["psa_type"], case.params["h_mask"], case.params["w_mask"]) for case in cases(op, "network")]
    masks = [(97, 97), (66, 66), (97, 97), (29, 22) if op == "psamask_forward" else (32, 32)]
    assert found == [(psa_type, *mask) for mask in masks for psa_type in (0, 1)]


def test_network_parameters_of_the_others() -> None:
    assert [case.params for case in cases("masked_im2col_forward", "network")] == [
        {"kernel_h": kernel, "kernel_w": kernel, "pad_h": 1, "pad_w": 1} for kernel in (3, 3, 1, 1)
    ]
    (voxels,) = cases("voxel_pooling_forward", "network")
    assert [voxels.params[f"num_voxel_{axis}"] for axis in "xyz"] == [128, 128, 1]
    subm, down = (case.params for case in cases("get_indice_pairs", "network"))
    names = ("batch", "input_space", "output_space", "stride", "pad", "dilation", "sub_m")
    ones = (1, 1, 1)
    assert [subm[name] for name in names] == [4, (41, 1440, 1440), (41, 1440, 1440), ones, ones, ones, 1]
    assert [down[name] for name in names] == [4, (11, 360, 360), (5, 180, 180), (2, 2, 2), (0, 1, 1), ones, 0]


@pytest.mark.parametrize("op", NETWORK)
def test_every_operator_has_every_suite(op: str) -> None:
    suites = collections.Counter(case.suite for case in cases(op))
    expected = SUITES - ({"nan_inf"} if op == "get_indice_pairs" else set())  # integers have none
    expected |= {"exact"} if op in SUMS else set()  # the others copy, so all of their cases are exact
    assert set(suites) == expected
    demo = cases(op, "demo")
    assert len(demo) < 10
    assert any(not case.valid for case in demo)


def test_small_suites_are_small() -> None:
    """100 MB for three operators; the largest tensors are those of psamask with more than 2048 positions."""
    small = {case.id: case_bytes(case) for op in operators() for case in cases(op) if case.suite != "network"}
    assert sum(small.values()) < len(operators()) * 100e6 / 3
    assert max(size for id, size in small.items() if "million" not in id) < 18e6
    assert sum(size > 10e6 for size in small.values()) == 3


@pytest.mark.parametrize("op", NETWORK)
def test_every_invalid_case_breaks_one_rule(op: str) -> None:
    contract = operator_named(op).contract
    for case in cases(op):
        found = broken(case, contract)
        assert len(found) == (0 if case.valid else case.breaks), case.id
        assert case.valid or set(case.expect) == set(found[0].statuses)


def test_c3_what_neither_design_nor_vendor_checks_is_expected_beyond_the_design() -> None:
    """FOUND C3: a right implementation failed these."""
    psamask = {"small_h_mask_0", "small_w_mask_0", "small_psa_type_minus1", "small_psa_type_2", "psa_type_2"}
    rois = {"small_n_5", "small_n_3", "rois_5_of_2_images"}
    expected = {
        "get_indice_pairs": {"small_workspace_short"},
        "indice_convolution_forward": {
            "small_indice_num0_minus1",
            "small_indice_num1_minus1",
            "small_inverse_1",
            "small_inverse_minus1",
            "small_workspace_short",
        },
        "masked_im2col_forward": {"small_workspace_short"},
        "masked_col2im_forward": {"small_workspace_short"},
        "psamask_backward": psamask,
        "psamask_forward": psamask,
        "roi_crop_backward": rois,
        "roi_crop_forward": rois,
        "roialign_forward": {
            "small_pooled_height_0",
            "small_pooled_width_0",
            "small_spatial_scale_0.0",
            "small_spatial_scale_minus0.5",
        },
        "voxel_pooling_forward": set[str](),
    }
    assert {op: {case.name for case in expand_operator(op) if case.beyond_design} for op in operators()} == expected


def test_c8_conditions_that_no_derived_case_has() -> None:
    """C8: several parameters at once, outputs that agree with each other alone, one tensor large alone."""
    large = ("out_indices_large", "bins_large", "input_features_large")
    found = {
        case.id: [violation.rule for violation in broken(case, operator_named(op).contract)]
        for op in operators()
        for case in expand_operator(op)
        if case.breaks > 1 or case.name in large
    }
    assert found == {
        "get_indice_pairs/invalid/offsets_26_filter_27": ["indice_pairs.dim0", "indice_num.dim0"],
        "get_indice_pairs/invalid/offsets_28_filter_27": ["indice_pairs.dim0", "indice_num.dim0"],
        "get_indice_pairs/invalid/out_indices_large": ["large"],
        "masked_im2col_forward/invalid/kernels_both_negative": ["kernel_h", "kernel_w"],
        "masked_im2col_forward/invalid/size_query_null_masks": [
            "size_query_null_descriptor:mask_h_idx",
            "size_query_null_descriptor:mask_w_idx",
        ],
        "psamask_backward/invalid/both_half": ["dy.dtype", "dx.dtype"],
        "psamask_forward/invalid/both_half": ["x.dtype", "y.dtype"],
        **{
            f"psamask_forward/invalid/other_feature_shape{shape}": [f"y.dim{axis}", "y.dim3"]
            for axis, shape in ((1, "2x2x4x8"), (1, "2x4x4x16"), (2, "2x3x3x9"), (2, "2x3x5x15"))
        },
        "roi_crop_backward/invalid/bins_large": ["large"],
        "roi_crop_forward/invalid/bins_large": ["large"],
        "voxel_pooling_forward/invalid/input_features_large": ["large"],
        **{
            f"voxel_pooling_forward/invalid/{name}": [f"{tensor}.dim{axis}" for tensor in tensors]
            for name, axis, tensors in (
                ("points_6_scalar_7", 1, ("geom_xyz", "input_features", "pos_memo")),
                ("points_8_scalar_7", 1, ("geom_xyz", "input_features", "pos_memo")),
                ("batch_1_scalar_2", 0, ("geom_xyz", "input_features", "output_features", "pos_memo")),
                ("batch_3_scalar_2", 0, ("geom_xyz", "input_features", "output_features", "pos_memo")),
            )
        },
        "voxel_pooling_forward/invalid/channels_3_scalar_4": ["input_features.dim2", "output_features.dim3"],
        "voxel_pooling_forward/invalid/channels_5_scalar_4": ["input_features.dim2", "output_features.dim3"],
    }


@pytest.mark.parametrize("op", NETWORK)
def test_inputs_are_neither_constant_nor_symmetric(op: str) -> None:
    """A misplaced element must show. Boundary cases of one value (a mask or point at 0) are exempt."""
    operator = operator_named(op)
    for case in cases(op, "general"):
        for name, array in draw_inputs(case, operator).items():
            if array is not None and array.size >= 16:
                assert (array != array.flat[0]).any(), (case.id, name)
                assert (array.ravel() != array.ravel()[::-1]).any(), (case.id, name)


@pytest.mark.slow
def test_the_sites_of_the_large_cases_are_drawn_the_same_every_time() -> None:
    operator = operator_named("get_indice_pairs")
    down = cases("get_indice_pairs", "network")[1]
    indices = draw_inputs(down, operator)["indices"]
    again = draw_inputs(down, operator)["indices"]
    assert indices is not None
    assert again is not None
    np.testing.assert_array_equal(indices, again)
    env = operator.contract.bind({"indices": indices.shape}, down.params)
    operator.check_values({"indices": indices}, env)
    assert operator.reference({"indices": indices}, env)["out_indices"].shape == (58838, 4)


def test_c8_a_spec_names_nulls_of_other_functions_than_the_operator_s(tmp_path: Path) -> None:
    """The sparse descriptor, and the call that asks for the workspace size."""
    keys = {
        "null_parameters": "true",
        "size_query_null_handle": "true",
        "size_query_null_descriptors": "[feature]",
    }
    sizes = "sizes: {C: 1, H: 3, W: 3, M: 2}"
    lines = [f"    - {{name: {key}, {sizes}, {key}: {value}, expect: BAD_PARAM}}\n" for key, value in keys.items()]
    (tmp_path / "a.yaml").write_text(f"op: masked_im2col_forward\nsuites:\n  s:\n{''.join(lines)}")
    found = [str(fault) for case in expand(load_spec(tmp_path / "a.yaml")) for fault in case.faults]
    assert found == ["null_parameters", "size_query_null_handle", "size_query_null_descriptor:feature"]
