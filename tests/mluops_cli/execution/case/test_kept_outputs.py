"""--keep-outputs: what a failing case computed, as a case file under OUT/failures; and cases kept with side files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.main import main
from schemas.casefiles.reading import read_case, write_case
from tests.mluops_cli.execution.conftest import PLUGIN, add_tensor, case_node, write_psamask

SEVENS = "def sevens(op, inputs, outputs, params):\n    outputs['y'][...] = 7 if inputs['x'].max() < 100 else 8\n"
KEPT = "failures/psamask_forward/general"


@pytest.fixture
def sevens(tmp_path: Path) -> str:
    """An implementation whose outputs are 7 all over, and 8 where an input is large."""
    (tmp_path / "sevens.py").write_text(SEVENS, encoding="utf-8")
    return f"python:{tmp_path / 'sevens.py'}:sevens"


def side_case(folder: Path, name: str, value: float, suffix: str = ".pb") -> Path:
    """A case whose input lies in data/x.bin below its folder; two cases name it alike."""
    node = case_node(suite="general", name=name)
    node.psamask_forward_param.psa_type = 0
    node.psamask_forward_param.h_mask = node.psamask_forward_param.w_mask = 3
    add_tensor(node.input, "x", (1, 2, 3, 9)).path = "data/x.bin"
    add_tensor(node.output, "y", (1, 2, 3, 6))
    (folder / "data").mkdir(parents=True)
    np.full(54, value, np.float32).tofile(folder / "data" / "x.bin")
    write_case(folder / f"{name}{suffix}", node, [None], [None])
    return folder / f"{name}{suffix}"


def test_outputs_of_a_failing_case_are_kept(tmp_path: Path, run: Any, sevens: str) -> None:
    write_psamask(tmp_path / "cases", "one")
    ran = run(tmp_path / "cases", "--impl", sevens, "--keep-outputs", "1MiB")
    (record,) = ran.records.values()
    path = tmp_path / "out" / KEPT / "one~outputs.pb"
    assert (record["status"], record["outputs_kept"]) == ("fail", str(path))
    with read_case(path) as file:
        assert file.meta is not None
        assert (file.op, file.meta.name) == ("psamask_forward", "one~outputs")
        assert file.inputs[0].source is None
        np.testing.assert_array_equal(file.outputs[0].array(), np.full((1, 2, 3, 6), 7, np.float32))
    assert (tmp_path / "out" / KEPT / "one.pb").is_file()


def test_nothing_is_kept_of_large_ones_right_ones_or_unasked(tmp_path: Path, run: Any, sevens: str) -> None:
    write_psamask(tmp_path / "cases", "one")
    large = run(tmp_path / "cases", "--impl", sevens, "--keep-outputs", "100")
    assert large.records["psamask_forward/general/one"]["outputs_kept"] == (
        "not kept: 144 bytes, more than --keep-outputs 100"
    )
    unasked = run(tmp_path / "cases", "--impl", sevens)
    right = run(tmp_path / "cases", "--impl", f"python:{PLUGIN}:right", "--keep-outputs", "1MiB")
    assert [each["outputs_kept"] for ran in (unasked, right) for each in ran.records.values()] == ["", ""]
    assert not list(tmp_path.rglob("*~outputs*"))


def test_a_later_run_forgets_the_outputs(tmp_path: Path, run: Any, sevens: str) -> None:
    write_psamask(tmp_path / "cases", "one")
    for _ in range(2):  # the second run's must survive that the first's are taken away
        run(tmp_path / "cases", "--impl", sevens, "--keep-outputs", "144")
        assert [path.name for path in tmp_path.rglob("*~outputs*")] == ["one~outputs.pb"]
    run(tmp_path / "cases", "--impl", f"python:{PLUGIN}:right")
    assert not [path for path in (tmp_path / "out" / "failures").rglob("*") if path.is_file()]


@pytest.mark.parametrize("suffix", [".pb", ".prototxt"])
def test_cases_with_side_files_can_be_replayed_when_they_are_gone(
    tmp_path: Path, run: Any, sevens: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    side_case(tmp_path / "cases" / "a", "small", 1.0, suffix)
    side_case(tmp_path / "cases" / "b", "large", 200.0, suffix)
    first = run(tmp_path / "cases", "--impl", sevens, "-j", "1")
    assert set(first.statuses.values()) == {"fail"}
    shutil.rmtree(tmp_path / "cases")
    for name, value in (("small", 1.0), ("large", 200.0)):
        (kept,) = (tmp_path / "out").rglob(f"*{name}{suffix}")
        with read_case(kept) as file:
            np.testing.assert_array_equal(file.inputs[0].array(), np.full((1, 2, 3, 9), value, np.float32))
    with pytest.raises(SystemExit) as stop:
        main(["replay", str(tmp_path / "out")])
    told = capsys.readouterr().out
    assert stop.value.code == 1
    assert told.splitlines()[-1] == "0 fixed, 2 still failing"
    assert told.count("(fail)") == 2


def test_a_replayed_case_without_metadata_draws_the_same_values(tmp_path: Path, run: Any) -> None:
    """Its id, which the values depend on, is made of its file's name; in OUT/failures its folder's comes before."""
    node = case_node(suite="")
    node.psamask_forward_param.psa_type = 0
    node.psamask_forward_param.h_mask = node.psamask_forward_param.w_mask = 3
    random = add_tensor(node.input, "x", (1, 2, 3, 9)).random_data
    random.distribution, random.lower_bound, random.upper_bound = 1, 0.0, 1.0
    add_tensor(node.output, "y", (1, 2, 3, 6))
    (tmp_path / "cases" / "below").mkdir(parents=True)
    write_case(tmp_path / "cases" / "below" / "drawn.pb", node, [None], [None])
    noting = f"open({str(tmp_path / 'sums')!r}, 'a').write(repr(float(inputs['x'].sum())) + '\\n')"
    text = f"def noting(op, inputs, outputs, params):\n    {noting}\n    outputs['y'][...] = 7\n"
    (tmp_path / "noting.py").write_text(text, encoding="utf-8")
    ran = run(tmp_path / "cases", "--impl", f"python:{tmp_path / 'noting.py'}:noting")
    assert ran.statuses == {"psamask_forward/external/below/drawn": "fail"}
    shutil.rmtree(tmp_path / "cases")
    with pytest.raises(SystemExit):
        main(["replay", str(tmp_path / "out")])
    first, second = (tmp_path / "sums").read_text(encoding="utf-8").split()
    assert first == second


def test_a_later_run_forgets_side_files_and_leaves_what_is_not_ours(tmp_path: Path, run: Any, sevens: str) -> None:
    case = side_case(tmp_path / "cases", "one", 1.0)
    run(case, "--impl", sevens)
    foreign = [tmp_path / "out" / KEPT / "mine" / "other.pb", tmp_path / "out" / KEPT / "notes.txt"]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("x", encoding="utf-8")
    run(case, "--impl", f"python:{PLUGIN}:right")
    found = (path for path in (tmp_path / "out" / "failures").rglob("*") if path.is_file())
    assert sorted(found) == sorted(foreign)
