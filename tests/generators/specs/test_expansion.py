"""Specs into cases: shapes and defaults, the matrix, checks against the contract, and where mistakes are."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from generators.contracts.case import Case
from generators.contracts.model import UNKNOWN
from generators.data.draw import Values
from generators.specs.expansion import expand, expand_operator
from generators.specs.loader import load_spec
from schemas.criteria import Criterion
from schemas.errors import InputError
from tests.conftest import PROJECT

SMALL = "sizes: {N: 2, H: 5, W: 7}, params: {psa_type: collect, h_mask: 3, w_mask: 4}"


def cases(folder: Path, entries: str, op: str = "psamask_forward", head: str = "", **options: Any) -> list[Case]:
    """The cases of entries in suite s; the first entry is in line 4, or further down below a head."""
    path = folder / "a.yaml"
    path.write_text(f"op: {op}\n{head}suites:\n  s:\n{entries}\n", encoding="utf-8")
    return list(expand(load_spec(path), **options))


def refusal(folder: Path, entries: str, op: str = "psamask_forward", head: str = "") -> list[str]:
    with pytest.raises(InputError) as caught:
        cases(folder, entries, op, head)
    return str(caught.value).replace(f"{folder}{os.sep}", "").splitlines()


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


# ---- matrix ---------------------------------------------------------------------------------------------------------


def names(folder: Path, text: str) -> list[str]:
    return [case.name for case in cases(folder, f"    - {{name: a, {SMALL}, {text}}}")]


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


# ---- mistakes -------------------------------------------------------------------------------------------------------


_N = "sizes: {N: 2, H: 5, W: 7}"
_P = "params: {psa_type: 0, h_mask: 3, w_mask: 4}"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{name: a, " + _N + ", params: {psa_type: ^Collect, h_mask: 3, w_mask: 4}}",
         "params.psa_type: unknown word 'Collect' for psa_type: did you mean 'collect'?"),
        ("{name: a, " + _N + ", params: {psa_type: ^both, h_mask: 3, w_mask: 4}}",
         "params.psa_type: unknown word 'both' for psa_type: expected one of collect, distribute"),
        ("{name: a, " + _N + ", params: {psa_type: ^2, h_mask: 3, w_mask: 4}}",
         "params.psa_type: psa_type is 2, expected 0 (collect), 1 (distribute)"),
        ("{name: a, " + _N + ", params: {psa_type: 0, h_mask: ^0, w_mask: 4}}",
         "params.h_mask: h_mask is 0, expected 1 or more"),
        ("{name: a, " + _N + ", params: {psa_type: 0, h_mask: ^x, w_mask: 4}}",
         "params.h_mask: unknown word 'x' for h_mask: expected an integer"),
        ("{name: a, " + _N + ", params: ^{psa_type: 0, h_mask: 3}}",
         "params: parameter 'w_mask' is missing, psamask_forward has no default for it"),
        ("{name: a, " + _N + ", params: {^psatype: 0, h_mask: 3}}",
         "params.psatype: psamask_forward has no parameter 'psatype': did you mean 'psa_type'?"),
        ("{name: a, sizes: {N: 2, H: 5, ^w: 7}, " + _P + "}",
         "sizes.w: psamask_forward has no size 'w': expected one of H, N, W"),
        ("{name: a, inputs: {^input: {}}}", "inputs.input: psamask_forward has no input 'input': expected one of x"),
        ("{name: a, outputs: {^x: {}}}", "outputs.x: psamask_forward has no output 'x': expected one of y"),
        ("{name: a, criteria: {^x: {}}}", "criteria.x: psamask_forward has no output 'x': expected one of y"),
        ("^{name: a, sizes: {N: 2, H: 5}, " + _P + "}",
         "inputs.x: the shape [N H W h_mask*w_mask] is missing: give it, or sizes of W"),
        ("{name: a, " + _P + ", inputs: {x: {shape: ^[2, 5, 7, 13]}}}",
         "inputs.x.shape: x dim 3 is 13, expected h_mask*w_mask = 12"),
        ("{name: a, " + _P + ", inputs: {x: {shape: ^[2, 5, 12]}}, outputs: {y: {shape: [1, 1, 1, 1]}}}",
         "inputs.x.shape: x has 3 dims [2, 5, 12], expected 4: [N H W h_mask*w_mask]"),
        ("{name: a, " + _P + ", inputs: {x: {shape: [2, 5, 7, 12]}}, outputs: {y: {shape: ^[2, 5, 7, 36]}}}",
         "outputs.y.shape: y dim 3 is 36, expected H*W = 35"),
        ("{name: a, " + _P + ", inputs: {x: {shape: [2, 5, 7, ^h_mask*w]}}}",
         "inputs.x.shape[3]: 'h_mask*w' reads w: expected one of h_mask, psa_type, w_mask"),
        ("{name: a, " + SMALL + ", inputs: {x: {dtype: ^half}}}",
         "inputs.x.dtype: x has dtype half, expected float"),
        ("{name: a, " + SMALL + ", inputs: {x: {layout: ^NCHW}}}",
         "inputs.x.layout: x has layout NCHW, expected NHWC"),
        ("{name: a, " + SMALL + ", inputs: {x: {strides: ^[1, 2]}}}",
         "inputs.x.strides: 2 strides [1, 2] for 4 dims [2, 5, 7, 12]"),
        ("{name: a, " + SMALL + ", inputs: {x: {dist: ^{uniform: [1, 1]}}}}",
         "inputs.x.dist: uniform needs low < high, found [1, 1]"),
        ("{name: a, " + SMALL + ", inputs: {x: {dist: ^{uniform: [0, HH]}}}}",
         "inputs.x.dist: uniform: 'HH' reads HH: did you mean 'H'?"),
        ("{name: a, " + SMALL + ", inputs: {x: {dist: ^{unique: [0, 9]}}}}",
         "inputs.x.dist: 840 unique values are wanted, the range holds 10"),
        ("^{name: a, sizes: {N: 65536, H: 65536, W: 65536}, params: {psa_type: 0, h_mask: 256, w_mask: 256}}",
         "inputs.x.shape: shape [65536, 65536, 65536, 65536] has more than 2^63 - 1 elements"),
        ("^{name: a, sizes: {N: 65536, H: 65536, W: 1}, params: {psa_type: 0, h_mask: 1, w_mask: 1}}",
         "x has 4294967296 elements, y has 281474976710656 elements, expected fewer than 2147483648"),
        ("{name: a, sizes: {N: 2, H: 5, W: ^H//0}, " + _P + "}", "sizes.W: 'H//0' can't be computed: "),
        ("{name: a, sizes: {N: 2, H: 5, W: ^9**9**9**9}, " + _P + "}",
         "sizes.W: '9**9**9**9' can't be computed: a power has more than 4096 bits"),
        ("{name: a, " + _P + ", inputs: {x: {shape: [2, 5, ^" + "+".join("1" * 5000) + ", 12]}}}",
         "inputs.x.shape[2]: an expression of 9999 characters, expected at most 1000"),
        ("{name: a, " + _P + ", inputs: {x: {shape: [2, ^2 == 2, 7, 12]}}}",
         "inputs.x.shape[1]: '2 == 2' is True, expected an integer of 0 or more"),
        ("{name: a, " + _N + ", params: {psa_type: 0, h_mask: ^[3], w_mask: 4}}",
         "params.h_mask: h_mask is [3], expected one number"),
        ("{name: a, " + SMALL + ", inputs: {x: {dist: ^{constant: \"1e400\"}}}}",
         "inputs.x.dist: '1e400': a number is beyond the largest one"),
        ("{name: ^" + "n" * 195 + ", " + SMALL + ", matrix: {params.h_mask: [1, 2]}}",
         f"name: case name '{'n' * 195}_h_mask1' has 203 letters, expected at most 200"),
        ("{name: a, sizes: {N: 2, H: 5, W: ^2-h_mask}, " + _P + "}",
         "sizes.W: '2-h_mask' is -1, expected an integer of 0 or more"),
        ("{name: a, sizes: {N: 2, H: 5, W: ^open(1)}, " + _P + "}",
         "sizes.W: 'open(1)': only min, max, abs, prod may be"),
        ("{name: a, " + SMALL + ", matrix: {params.h_mask: [1, ^0]}}",
         "matrix.params.h_mask[1]: h_mask is 0, expected 1 or more (case a_h_mask0)"),
        ("{name: a, " + SMALL + ", matrix: {inputs.x.shape: [[2, 5, 7, 12], [2, 5, 7, ^HH]]}}",
         "matrix.inputs.x.shape[1][3]: 'HH' reads HH: did you mean 'H'? (case a_shape2x5x7xhh)"),
        ("{name: a, " + SMALL + ", matrix: {^params.hmask: [1]}}",
         "matrix.params.hmask: psamask_forward has no parameter 'hmask': did you mean 'h_mask'?"),
        ("{name: a, " + SMALL + ", include: [{^sizes.Z: 1}]}",
         "include[0].sizes.Z: psamask_forward has no size 'Z': expected one of H, N, W"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(tmp_path: Path, entry: str, expected: str) -> None:
    """A ^ stands before the place that the message must name."""
    column = 7 + entry.index("^")
    (line,) = refusal(tmp_path, f"    - {entry.replace('^', '')}")
    dot = "" if expected.startswith("x has 4294967296") else "."
    assert line.startswith(f"a.yaml:4:{column}: suites.s[0]{dot or ': '}{expected}")


def test_the_words_of_a_broken_rule(tmp_path: Path) -> None:
    entry = (
        "    - {name: a, params: {kernel_h: 3, kernel_w: 2, pad_h: 1, pad_w: 0}, "
        "inputs: {feature: {shape: [2, 0, 8, 9]}, mask_h_idx: {shape: [11]}}}"
    )
    (line,) = refusal(tmp_path, entry, "masked_im2col_forward")
    assert line.endswith("feature dim 0 is 2, expected 1")
    (line,) = refusal(tmp_path, entry.replace("[2, 0", "[1, 0"), "masked_im2col_forward")
    assert line.endswith("C is 0, expected 1 or more")
    # A tuple where a number belongs is told as that alone, not by every dim that reads it.
    given = entry.replace("[2, 0", "[1, 1").replace("kernel_h: 3", "kernel_h: [3]")
    output = given.replace("}}}", "}}, outputs: {data_col: {shape: [6, 11]}}}")
    (line,) = refusal(tmp_path, output, "masked_im2col_forward")
    assert line.endswith("kernel_h is [3], expected one number")


SITES = (
    "params: {batch: 1, input_space: [5, 6, 7], filter_space: [3, 3, 3], pad: [0, 0, 0], stride: [1, 1, 1], "
    "dilation: [1, 1, 1]"
)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (", dimnb: 4", "suites.s[0].params.dimnb: dimnb is 4, expected 5"),
        (", transpose: 1", "suites.s[0].params.transpose: transpose is 1, expected 0"),
        (", input_space: [5, 2, 7]", "suites.s[0].params: output_space is (3, 0, 5), expected 1 or more "
         "(output_space is not given: it follows from the rest)"),
    ],
)  # fmt: skip
def test_e10_a_parameter_out_of_range_in_plain_words(tmp_path: Path, more: str, expected: str) -> None:
    params = SITES.replace("input_space: [5, 6, 7], ", "") + more if "input_space" in more else SITES + more
    (line,) = refusal(tmp_path, f"    - {{name: a, sizes: {{L: 4}}, {params}}}}}", "get_indice_pairs")
    assert line.split(": ", 1)[1] == expected


def test_all_entries_in_error_are_told_and_nothing_follows_the_first(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        f"op: psamask_forward\nsuites:\n  s:\n    - {{name: a, {SMALL}}}\n    - {{name: b}}\n"
        f"    - {{name: c, {SMALL}}}\n    - {{name: a, {SMALL}}}\n  t:\n    - {{name: d, inputs: {{z: {{}}}}}}\n"
    )
    expansion = expand(load_spec(path))
    assert next(expansion).name == "a"
    with pytest.raises(InputError) as caught:
        next(expansion)
    lines = str(caught.value).replace(f"{tmp_path}{os.sep}", "").splitlines()
    assert [line.split(": ")[0] for line in lines] == ["a.yaml:5:7", "a.yaml:7:14", "a.yaml:9:26"]
    assert lines[1] == "a.yaml:7:14: suites.s[3].name: duplicate case name 'a', first of the entry in line 4"


def test_the_defaults_are_blamed_for_what_they_say(tmp_path: Path) -> None:
    head = "defaults:\n  params: {psa_type: Collect}\n"
    lines = refusal(tmp_path, "    - {name: a, params: {h_mask: 1, w_mask: 1}}", head=head)
    assert lines[0].startswith("a.yaml:3:22: defaults.params.psa_type: unknown word 'Collect'")


def test_an_unknown_operator(tmp_path: Path) -> None:
    lines = refusal(tmp_path, "    - {name: a}", op="psamask_foward")
    assert lines == ["a.yaml:1:5: op: unknown operator 'psamask_foward': did you mean 'psamask_forward'?"]


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
