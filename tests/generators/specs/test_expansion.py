"""Specs into cases: shapes and defaults, the order of cases, and invalid cases."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from generators.contracts.model import UNKNOWN
from generators.data.draw import Values
from generators.specs.expansion import expand, expand_operator
from generators.specs.loader import load_spec
from schemas.criteria import Criterion
from tests.conftest import PROJECT
from tests.generators.specs.expanded import SMALL, cases, refusal

# ---- one case -------------------------------------------------------------------------------------------------------


def test_everything_follows_from_shapes_and_params(tmp_path: Path) -> None:
    (case,) = cases(
        tmp_path,
        "    - {name: a, params: {psa_type: distribute, h_mask: 3, w_mask: 4}, inputs: {x: {shape: [2, 5, 7, 12]}}}",
    )
    assert case.id == "psamask_forward/s/a"
    assert case.params == {"psa_type": 1, "h_mask": 3, "w_mask": 4}
    assert [(p.name, p.dtype, p.layout, p.dims, p.strides) for p in (*case.inputs, *case.outputs)] == [
        ("x", "float", "NHWC", (2, 5, 7, 12), None), ("y", "float", "NHWC", (2, 5, 7, 35), None),
    ]  # fmt: skip
    assert case.inputs[0].values == Values("uniform", (-1, 1))
    assert case.outputs[0].values is None
    assert (case.expect, case.faults, case.tags, case.seed, case.place) == (("SUCCESS",), (), (), 1, "a.yaml:4")
    assert [(c.name, c.threshold) for c in case.criteria["y"]] == [("diff3", 0.0)]
    assert "pure_io" in case.criteria["y"][0].source


def test_shapes_follow_from_sizes_and_from_each_other(tmp_path: Path) -> None:
    (case,) = cases(tmp_path, f"    - {{name: a, {SMALL}}}")
    assert [plan.dims for plan in (*case.inputs, *case.outputs)] == [(2, 5, 7, 12), (2, 5, 7, 35)]
    (case,) = cases(
        tmp_path,
        "    - {name: a, sizes: {H: 8, W: 9, C: 3}, params: {kernel_h: 3, kernel_w: 2, pad_h: 1, pad_w: 0},\n"
        "       inputs: {feature: {dtype: float16}, mask_w_idx: {shape: [11]}}}",
        "masked_im2col_forward",
    )
    assert [plan.dims for plan in (*case.inputs, *case.outputs)] == [(1, 3, 8, 9), (11,), (11,), (18, 11)]
    assert [plan.dtype for plan in (*case.inputs, *case.outputs)] == ["half", "int32", "int32", "half"]


def test_expressions_in_shapes_and_bounds(tmp_path: Path) -> None:
    (case,) = cases(
        tmp_path,
        "    - {name: a, params: {psa_type: 0, h_mask: 3, w_mask: 4}, inputs: {x: {shape: [1, 2, 3, h_mask*w_mask], "
        "dist: {uniform: [-h_mask, H + W], nan: 0.5}}}}",
    )
    assert case.inputs[0].dims == (1, 2, 3, 12)
    assert case.inputs[0].values == Values("uniform", (-3, 5), nan=0.5)


def test_what_an_entry_says_goes_into_the_case(tmp_path: Path) -> None:
    (case,) = cases(
        tmp_path,
        f"    - {{name: a, {SMALL}, tags: [slow, x], seed: 9,\n       criteria: {{y: {{diff1: 1e-3, diff3_1: 0}}}}}}",
        seed=4,
    )
    assert case.tags == ("slow", "x")
    assert case.seed == 9
    assert case.criteria["y"] == (Criterion("diff1", 1e-3, "spec a.yaml:5"), Criterion("diff3_1", 0.0, "spec a.yaml:5"))
    (case,) = cases(tmp_path, f"    - {{name: a, {SMALL}}}", seed=4)
    assert case.seed == 4


def test_values_without_a_kind_take_the_contracts(tmp_path: Path) -> None:
    (case,) = cases(tmp_path, f"    - {{name: a, {SMALL}, inputs: {{x: {{dist: {{inf: 0.25}}}}}}}}")
    assert case.inputs[0].values == Values("uniform", (-1, 1), inf=0.25)


def test_sizes_that_only_the_data_tell_stay_open() -> None:
    case = next(case for case in expand_operator("get_indice_pairs", {"general"}) if case.params["sub_m"] == 0)
    assert case.outputs[0].dims == (UNKNOWN, 4)


# ---- order, suites --------------------------------------------------------------------------------------------------


def test_expansion_is_lazy(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    axis = ", ".join(map(str, range(1, 1001)))
    path.write_text(
        f"op: psamask_forward\nsuites:\n  s:\n    - {{name: a, {SMALL}, "
        f"matrix: {{params.h_mask: [{axis}], params.w_mask: [{axis}], sizes.H: [{axis}]}}}}\n"
    )
    first = list(islice(expand(load_spec(path)), 3))  # of 10^9
    assert [case.params["w_mask"] for case in first] == [1, 1, 1]


def test_only_the_suites_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        f"op: psamask_forward\nsuites:\n  s: [{{name: a, {SMALL}}}]\n  t: [{{name: a, params: {{x: 1}}}}]\n"
    )
    assert [case.id for case in expand(load_spec(path), {"s", "other"})] == ["psamask_forward/s/a"]
    assert list(expand(load_spec(path), set())) == []


def test_order_and_hash_seed_change_nothing(tmp_path: Path) -> None:
    code = (
        "from generators.specs.expansion import expand_operator as e\n"
        "print(*map(repr, e('masked_im2col_forward')), sep='\\n')"
    )
    outputs = set()
    for seed in ("0", "99"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(PROJECT)}
        outputs.add(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout)
    assert len(outputs) == 1
    first = cases(tmp_path, f"    - {{name: a, {SMALL}}}\n    - {{name: b, {SMALL}, seed: 3}}")
    second = cases(tmp_path, f"    - {{name: b, {SMALL}, seed: 3}}\n    - {{name: a, {SMALL}}}")
    assert first[0].inputs == second[1].inputs
    assert first[1].seed == second[0].seed


# ---- invalid cases --------------------------------------------------------------------------------------------------


def test_invalid_cases_carry_their_fault(tmp_path: Path) -> None:
    small = f"expect: BAD_PARAM, {SMALL}"
    found = cases(
        tmp_path,
        f"    - {{name: a, {small}, null_handle: true}}\n"
        f"    - {{name: b, {small}, null_descriptors: [y]}}\n"
        f"    - {{name: c, {small}, null_pointers: [x]}}\n"
        f"    - {{name: d, {SMALL}, expect: [7, MLUOP_STATUS_BAD_PARAM], "
        "inputs: {x: {strides: [840, 168, 24, 2]}}}\n",
    )
    assert [tuple(map(str, case.faults)) for case in found] == [
        ("null_handle",),
        ("null_descriptor:y",),
        ("null_pointer:x",),
        (),
    ]
    assert found[3].expect == ("NOT_SUPPORTED", "BAD_PARAM")
    assert found[3].inputs[0].strides == (840, 168, 24, 2)
    workspace = "sizes: {C: 1, H: 2, W: 3, M: 4}, params: {kernel_h: 1, kernel_w: 1, pad_h: 0, pad_w: 0}, "
    found = cases(
        tmp_path,
        "".join(
            f"    - {{name: {name}, {workspace}{fault}}}\n"
            for name, fault in (
                ("a", "workspace: null, expect: BAD_PARAM"),
                ("b", "workspace: 'null', expect: BAD_PARAM"),
                ("c", "workspace: short, expect_beyond_design: BAD_PARAM"),
            )
        ),
        "masked_im2col_forward",
    )
    assert [tuple(map(str, case.faults)) for case in found] == [
        ("workspace:null",),
        ("workspace:null",),
        ("workspace:short",),
    ]


def test_a_size_that_no_input_has_must_be_given(tmp_path: Path) -> None:
    """Only a count that the operator returns may stay open (rows of out_indices)."""
    inputs = "inputs: {grad_output: {shape: [4, 2, 3, 3]}, grid: {shape: [4, 2, 3, 2]}}"
    (line,) = refusal(tmp_path, f"    - {{name: a, {inputs}}}", "roi_crop_backward")
    assert line.endswith("outputs.grad_input: the shape [B H W C] is missing: give it, or sizes of B, H, W")
    (case,) = cases(tmp_path, f"    - {{name: a, {inputs}, sizes: {{B: 2, H: 5, W: 6}}}}", "roi_crop_backward")
    assert case.outputs[0].dims == (2, 5, 6, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{SMALL}, expect: BAD_PARAM", "found 0: nothing is wrong with it"),
        (f"{SMALL}, expect: NOT_SUPPORTED, null_handle: true", "expects NOT_SUPPORTED, the contract says BAD_PARAM"),
        (f"{SMALL}, null_handle: true", "expects SUCCESS, the contract says BAD_PARAM"),
        (f"{SMALL}, expect: BAD_PARAM, null_handle: true, null_pointers: [x]", "found 2"),
        (f"{SMALL}, expect: BAD_PARAM, null_pointers: [z]", "has no tensor 'z'"),
        (f"{SMALL}, expect: BAD_PARAM, size_query_null_descriptors: [z]", "has no tensor 'z'"),
        (f"{SMALL}, expect: BAD_PARAM, null_handle: true, derive: true", "only a valid case can be broken"),
    ],
)
def test_an_invalid_case_breaks_exactly_one_rule(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(tmp_path, f"    - {{name: a, {text}}}")[0]


def test_derive_expands_to_invalid_cases(tmp_path: Path) -> None:
    found = cases(tmp_path, f"    - {{name: small, {SMALL}, derive: true}}")
    assert len(found) > 20
    assert all(case.name.startswith("small_") and case.expect != ("SUCCESS",) for case in found)
    assert {case.place for case in found} == {"a.yaml:4"}
