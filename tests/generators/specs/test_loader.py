"""Spec files against the grammar: every mistake is reported with its place, all at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generators.specs.loader import find_specs, load_spec, spec_files
from schemas.errors import InputError
from tools.spec_schema import PATH, schema_text

HEAD = "op: psamask_forward\nsuites:\n  general:\n"


def load(folder: Path, text: str) -> list[str]:
    """The lines of the refusal, empty when the file is right."""
    path = folder / "a.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        load_spec(path)
    except InputError as error:
        return str(error).replace(str(path), "a.yaml").splitlines()
    return []


def entry(text: str) -> str:
    """A spec with one entry; the text starts at line 4, column 7."""
    return f"{HEAD}    - {text}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{name: a, parms: {}}", "4:17: suites.general[0].parms: unknown key 'parms': did you mean 'params'?"),
        ("{nme: a}", "4:7: suites.general[0]: missing key 'name'"),
        ("{name: a, params: {psa_type: [[1]]}}",
         "4:37: suites.general[0].params.psa_type[0]: found [1], expected an integer, a number, true or false, or "
         "a word of the parameter's choices"),
        ("{name: a, params: {w_mask: '5'}}",
         "4:34: suites.general[0].params.w_mask: found '5', expected an integer, a number, true or false, "
         "a word of the parameter's choices, or a list of them: write it without quotes"),
        ("{name: a, sizes: {N: '2'}}",
         "4:28: suites.general[0].sizes.N: found '2', expected an integer of 0 or more, or an expression: "
         "write it without quotes"),
        ("{name: a, inputs: {x: {shape: ['2', -1, N]}}}",
         "4:38: suites.general[0].inputs.x.shape[0]: found '2', expected an integer of 0 or more, or an expression: "
         "write it without quotes"),
        ("{name: a, inputs: {x: {dist: {uniform: [0, '1.5']}}}}",
         "4:50: suites.general[0].inputs.x.dist.uniform[1]: found '1.5', expected a number, or an expression: "
         "write it without quotes"),
        ("{name: a, params: 3}", "4:25: suites.general[0].params: found 3, expected a mapping"),
        ("{name: a, inputs: {x: {shape: [1, 2.5]}}}",
         "4:41: suites.general[0].inputs.x.shape[1]: found 2.5, expected an integer of 0 or more, or an expression"),
        ("{name: a, inputs: {x: {shape: [1, -2]}}}",
         "4:41: suites.general[0].inputs.x.shape[1]: found -2, expected an integer of 0 or more, or an expression"),
        ("{name: a, inputs: {x: {dtype: flaot}}}",
         "4:37: suites.general[0].inputs.x.dtype: unknown dtype 'flaot': did you mean 'float'?"),
        ("{name: a, inputs: {x: {layout: nhwc}}}", "4:38: suites.general[0].inputs.x.layout: unknown layout 'nhwc': "
         "expected one of ARRAY, HWCN, NC, NCDHW, NCHW, NCL, NDHWC, NHWC, NLC, NTC, TNC"),
        ("{name: a, inputs: {x: {dist: {unifrom: [0, 1]}}}}",
         "4:37: suites.general[0].inputs.x.dist.unifrom: unknown key 'unifrom': did you mean 'uniform'?"),
        ("{name: a, inputs: {x: {dist: {nan: 1.5}}}}",
         "4:42: suites.general[0].inputs.x.dist.nan: found 1.5, expected a number from 0 to 1"),
        ("{name: a, inputs: {x: {dist: {uniform: [1]}}}}",
         "4:46: suites.general[0].inputs.x.dist.uniform: found [1], expected [number, number]"),
        ("{name: a, outputs: {y: {dist: {}}}}", "4:31: suites.general[0].outputs.y.dist: unknown key 'dist': "
         "expected one of capacity, dtype, layout, shape, strides"),
        ("{name: a, criteria: {y: {diff3: zero}}}",
         "4:39: suites.general[0].criteria.y.diff3: found 'zero', expected a number of 0 or more"),
        ("{name: a, criteria: {y: {diff3: .inf}}}",
         "4:39: suites.general[0].criteria.y.diff3: found inf, expected a finite number of 0 or more"),
        ("{name: a, criteria: {y: {dif3: 0}}}",
         "4:32: suites.general[0].criteria.y.dif3: unknown criterion 'dif3': did you mean 'diff3'?"),
        ("{name: a, expect: BADPARAM}", "4:25: suites.general[0].expect: unknown status 'BADPARAM': "
         "did you mean 'BAD_PARAM'?"),
        ("{name: a, expect: 99}", "4:25: suites.general[0].expect: unknown status 99: expected one of ALLOC_FAILED, "
         "ARCH_MISMATCH, BAD_PARAM, EXECUTION_FAILED, INTERNAL_ERROR, NOT_INITIALIZED, NOT_SUPPORTED, "
         "NUMERICAL_OVERFLOW, SUCCESS"),
        ("{name: a, expect: []}", "4:25: suites.general[0].expect: found [], expected a status (SUCCESS, "
         "NOT_INITIALIZED, ALLOC_FAILED, BAD_PARAM, INTERNAL_ERROR, ARCH_MISMATCH, EXECUTION_FAILED, NOT_SUPPORTED, "
         "NUMERICAL_OVERFLOW), its number, or a list of them"),
        ("{name: a, null_handle: no}",
         "4:30: suites.general[0].null_handle: found 'no', expected true or false"),
        ("{name: a, workspace: long}", "4:28: suites.general[0].workspace: found 'long', expected null or short"),
        ("{name: a, seed: 1e3}", "4:23: suites.general[0].seed: found 1000.0, expected an integer from 0 to 2^64 - 1"),
        ("{name: a, seed: -1}", "4:23: suites.general[0].seed: found -1, expected an integer from 0 to 2^64 - 1"),
        ("{name: a, seed: 18446744073709551616}", "4:23: suites.general[0].seed: found 18446744073709551616, "
         "expected an integer from 0 to 2^64 - 1"),
        ("{name: a, sample: {count: 1, seed: -1, over: {}}}",
         "4:42: suites.general[0].sample.seed: found -1, expected an integer from 0 to 2^64 - 1"),
        ("{name: a, tags: slow}", "4:23: suites.general[0].tags: found 'slow', expected a list of texts"),
        ("{name: 010}", "4:14: suites.general[0].name: found 10, "
         "expected a name of a-z 0-9 _ . -, starting with a letter or digit, 200 at most"),
        (f"{{name: {'a' * 201}}}", f"4:14: suites.general[0].name: found '{'a' * 56}..., "
         "expected a name of a-z 0-9 _ . -, starting with a letter or digit, 200 at most"),
        ("{name: größe}", "4:14: suites.general[0].name: found 'größe', "
         "expected a name of a-z 0-9 _ . -, starting with a letter or digit, 200 at most"),
        ("{name: ../a}", "4:14: suites.general[0].name: found '../a', "
         "expected a name of a-z 0-9 _ . -, starting with a letter or digit, 200 at most"),
        ("{name: a, matrix: {params.h_mask: 3}}",
         "4:41: suites.general[0].matrix.params.h_mask: found 3, expected a list of at least one value, "
         "a range such as 1..64..8, or the name of a list"),
        ("{name: a, matrix: {inputs.x.dtype: [float, hlaf]}}",
         "4:50: suites.general[0].matrix.inputs.x.dtype[1]: unknown dtype 'hlaf': did you mean 'half'?"),
        ("{name: a, matrix: {parms.h_mask: [1]}}",
         "4:26: suites.general[0].matrix.parms.h_mask: unknown key 'parms': did you mean 'params'?"),
        ("{name: a, matrix: {name: [b]}}", "4:26: suites.general[0].matrix.name: name can't be varied"),
        ("{name: a, include: [{seed: x}]}",
         "4:34: suites.general[0].include[0].seed: found 'x', expected an integer from 0 to 2^64 - 1"),
        ("{name: a, matrix: {params.h_mask: [1, 2]}, exclude: [{params.hmask: 1}]}",
         "4:61: suites.general[0].exclude[0].params.hmask: 'params.hmask' is no axis of matrix or zip: "
         "did you mean 'params.h_mask'?"),
        ("{name: a, matrix: {params.h_mask: [1, 2]}, exclude: [{params.h_mask: 3}]}",
         "4:76: suites.general[0].exclude[0].params.h_mask: 3 is not on the axis params.h_mask"),
        ("7", "4:7: suites.general[0]: found 7, expected a mapping"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert f"a.yaml:{expected}" in load(tmp_path, entry(text))


def test_a_right_entry_is_silent(tmp_path: Path) -> None:
    assert (
        load(tmp_path, entry("{name: no, criteria: {y: {diff3: 1e-3}}, expect: [BAD_PARAM, 7], workspace: null}")) == []
    )


def test_all_mistakes_of_a_file_are_told_at_once_in_order(tmp_path: Path) -> None:
    lines = load(
        tmp_path, "opp: x\nsuites:\n  A: []\n  b:\n    - {name: 1}\n    - {name: b, seed: x}\ndefaults: {tag: 1}\n"
    )
    assert [line.split(" ")[0] for line in lines] == [
        "a.yaml:1:1:", "a.yaml:1:1:", "a.yaml:3:3:", "a.yaml:5:14:", "a.yaml:6:23:", "a.yaml:7:12:",
    ]  # fmt: skip


def test_an_empty_file_and_a_list_are_no_spec(tmp_path: Path) -> None:
    assert load(tmp_path, "") == ["a.yaml: found nothing, expected a mapping with op and suites"]
    assert load(tmp_path, "- a\n")[0].startswith("a.yaml:1:1: found ['a'], expected a mapping")


def test_defaults_lie_under_every_entry(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "op: psamask_forward\ndefaults:\n  params: {h_mask: 3, w_mask: 4}\n  tags: [a]\n"
        "  inputs: {x: {dtype: float, dist: {uniform: [0, 1], nan: 0.5}}}\n"
        "suites:\n  s:\n    - {name: a, params: {h_mask: 9}, inputs: {x: {dist: {normal: [0, 1]}}}, tags: [b]}\n"
        "    - {name: b}\n"
    )
    spec = load_spec(path)
    assert spec.entry("s", 0) == {
        "name": "a", "params": {"h_mask": 9, "w_mask": 4}, "tags": ["b"],
        "inputs": {"x": {"dtype": "float", "dist": {"normal": [0, 1]}}},
    }  # fmt: skip
    assert spec.entry("s", 1)["params"] == {"h_mask": 3, "w_mask": 4}
    assert spec.place(("suites", "s", 1, "params", "w_mask")).line == 3
    assert spec.place(("suites", "s", 0, "params", "h_mask")).line == 8


def test_folders_are_searched_for_specs(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "sub/c.yaml", "d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = find_specs([tmp_path, tmp_path / "d.txt", tmp_path / "b.yaml"])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == ["a.yml", "b.yaml", "sub/c.yaml", "d.txt"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no spec files"):
        find_specs([tmp_path / "empty"])


def test_the_built_in_specs_are_found_and_right() -> None:
    assert [path.name for path in spec_files("psamask_forward")] == ["psamask_forward.yaml"]
    for path in spec_files():
        assert load_spec(path).op == path.stem


def test_the_json_schema_in_the_tree_is_fresh() -> None:
    assert PATH.read_text(encoding="utf-8") == schema_text(), "run: python -m tools.spec_schema"


def test_the_json_schema_knows_the_words() -> None:
    definitions = json.loads(schema_text())["$defs"]
    assert "half" in definitions["Input"]["properties"]["dtype"]["enum"]
    assert definitions["Entry"]["required"] == ["name"]
    assert definitions["Entry"]["additionalProperties"] is False
    assert "uniform" in definitions["Dist"]["properties"]


D18 = """op: psamask_forward
suites:
  s:
    - name: a
      params: {psa_type: collect, h_mask: 3, w_mask: 3}
      sizes: {N: 1}
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("      sizes", "     sizes", ["6:6: this line is indented unlike the list that starts in line 4",
         "         sizes: {N: 1}", "         ^"]),
        ("N: 1", 'N: "2"', ["6:18: suites.s[0].sizes.N: found '2', expected an integer of 0 or more"]),
        ("h_mask: 3", 'h_mask: "5"', ["5:43: suites.s[0].params.h_mask: found '5', expected an integer"]),
        ("sizes: {N: 1}", "matrix: {h_mask: [1]}", ["6:16: suites.s[0].matrix.h_mask: unknown key 'h_mask': did you"]),
        ("sizes: {N: 1}", "h_mask: 1", ["6:7: suites.s[0].h_mask: unknown key 'h_mask': did you mean 'params.h_mask'"]),
        ("sizes: {N: 1}", "x: {}", ["6:7: suites.s[0].x: unknown key 'x': did you mean 'inputs.x'?"]),
        ("suites:", "defaults: {N: 1}\nsuites:", ["2:12: defaults.N: unknown key 'N': did you mean 'sizes.N'?"]),
        ("sizes: {N: 1}", "inputs: {x: {uniform: [0, 1]}}",
         ["6:20: suites.s[0].inputs.x.uniform: unknown key 'uniform': did you mean 'dist.uniform'?"]),
    ],
    ids=[
        "indented", "size in quotes", "parameter in quotes", "key of a matrix", "parameter", "tensor", "default",
        "distribution",
    ],
)  # fmt: skip
def test_d18_a_mistake_is_shown_with_its_line_and_the_likely_key(
    tmp_path: Path, old: str, new: str, told: list[str]
) -> None:
    """The YAML library's words came without the line, quoted sizes were taken, a wrong axis listed 18 keys."""
    (tmp_path / "a.yaml").write_text(D18.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_spec(tmp_path / "a.yaml")
    lines = str(caught.value).replace(f"{tmp_path}/a.yaml:", "").splitlines()
    assert [line[: len(start)] for line, start in zip(lines, told, strict=False)] == told
