"""Specs that include another file: what is merged, where mistakes are, and what can't be included."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from generators.contracts.case import Case
from generators.specs.expansion import expand
from generators.specs.loader import find_specs, load_spec
from schemas.errors import InputError

SHARED = """\
lists: {few: [1, 2], masks: [9]}
defaults:
  tags: [shared]
  params: {psa_type: collect, h_mask: 3, w_mask: 4}
suites:
  s:
    - name: a
      sizes: {N: 2, H: 5, W: 7}
      matrix: {params.w_mask: masks}
    - name: b
      sizes: {N: 1, H: 2, W: 3}
      criteria: {y: {diff1: 0.5}}
"""
SIZES = "sizes: {N: 1, H: 2, W: 3}"
OWN = """\
op: psamask_forward
include: _shared.yaml
lists: {masks: [7, 8]}
suites:
  s:
    - name: c
      sizes: {N: 1, H: few, W: 1}
      sample: {count: 1, over: {sizes.H: few}}
    - name: a
      params: {h_mask: 2}
      inputs: {x: {dist: {nan: 0.5}}}
  t:
    - {name: a, sizes: {N: 1, H: 1, W: 1}, tags: [own]}
"""


def write(folder: Path, own: str = OWN, shared: str = SHARED) -> Path:
    (folder / "_shared.yaml").write_text(shared, encoding="utf-8")
    path = folder / "a.yaml"
    path.write_text(own, encoding="utf-8")
    return path


def cases(folder: Path, own: str = OWN, shared: str = SHARED) -> dict[str, Case]:
    found = {f"{case.suite}/{case.name}": case for case in expand(load_spec(write(folder, own, shared)))}
    assert found
    return found


def refusal(folder: Path, own: str = OWN, shared: str = SHARED) -> list[str]:
    with pytest.raises(InputError) as caught:
        cases(folder, own, shared)
    return str(caught.value).replace(f"{folder}{os.sep}", "").splitlines()


def test_entries_defaults_and_lists_are_merged(tmp_path: Path) -> None:
    found = cases(tmp_path)
    assert list(found) == ["s/a_w_mask7", "s/a_w_mask8", "s/b", "s/c_s000", "t/a"]
    merged = found["s/a_w_mask8"]
    assert merged.params == {"psa_type": 0, "h_mask": 2, "w_mask": 8}
    assert merged.inputs[0].dims == (2, 5, 7, 16)
    assert merged.inputs[0].values is not None
    assert merged.inputs[0].values.nan == 0.5
    assert [case.tags for case in found.values()] == [("shared",)] * 4 + [("own",)]


def test_a_case_and_its_criteria_tell_the_file_they_stand_in(tmp_path: Path) -> None:
    found = cases(tmp_path)
    assert {name: case.place for name, case in found.items()} == {
        "s/a_w_mask7": "a.yaml:9", "s/a_w_mask8": "a.yaml:9", "s/b": "_shared.yaml:10", "s/c_s000": "a.yaml:6",
        "t/a": "a.yaml:13",
    }  # fmt: skip
    assert found["s/b"].criteria["y"][0].source == "spec _shared.yaml:12"


@pytest.mark.parametrize(
    ("own", "shared", "expected"),
    [
        (OWN, SHARED.replace("sizes: {N: 1", "sizs: {N: 1"),
         ["_shared.yaml:11:7: suites.s[1].sizs: unknown key 'sizs': did you mean 'sizes'?"]),
        (OWN, SHARED.replace("W: 7", "W: 0-1"),
         ["_shared.yaml:8:30: suites.s[0].sizes.W: '0-1' is -1, expected an integer of 0 or more (case a_w_mask7)"]),
        (OWN, SHARED.replace("W: 3", "V: 3"),
         ["_shared.yaml:11:27: suites.s[1].sizes.V: psamask_forward has no size 'V': expected one of H, N, W"]),
        (OWN, SHARED.replace("h_mask: 3", "h_mask: 0"),
         ["_shared.yaml:4:39: defaults.params.h_mask: h_mask is 0, expected 1 or more",
          "_shared.yaml:4:39: defaults.params.h_mask: none of 100 draws is a legal case, the last: h_mask is 0, "
          "expected 1 or more (case c_s000)"]),
        (OWN, SHARED.replace("w_mask: masks", "w_mask: mask"),
         ["_shared.yaml:9:31: suites.s[0].matrix.params.w_mask: no list is called 'mask': did you mean 'masks'?"]),
        (OWN.replace("[7, 8]", "[7, 0]"), SHARED,
         ["_shared.yaml:9:31: suites.s[0].matrix.params.w_mask: w_mask is 0, expected 1 or more (case a_w_mask0)"]),
        (OWN.replace("h_mask: 2", "h_mask: x"), SHARED,
         ["a.yaml:10:24: suites.s[1].params.h_mask: unknown word 'x' for h_mask: expected an integer "
          "(case a_w_mask7)"]),
        (OWN.replace("name: c", "name: 'c c'"), SHARED.replace("name: b", "nme: b"),
         ["_shared.yaml:10:7: suites.s[1]: missing key 'name'",
          "_shared.yaml:10:7: suites.s[1].nme: unknown key 'nme': did you mean 'name'?",
          "a.yaml:6:13: suites.s[0].name: found 'c c', expected a name of a-z 0-9 _ . -, starting with a letter or "
          "digit, 200 at most"]),
        (OWN.replace("op: psamask_forward\n", ""), SHARED, ["a.yaml:1:1: missing key 'op'"]),
        (OWN.replace("_shared.yaml", "_shard.yaml"), SHARED,
         ["a.yaml:2:10: include: can't include _shard.yaml: there is no such file"]),
        (OWN.replace("_shared.yaml", "."), SHARED,
         ["a.yaml:2:10: include: can't include .: it is no regular file"]),
        (OWN.replace("_shared.yaml", "../x.yaml"), SHARED,
         ["a.yaml:2:10: include: the included file '../x.yaml' leads outside, expected one below the folder of this "
          "file"]),
        (OWN.replace("_shared.yaml", "/etc/passwd"), SHARED,
         ["a.yaml:2:10: include: the included file '/etc/passwd' is absolute, expected one below the folder of this "
          "file"]),
        (OWN.replace("_shared.yaml", "[_shared.yaml]"), SHARED,
         ["a.yaml:2:10: include: found ['_shared.yaml'], expected text"]),
        (OWN.replace("_shared.yaml", "a.yaml"), SHARED, ["a.yaml:2:10: include: a.yaml includes itself"]),
        (OWN, f"include: a.yaml\n{SHARED}", ["_shared.yaml:1:10: include: a.yaml includes itself"]),
        (OWN, "- 1\n", ["_shared.yaml:1:1: found [1], expected a mapping with op and suites"]),
        (OWN, "a: [1\n", ["_shared.yaml:2:1: the list that starts in line 1 isn't closed: expected , or ]"]),
    ],
)  # fmt: skip
def test_a_mistake_points_into_its_file(tmp_path: Path, own: str, shared: str, expected: list[str]) -> None:
    assert refusal(tmp_path, own, shared) == expected


def test_a_name_twice_in_one_file_is_still_a_duplicate(tmp_path: Path) -> None:
    twice = f"op: psamask_forward\ninclude: _shared.yaml\nsuites: {{s: [{{name: b}}, {{name: b, {SIZES}}}]}}\n"
    assert refusal(tmp_path, twice) == [
        "a.yaml:3:32: suites.s[1].name: duplicate case name 'b', first of the entry in line 3"
    ]


def test_an_included_file_may_include_another(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "_deep.yaml").write_text(SHARED.replace("[9]", "[5]"))
    shared = "include: sub/_deep.yaml\nsuites:\n  s:\n    - {name: b, params: {w_mask: 1}}\n"
    found = cases(tmp_path, OWN.replace("lists: {masks: [7, 8]}\n", ""), shared)
    assert list(found) == ["s/a_w_mask5", "s/b", "s/c_s000", "t/a"]
    assert found["s/b"].inputs[0].dims == (1, 2, 3, 3)
    assert found["s/b"].place == "_shared.yaml:4"


def test_a_folder_s_specs_are_those_without_underscore(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert find_specs([tmp_path]) == [path]
    with pytest.raises(InputError, match="missing key 'op'"):
        load_spec(tmp_path / "_shared.yaml")
