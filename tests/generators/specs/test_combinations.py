"""The matrix, zip and sample of an entry: names of cases, values of each combination."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.generators.specs.expanded import SMALL, cases, names


def test_a_matrix_is_a_grid_with_readable_names(tmp_path: Path) -> None:
    found = cases(
        tmp_path, f"    - {{name: a, {SMALL}, matrix: {{params.psa_type: [collect, distribute], sizes.H: [1, 9]}}}}"
    )
    assert [(case.name, case.params["psa_type"], case.outputs[0].dims) for case in found] == [
        ("a_collect_h1", 0, (2, 1, 7, 7)), ("a_collect_h9", 0, (2, 9, 7, 63)),
        ("a_distribute_h1", 1, (2, 1, 7, 7)), ("a_distribute_h9", 1, (2, 9, 7, 63)),
    ]  # fmt: skip
    assert {case.place for case in found} == {"a.yaml:4"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("matrix: {inputs.x.dtype: [float, float32]}", ["a_float", "a_float32"]),
        ("matrix: {inputs.x.shape: [[2, 5, 7, 12], [0, 5, 7, 12]], sizes: [{}]}",
         ["a_shape2x5x7x12_sizes", "a_shape0x5x7x12_sizes"]),
        ("matrix: {inputs.x.dist: [{uniform: [-1, 2]}, {normal: [0, 0.5]}, {nan: 1}]}",
         ["a_uniform-1x2", "a_normal0x0.5", "a_nan1"]),
        ("matrix: {seed: [1, 1, 2]}", ["a_seed1.0", "a_seed1.1", "a_seed2.2"]),
        ("matrix: {inputs.x.dist.uniform: [[0, 1e-9], [0, 1e+9]]}", ["a_uniform0x1e-09", "a_uniform0x1000000000.0"]),
        ("matrix: {params.h_mask: [1, 2], params.w_mask: [1, 2]}, exclude: [{params.h_mask: 1, params.w_mask: 2}]",
         ["a_h_mask1_w_mask1", "a_h_mask2_w_mask1", "a_h_mask2_w_mask2"]),
        ("matrix: {params.h_mask: [1, 2, 3]}, exclude: [{params.h_mask: 1}, {params.h_mask: 3}]", ["a_h_mask2"]),
        ("matrix: {params.h_mask: [1]}, include: [{params.h_mask: 7, sizes.W: 1}]", ["a_h_mask1", "a_h_mask7_w1"]),
        ("include: [{params.psa_type: distribute}]", ["a_distribute"]),
    ],
)  # fmt: skip
def test_names_of_combinations(tmp_path: Path, text: str, expected: list[str]) -> None:
    if "shape2x5" in str(expected):
        entry = f"    - {{name: a, params: {{psa_type: 0, h_mask: 3, w_mask: 4}}, {text}}}"
        assert [case.name for case in cases(tmp_path, entry)] == expected
    else:
        assert names(tmp_path, text) == expected


def test_values_follow_each_combination(tmp_path: Path) -> None:
    found = cases(
        tmp_path,
        f"    - {{name: a, {SMALL}, inputs: {{x: {{dist: {{uniform: [-h_mask, H]}}}}}}, "
        "matrix: {params.h_mask: [1, 2], sizes.H: [5, 6]}}",
    )
    assert [case.inputs[0].values and case.inputs[0].values.args for case in found] == [
        (-1, 5),
        (-1, 6),
        (-2, 5),
        (-2, 6),
    ]
    found = cases(
        tmp_path,
        "    - {name: a, sizes: {C: 1, H: 2, W: 3, M: 4}, params: {kernel_h: 1, kernel_w: 1, pad_h: 0, pad_w: 0},\n"
        "       inputs: {feature: {dist: {special: [largest]}}}, matrix: {inputs.feature.dtype: [half, float]}}",
        "masked_im2col_forward",
    )
    assert [case.inputs[0].values and case.inputs[0].values.special for case in found] == [(0x7BFF,), (0x7F7FFFFF,)]


def test_combinations_don_t_leak_into_each_other(tmp_path: Path) -> None:
    found = cases(
        tmp_path,
        f"    - {{name: a, {SMALL}, "
        "include: [{params.h_mask: 9}, {inputs.x.dist: {normal: [0, 1]}}, {tags: [t]}]}",
    )
    assert [case.params["h_mask"] for case in found] == [9, 3, 3]
    assert [case.inputs[0].values.kind for case in found if case.inputs[0].values] == ["uniform", "normal", "uniform"]
    assert [case.tags for case in found] == [(), (), ("t",)]
