"""Entries that break the contract: each mistake is reported with its place in the file, in plain words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from schemas.errors import InputError
from tests.generators.specs.expanded import SMALL, refusal

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
        ("{name: a, " + _N + ", params: {psa_type: 0, h_mask: ^1.5, w_mask: 4}}",
         "params.h_mask: h_mask is 1.5, expected an integer"),
        ("{name: a, " + _N + ", params: {psa_type: 0, h_mask: ^true, w_mask: 4}}",
         "params.h_mask: h_mask is True, expected an integer"),
        ("{name: a, " + _N + ", params: {psa_type: ^[collect], h_mask: 1, w_mask: 4}}",
         "params.psa_type: psa_type is ['collect'], expected one number"),
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
    # A tuple where a number belongs is reported as that alone, not by every dim that reads it.
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
