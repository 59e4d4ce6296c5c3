"""A finished run read back, and the JSON Schemas of what is read."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.core.record import Record, read_record
from mluops_cli.results.finished import judged, no_collection, read_run, worst
from schemas.errors import InputError
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import write_psamask
from tests.mluops_cli.reports.sample import criterion, mixed_records, record, write_run
from tools.result_schemas import FOLDER, Summary, built


def test_counts_and_verdict(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, mixed_records()))
    assert run.tally.counts == {"pass": 300, "fail": 3, "crash": 1, "timeout": 1, "waived": 1, "mistrusted": 1}
    assert [each.status for each in run.failing] == ["fail", "fail", "fail", "crash", "timeout"]
    assert (run.verdict, run.exit_code, run.complete) == ("fail", 1, True)
    assert run.matrix["psamask_forward", "boundary"] == {"pass": 7, "fail": 3}


@pytest.mark.parametrize(
    ("records", "summary", "verdict"),
    [
        ([record("op/s/a")], {}, "pass"),
        ([record("op/s/a", "mistrusted"), record("op/s/b")], {}, "pass"),
        ([record("op/s/a", "mistrusted"), record("op/s/b")], {"strict": True}, "fail"),
        ([record("op/s/a", "skip")], {}, "fail"),
        ([record("op/s/a")], {"interrupted": True}, "incomplete"),
        ([record("op/s/a")], {"not_run": 1}, "incomplete"),
        ([], {}, "fail"),
    ],
)
def test_verdicts(tmp_path: Path, records: list[dict[str, object]], summary: dict[str, object], verdict: str) -> None:
    assert read_run(write_run(tmp_path, records, **summary)).verdict == verdict


def test_the_worst_criterion() -> None:
    near, far = criterion(2.9e-3, 3e-3), criterion(1e-3, 1.0, name="diff2")
    made = read_record(
        record("op/s/a", outputs={"y": {"criteria": [far, near]}, "z": {"criteria": [criterion(None, 1e-3)]}})
    )
    assert str(worst(made)) == "z diff1 not computable (threshold 0.001)"
    made.outputs.pop("z")
    assert str(worst(made)) == "y diff1 0.0029 <= 0.003"
    made.outputs["y"]["criteria"].append(criterion(None, 1.0, judged=False, passed=True))
    assert len(list(judged(made))) == 2
    assert worst(read_record(record("op/s/a", "crash"))) is None


def test_keys_in_any_order_some_missing_some_of_a_newer_version() -> None:
    line = read_record(record("op/s/a", "fail", seconds=0.5)).as_json()
    turned = dict(reversed(line.items()))
    assert read_record(line) == read_record(turned) == read_record(line | {"newer": 1})
    assert read_record({name: value for name, value in line.items() if name != "seconds"}).seconds is None


def test_collection_goes_on_as_before() -> None:
    assert gc.isenabled()
    with no_collection():
        assert not gc.isenabled()
        with no_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_equal_texts_of_records_are_kept_once(tmp_path: Path) -> None:
    tensors = {"x": {"role": "input", "dtype": "bfloat16", "layout": "NHWC", "dims": [2, 3]}}
    first, second = read_run(
        write_run(
            tmp_path,
            [
                record(case, operator_status="SUCCESS", tensors=tensors, perf={"timer": "host", "peaks": "MLU370-X8"})
                for case in ("op/s/a", "op/s/b")
            ],
        )
    ).records
    assert first.perf is not None
    assert second.perf is not None
    assert first.operator_status is second.operator_status
    assert first.tensors == second.tensors == tensors
    for name in ("role", "dtype", "layout"):
        assert first.tensors["x"][name] is second.tensors["x"][name]
    for name in ("timer", "peaks"):
        assert first.perf[name] is second.perf[name]
    one, other = (next(judged(each)).criterion for each in (first, second))
    assert one["name"] is other["name"]


def test_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no results.jsonl: expected the --out folder of a `mluops run`"):
        read_run(tmp_path)


def test_two_results_of_a_case(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two results of op/s/a, expected one"):
        read_run(write_run(tmp_path, [record("op/s/a"), record("op/s/a", "fail")]))


def test_an_unknown_status(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run, status: invalid enum value 'passed', expected one of fail, crash"):
        read_run(write_run(tmp_path, [record("op/s/a", "passed")]))


def test_a_broken_summary(tmp_path: Path) -> None:
    write_run(tmp_path, [record("op/s/a")])
    for text in ("{", "[]"):
        (tmp_path / "summary.json").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="not a summary of mluops run"):
            read_run(tmp_path)


def test_a_last_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    write_run(tmp_path, [record("op/s/a"), record("op/s/b")])
    path = tmp_path / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"summary\.json: counts: has pass 2 times and results\.jsonl 1 times"):
        read_run(tmp_path)
    (tmp_path / "summary.json").unlink()  # a run that was cut off has none
    run = read_run(tmp_path)
    assert ([each.case for each in run.records], run.complete) == (["op/s/a"], False)


@pytest.mark.parametrize("command", ["report", "gate", "replay", "compare"])
def test_f2_lost_and_added_results_are_found_by_every_command(command: str, tmp_path: Path, cli: Cli) -> None:
    out = write_run(tmp_path / "out", [record("op/s/a"), record("op/s/b", "fail")])
    path, whole = out / "results.jsonl", (out / "results.jsonl").read_text(encoding="utf-8")
    arguments = (command, out, out) if command == "compare" else (command, out)
    for text, told in (
        (whole.splitlines(keepends=True)[0], "fail 1 times and results.jsonl 0 times"),
        (whole + json.dumps(record("op/s/c", "skip")) + "\n", "skip 0 times and results.jsonl 1 times"),
        (whole.replace('"fail"', '"pass"'), "pass 1 times and results.jsonl 2 times"),
    ):
        path.write_text(text, encoding="utf-8")
        ran = cli(*arguments)
        assert ran.code == 2
        assert told in ran.err
    wrong: tuple[Any, ...] = ([], {"pass": "x"})
    for counts in wrong:
        write_run(out, [record("op/s/a")], counts=counts)
        assert "expected a number for each status" in cli(*arguments).err


@pytest.mark.parametrize("name", ["results.jsonl", "summary.json"])
@pytest.mark.parametrize("command", ["report", "gate", "replay", "compare", "run"])
def test_f12_a_pipe_in_the_place_of_a_run_s_file_is_not_opened(
    command: str, name: str, tmp_path: Path, cli: Cli
) -> None:
    out = write_run(tmp_path / "out", [record("op/s/a", "fail")])
    (out / name).unlink()
    os.mkfifo(out / name)
    arguments = {"compare": (out, out), "run": (write_psamask(tmp_path, "case"), "--out", out)}.get(command, (out,))
    ran = cli(command, *arguments)
    assert ran.code == 2
    assert str(out) in ran.err


def test_f2_waivers_change_no_counts(tmp_path: Path) -> None:
    out = write_run(tmp_path, [record("op/s/a", "fail")])

    def waive(found: Record) -> Record:
        found.status = "waived"
        return found

    assert read_run(out, waive).tally.counts == {"waived": 1}


def test_the_schemas_are_fresh() -> None:
    assert {name: (FOLDER / name).read_text(encoding="utf-8") for name in built()} == built(), "make schemas"


def test_the_summary_of_the_sample_is_one(tmp_path: Path) -> None:
    write_run(tmp_path, mixed_records())
    Summary.model_validate(json.loads((tmp_path / "summary.json").read_text(encoding="utf-8")))
