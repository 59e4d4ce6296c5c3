"""`mluops diff OUT CASE`: what is expected, what was computed and the difference, around the worst element."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mluops_cli.inspection.output_diff import diff_lines
from mluops_cli.judging.diagnosis import diagnose
from mluops_cli.search import faulty_kernels
from schemas.criteria import Criterion
from schemas.protos import messages as proto
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import write_psamask

CASE = "psamask_forward/general/one"
SEVENS = "def sevens(op, inputs, outputs, params):\n    outputs['y'][...] = 7\n"
EXACT = [Criterion("diff3", 0.0)]


@pytest.fixture
def out(tmp_path: Path, cli: Cli) -> Path:
    """A run of an implementation whose outputs are 7 all over."""
    (tmp_path / "sevens.py").write_text(SEVENS, encoding="utf-8")
    write_psamask(tmp_path / "cases", "one")
    arguments = ("--impl", f"python:{tmp_path / 'sevens.py'}:sevens", "--out", tmp_path / "out")
    assert cli("run", tmp_path / "cases", *arguments, "--keep-outputs", "1MiB").code == 1
    return tmp_path / "out"


def test_d20_the_window_around_the_worst_element_is_printed(out: Path, cli: Cli) -> None:
    shown = cli("diff", out, "one", "--around", "1")
    assert shown.code == 1
    head, diagnosis, place, titles, *rows = shown.out.splitlines()
    assert head == f"{CASE}  psa_type=0, h_mask=3, w_mask=3"
    assert diagnosis.startswith("y: 36 of 36 elements wrong (1)")
    (record,) = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    worst = record["outputs"]["y"]["diagnosis"]["worst"][0]
    assert place.startswith(f"y[{worst['at'][0]}, {worst['at'][1]}, ")
    assert place.endswith(f"], the worst element is {worst['at']}")
    assert titles.split()[::2] == ["expected", "got", "difference"]
    assert any("7*" in row for row in rows)
    assert any(f"{7 - worst['baseline']:.9g}" in row.split() for row in rows)


def test_what_was_not_kept_is_told_with_the_way_to_keep_it(out: Path, cli: Cli) -> None:
    (out / "failures" / "psamask_forward" / "general" / "one~outputs.pb").unlink()
    shown = cli("diff", out, CASE)
    assert shown.code == 2
    assert f"`mluops replay {out} -k {CASE} --keep-outputs 64MiB` keeps them" in shown.err
    assert cli("replay", out, "-k", CASE, "--keep-outputs", "64MiB").code == 1
    assert cli("diff", out, CASE).code == 1


def test_outputs_of_another_case_are_refused(out: Path, cli: Cli) -> None:
    kept = out / "failures" / "psamask_forward" / "general" / "one~outputs.pb"
    node = proto.Node.FromString(kept.read_bytes())
    node.output[0].shape.dims[3] = 5
    del node.output[0].value_f[30:]
    kept.write_bytes(node.SerializeToString())
    shown = cli("diff", out, "one")
    assert (shown.code, shown.out) == (2, "")
    assert "y: float32 [1, 2, 3, 5], expected float32 [1, 2, 3, 6]" in shown.err


@pytest.mark.parametrize(
    ("op", "kernel", "words"),
    [
        ("roi_crop_forward", "roi_crop.py:xy_swapped", "explained by coordinates "),
        ("psamask_forward", "psamask.py:modes_swapped", "the result of psa_type = "),
        ("psamask_forward", "psamask.py:writes_nothing", "never written"),
    ],
)
def test_the_diagnosis_is_that_of_the_run(op: str, kernel: str, words: str, tmp_path: Path, cli: Cli) -> None:
    impl = f"python:{Path(faulty_kernels.__file__).parent}/{kernel}"
    assert cli("gen", op, "--suite", "demo", "--out", tmp_path / "cases").code == 0
    assert cli("run", tmp_path / "cases", "--impl", impl, "--out", tmp_path / "out", "--keep-outputs", "1MiB").code == 1
    records = map(json.loads, (tmp_path / "out" / "results.jsonl").read_text().splitlines())
    found = {r["case"]: r["outputs"] for r in records if r["status"] == "fail" and r["outputs"]}
    for case, outputs in found.items():
        told = [f"{name}: {each['diagnosis']['words']}" for name, each in outputs.items() if "diagnosis" in each]
        assert set(told) <= set(cli("diff", tmp_path / "out", case).out.splitlines())
    assert words in json.dumps(found)


def test_names_that_fit_nothing_are_refused(out: Path, cli: Cli) -> None:
    assert "no failing case of this run is called two" in cli("diff", out, "two").err
    path = out / "results.jsonl"
    passing = [path.read_text().replace('"fail"', '"pass"').replace("/one", f"/other{number}") for number in (1, 2)]
    path.write_text(path.read_text() + "".join(passing))
    (out / "summary.json").unlink()
    assert cli("diff", out, "other1").err == f"{CASE[:-3]}other1 didn't fail in this run: pass\n"
    many = cli("diff", out, "other")
    assert many.err == f"{CASE[:-3]}other1 didn't fail in this run: pass; other fits 2 cases, and none of them did\n"
    wrong = cli("diff", out, "one", "--output", "z")
    assert (wrong.code, wrong.out) == (2, "")
    assert "--output z: no such output" in wrong.err


def test_an_output_that_is_not_compared_is_reported(cli: Cli, tmp_path: Path) -> None:
    """Nothing was printed but the case."""
    gen = ("gen", "voxel_pooling_forward", "--suite", "boundary", "-k", "one_point")
    assert cli(*gen, "--out", tmp_path / "cases").code == 0
    (path,) = (tmp_path / "cases").rglob("*.pb")
    node = proto.Node.FromString(path.read_bytes())
    node.output[1].threshold_use = 0
    path.write_bytes(node.SerializeToString())
    (tmp_path / "kernel.py").write_text(
        "def sevens(op, inputs, outputs, params):\n    outputs['output_features'][...] = 7\n"
    )
    run = ("run", path, "--impl", f"python:{tmp_path / 'kernel.py'}:sevens", "--out", tmp_path / "out")
    assert cli(*run, "--keep-outputs", "1MiB").code == 1
    shown = cli("diff", tmp_path / "out", "one_point", "--output", "pos_memo")
    assert (shown.code, shown.out) == (2, "")
    assert shown.err == "--output pos_memo: not compared in this case, so there is no difference to show\n"
    assert cli("diff", tmp_path / "out", "one_point", "--output", "output_features").code == 1


def test_a_window_by_hand() -> None:
    expected = np.arange(2 * 3 * 5, dtype=np.float32).reshape(2, 3, 5)
    got = expected.copy()
    got[1, 2, 0] = 100
    got[1, 1, 1] = 22.5
    lines = list(diff_lines("y", expected, got, diagnose(expected, got, EXACT), 1))
    assert lines[0].startswith("y: 2 of 30 elements wrong")
    assert lines[1] == "y[1, 1:3, 0:2], the worst element is [1, 2, 0]"
    assert [line.split() for line in lines[2:]] == [
        ["expected", "2x2", "got", "2x2", "difference", "2x2"],
        ["20", "21", "20", "22.5*", "0", "1.5"],
        ["25", "26", "100*", "26", "75", "0"],
    ]
    assert list(diff_lines("y", expected, expected, None, 1)) == ["y: no difference"]


def test_differences_of_unsigned_integers_have_a_sign() -> None:
    expected, got = np.array([3, 250], np.uint8), np.array([3, 0], np.uint8)
    lines = list(diff_lines("y", expected, got, diagnose(expected, got, EXACT), 1))
    assert [line.split() for line in lines[2:]] == [
        ["expected", "2", "got", "2", "difference", "2"],
        ["3", "250", "3", "0*", "0", "-250"],
    ]
