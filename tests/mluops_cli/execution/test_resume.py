"""--resume: what is kept of an earlier run, what runs again because it has changed, and who may write."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.core.discovery import plan_cases
from mluops_cli.core.fingerprint import hash_case
from schemas.casefiles.reading import write_case
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import PLUGIN, case_node, write_psamask

RIGHT = f"python:{PLUGIN}:right"
CASE = "psamask_forward/general/case{}"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    for number in range(4):
        write_psamask(tmp_path / "cases", f"case{number}", seed=number)
    return tmp_path / "cases"


def marked(out: Path) -> None:
    """Mark all results, so that those that are kept are known from new ones."""
    path = out / "results.jsonl"
    records = [json.loads(line) | {"reason": "from before"} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def kept(ran: Any) -> set[str]:
    return {case[-1] for case, record in ran.records.items() if record["reason"] == "from before"}


def test_it_goes_on_and_repairs(cases: Path, tmp_path: Path, run: Any) -> None:
    arguments = (cases, "--impl", RIGHT, "-j", "1")
    whole = run(*arguments)
    marked(tmp_path / "out")
    results = tmp_path / "out" / "results.jsonl"
    first, second, third, _ = results.read_text().splitlines(keepends=True)
    results.write_text(first + second + third[:30])
    ran = run(*arguments, "--resume")
    assert (ran.code, ran.statuses) == (0, whole.statuses)
    assert len(kept(ran)) == 2
    assert ran.summary["counts"] == {"pass": 4}
    # Nothing left to do: the verdict is that of all records.
    assert run(*arguments, "--resume").code == 0
    assert "not of" in run(cases, "--impl", "reference", "--resume").err
    results.unlink()
    assert len(run(*arguments, "--resume").records) == 4


def test_failures_of_before_count(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "bad", h_mask=5)
    write_psamask(tmp_path / "cases", "good")
    arguments = (tmp_path / "cases", "--impl", f"python:{PLUGIN}:writes_nothing")
    assert run(*arguments).code == 1
    assert run(*arguments, "--resume").code == 1


def test_a13_a_case_that_was_generated_anew_runs_again(cases: Path, tmp_path: Path, run: Any) -> None:
    assert run(cases, "--impl", RIGHT).code == 0
    marked(tmp_path / "out")
    write_psamask(cases, "case1", seed=99)
    ran = run(cases, "--impl", RIGHT, "--resume")
    assert (kept(ran), len(ran.records)) == ({"0", "2", "3"}, 4)
    assert "3 of them finished before" in ran.out
    assert "1 case of before runs again: a case file has changed\n" in ran.out


@pytest.mark.parametrize("options", [["--repeat", "2"], ["--timeout", "99"], ["--loose-nan"], ["--threads", "2"]])
def test_a13_other_options_run_everything_again(options: list[str], cases: Path, tmp_path: Path, run: Any) -> None:
    assert run(cases, "--impl", RIGHT).code == 0
    marked(tmp_path / "out")
    ran = run(cases, "--impl", RIGHT, "--resume", *options)
    assert (kept(ran), len(ran.records)) == (set(), 4)
    assert "4 cases of before run again: the options have changed\n" in ran.out


def test_a13_results_of_older_versions_run_again(cases: Path, tmp_path: Path, run: Any) -> None:
    run(cases, "--impl", RIGHT)
    marked(tmp_path / "out")
    path = tmp_path / "out" / "results.jsonl"
    first, *rest = path.read_text().splitlines()
    old = {name: value for name, value in json.loads(first).items() if not name.endswith("_hash")}
    path.write_text("\n".join([json.dumps(old), *rest]) + "\n")
    ran = run(cases, "--impl", RIGHT, "--resume")
    assert len(kept(ran)) == 3
    assert "1 case of before runs again: a result doesn't say what it was made from\n" in ran.out


def external(folder: Path, values: float) -> Path:
    """A case whose input lies in a file beside it."""
    path = folder / "case.pb"
    node = case_node("alien_op", suite="general")
    for tensors, name in ((node.input, "in"), (node.output, "out")):
        tensor = tensors.add(id=name, dtype=2, layout=2)
        tensor.shape.dims.append(1000)
    folder.mkdir(exist_ok=True)
    array = np.full(1000, values, np.float32)
    write_case(path, node, [array], [array], inline_limit=100)
    return path


def test_a13_external_data_are_part_of_the_hash(tmp_path: Path) -> None:
    path = external(tmp_path / "a", 1.0)
    (case,) = plan_cases([path])
    assert len(case.external) == 2
    before = hash_case(case.files)
    file = Path(case.external[0])
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert before != hash_case(case.files) != ""
    file.unlink()
    assert hash_case(case.files) == ""


def test_f8_external_data_of_the_wrong_size_are_not_hashed(tmp_path: Path) -> None:
    """A sparse file of 1 TiB kept run reading until its time was over, and then the supervisor."""
    path = external(tmp_path / "a", 1.0)
    (before,) = plan_cases([path])
    os.truncate(before.external[0], 1 << 40)
    (case,) = plan_cases([path])
    assert case.external == before.external[1:]
    assert hash_case(case.hashed_files) != ""


@pytest.mark.parametrize("suffix", [".pb", ".prototxt"])
def test_f8_a_case_file_that_no_command_reads_is_not_hashed(tmp_path: Path, suffix: str, cli: Cli) -> None:
    (tmp_path / f"x{suffix}").touch()
    os.truncate(tmp_path / f"x{suffix}", 1 << 40)
    ran = cli("run", tmp_path / f"x{suffix}", "--impl", "reference", "--out", tmp_path / "out")
    assert ran.code == 2
    assert "1099511627776 bytes: " in ran.out


def test_the_hash_knows_the_manifest_and_where_files_end(tmp_path: Path) -> None:
    for name, data in {"a": b"12", "b": b"3", "c": b"1", "d": b"23"}.items():
        (tmp_path / name).write_bytes(data)
    a, b, c, d = (str(tmp_path / name) for name in "abcd")
    assert len({hash_case([a, b]), hash_case([c, d]), hash_case([b, a]), hash_case([a, b], {"expect": []})}) == 4


def test_f14_several_results_of_a_case_are_made_one(cases: Path, tmp_path: Path, run: Any) -> None:
    run(cases, "--impl", RIGHT)
    marked(tmp_path / "out")
    path = tmp_path / "out" / "results.jsonl"
    first = path.read_text().splitlines(keepends=True)[0]
    path.write_text(path.read_text() + first + first)
    ran = run(cases, "--impl", RIGHT, "--resume")  # the fixture sees to it that no case is there twice
    assert (len(ran.records), len(kept(ran)), ran.summary["not_run"]) == (4, 3, 0)
    assert "1 case of before runs again: a case has several results\n" in ran.out


@pytest.mark.parametrize("options", [[], ["--resume"]])
def test_a16_a_second_run_is_refused_and_changes_nothing(options: list[str], cases: Path, run: Any) -> None:
    out = cases.parent / "out"
    out.mkdir()
    path = out / "results.jsonl"
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write('{"case": "the line that the first run is wri')
        file.flush()
        before = path.read_bytes()
        with pytest.raises(json.JSONDecodeError):  # the fixture reads the results, which are not complete
            run(cases, "--impl", RIGHT, *options)
        assert path.read_bytes() == before


def test_two_runs_into_one_folder(cases: Path, run: Any) -> None:
    out = cases.parent / "out"
    out.mkdir()
    with (out / "results.jsonl").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ran = run(cases, "--impl", RIGHT)
    assert ran.code == 2
    assert "another mluops run is writing to" in ran.err


def test_the_lock_holds_while_results_are_reduced(cases: Path, tmp_path: Path, run: Any) -> None:
    """--resume may put another file in the place of results.jsonl: that one is locked as well."""
    from mluops_cli.core.events import Loaded
    from mluops_cli.results.jsonl import JsonResults
    from schemas.errors import InputError

    out = tmp_path / "out"
    run(cases, "--impl", RIGHT)
    results = JsonResults(out)
    results.keep_only({CASE.format(2)})
    for _ in range(2):
        with pytest.raises(InputError, match="another mluops run"):
            JsonResults(out)
        results(Loaded())
    assert [json.loads(line)["case"] for line in (out / "results.jsonl").read_text().splitlines()] == [CASE.format(2)]
    results.close()
    JsonResults(out).close()


WRONG: dict[str, Any] = {"outputs": [], "tags": "x", "latency_us": "fast", "status": 3, "reason": None, "perf": [1]}


@pytest.mark.parametrize("key", list(WRONG))
def test_b11_a_record_of_a_wrong_type(key: str, cases: Path, tmp_path: Path, run: Any, cli: Cli) -> None:
    run(cases, "--impl", RIGHT)
    path = tmp_path / "out" / "results.jsonl"
    first, second, *rest = path.read_text().splitlines()
    path.write_text("\n".join([first, json.dumps(json.loads(second) | {key: WRONG[key]}), *rest]) + "\n")
    for command in ("report", "replay", "gate"):
        ran = cli(command, tmp_path / "out")
        assert ran.code == 2
        assert f"{path}:2: expected a result of mluops run, {key}: expected " in ran.err
