"""FOUND C3: cases with `expect_beyond_design`, from the spec to the record and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.mluops_cli.conftest import Cli

SPEC = """op: psamask_forward
suites:
  invalid:
    - name: no_mask
      sizes: {N: 1, H: 2, W: 2}
      params: {psa_type: collect, h_mask: 0, w_mask: 3}
      %s: BAD_PARAM
"""
ANSWERS = """
def refuses(op, inputs, outputs, params):
    return "BAD_PARAM"

def accepts(op, inputs, outputs, params):
    return None

def crashes(op, inputs, outputs, params):
    import os
    os.abort()
"""


def write(folder: Path, key: str = "expect_beyond_design") -> Path:
    (folder / "answers.py").write_text(ANSWERS)
    (folder / "spec.yaml").write_text(SPEC % key)
    return folder / "spec.yaml"


@pytest.mark.parametrize("format", ["pb", pytest.param("prototxt", marks=pytest.mark.slow)])
def test_any_answer_passes_and_strict_wants_the_expected_one(tmp_path: Path, cli: Cli, format: str) -> None:
    spec = write(tmp_path)
    made = cli("gen", "--spec", spec, "--out", tmp_path / "cases", "--format", format, "-j", 1)
    assert (made.code, made.err) == (0, "")

    def run(name: str, *options: str) -> tuple[int, dict[str, Any]]:
        out = tmp_path / f"{name}{len(options)}"
        impl = f"python:{tmp_path / 'answers.py'}:{name}"
        code = cli("run", tmp_path / "cases", "--impl", impl, "--out", out, "-j", 1, *options).code
        (line,) = (out / "results.jsonl").read_text().splitlines()
        return code, json.loads(line)

    for name, answer, strict in (("refuses", "BAD_PARAM", 0), ("accepts", "SUCCESS", 1)):
        code, record = run(name)
        assert (code, record["status"], record["beyond_design"]) == (0, "pass", True)
        assert (record["operator_status"], record["expected_status"]) == (answer, ["BAD_PARAM"])
        assert run(name, "--strict")[0] == strict
    code, record = run("crashes")
    assert (code, record["status"]) == (1, "crash")


def test_expect_is_refused_where_the_rule_is_ours_alone(tmp_path: Path, cli: Cli) -> None:
    ran = cli("gen", "--spec", write(tmp_path, "expect"), "--out", tmp_path / "cases", "-j", 1)
    assert ran.code == 2
    assert (
        "suites.invalid[0].expect: case psamask_forward/invalid/no_mask has expect, expected expect_beyond_design"
        in ran.err
    )


def test_both_keys_are_refused(tmp_path: Path, cli: Cli) -> None:
    spec = write(tmp_path)
    spec.write_text(f"{spec.read_text()}      expect: BAD_PARAM\n")
    ran = cli("gen", "--spec", spec, "--out", tmp_path / "cases", "-j", 1)
    assert ran.code == 2
    assert "expect_beyond_design: expect is given too, expected one of the two" in ran.err
