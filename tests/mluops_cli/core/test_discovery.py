from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.core.discovery import plan_cases
from schemas.errors import InputError
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import write_psamask


def ids(*paths: Path, **selection: Any) -> list[str]:
    return [case.id for case in plan_cases(paths, **selection)]


def test_the_id_comes_from_our_metadata_wherever_the_file_lies(tmp_path: Path) -> None:
    path = write_psamask(tmp_path / "deep" / "down", "abc", suite="network")
    assert ids(tmp_path) == ids(path) == ["psamask_forward/network/abc"]


def test_files_of_others_are_named_by_their_path_below_the_argument(tmp_path: Path) -> None:
    path = write_psamask(tmp_path / "a.b" / "c", "case_0.1", suite="")
    assert ids(tmp_path) == ["psamask_forward/external/a.b/c/case_0.1"]
    assert ids(tmp_path / "a.b") == ["psamask_forward/external/c/case_0.1"]
    assert ids(path) == ["psamask_forward/external/case_0.1"]


def test_a_stem_in_both_formats_runs_once_as_pb(tmp_path: Path) -> None:
    write_psamask(tmp_path, "twice", suffix=".prototxt")
    write_psamask(tmp_path, "twice", suffix=".pb")
    write_psamask(tmp_path, "text", suffix=".prototxt")
    cases = plan_cases([tmp_path])
    assert [Path(case.file).name for case in cases] == ["text.prototxt", "twice.pb"]
    assert [Path(case.file).name for case in plan_cases([tmp_path / "twice.prototxt"])] == ["twice.prototxt"]


def test_a_stem_named_in_both_formats_runs_once_as_pb_in_either_order(tmp_path: Path) -> None:
    both = [write_psamask(tmp_path, "twice", suffix=suffix) for suffix in (".prototxt", ".pb")]
    for paths in (both, both[::-1], [both[0], tmp_path]):
        assert [Path(case.file).name for case in plan_cases(paths)] == ["twice.pb"]


def test_linked_folders_are_searched_and_each_once(tmp_path: Path) -> None:
    write_psamask(tmp_path / "cases" / "z", "one", suite="")
    write_psamask(tmp_path / "elsewhere", "two", suite="")
    (tmp_path / "cases" / "a").symlink_to(tmp_path / "cases" / "z")
    (tmp_path / "cases" / "z" / "up").symlink_to(tmp_path / "cases")
    (tmp_path / "cases" / "b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path)
    found = ids(tmp_path / "cases")
    assert found == ["psamask_forward/external/b/two", "psamask_forward/external/z/one"]


def test_a_file_reached_twice_runs_once(tmp_path: Path) -> None:
    path = write_psamask(tmp_path / "sub", "one")
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    assert ids(tmp_path, path, tmp_path / "sub", tmp_path / "link") == ["psamask_forward/general/one"]


def test_what_a_run_keeps_in_its_out_folder_is_no_case(tmp_path: Path) -> None:
    write_psamask(tmp_path, "one")
    write_psamask(tmp_path / "results" / "failures", "kept")
    write_psamask(tmp_path / "other" / "results", "two")
    out = tmp_path / "results"
    assert [case.id for case in plan_cases([tmp_path], out=out)] == [
        "psamask_forward/general/one",
        "psamask_forward/general/two",
    ]
    assert [case.id for case in plan_cases([out / "failures"], out=out)] == ["psamask_forward/general/kept"]


def test_two_files_of_one_id_are_told_apart(tmp_path: Path) -> None:
    write_psamask(tmp_path / "a", "same")
    write_psamask(tmp_path / "b", "same")
    assert ids(tmp_path) == ["psamask_forward/general/same", "psamask_forward/general/same~2"]


def test_a14_numbers_of_equal_ids_follow_the_files_not_the_arguments(tmp_path: Path) -> None:
    first, second = write_psamask(tmp_path / "a", "same"), write_psamask(tmp_path / "b", "same")
    ids_of = [
        {case.file: case.id for case in plan_cases(paths)}
        for paths in ([first, second], [second, first], [second.parent, tmp_path], [tmp_path])
    ]
    expected = {str(first): "psamask_forward/general/same", str(second): "psamask_forward/general/same~2"}
    assert ids_of == [expected] * 4


def test_a14_names_of_files_of_others_do_not_depend_on_the_order_of_arguments(tmp_path: Path) -> None:
    write_psamask(tmp_path / "sub", "one", suite="")
    assert ids(tmp_path, tmp_path / "sub") == ids(tmp_path / "sub", tmp_path) == ["psamask_forward/external/sub/one"]


def test_b16_what_is_no_file_is_never_opened(tmp_path: Path) -> None:
    write_psamask(tmp_path, "one")
    os.mkfifo(tmp_path / "pipe.pb")
    (tmp_path / "folder.pb").mkdir()
    (tmp_path / "to_pipe.pb").symlink_to(tmp_path / "pipe.pb")
    (tmp_path / "gone.pb").symlink_to(tmp_path / "nothing.pb")
    assert ids(tmp_path) == ["unreadable/external/gone", "psamask_forward/general/one"]
    with pytest.raises(InputError, match=r"pipe\.pb is no file"):
        plan_cases([tmp_path / "pipe.pb"])


def test_b16_check_finds_the_files_that_run_finds(tmp_path: Path, cli: Cli) -> None:
    write_psamask(tmp_path / "elsewhere", "linked")
    write_psamask(tmp_path / "cases" / ".hidden", "dotted")
    write_psamask(tmp_path / "cases", ".dotted")
    write_psamask(tmp_path / "cases", "twice")
    write_psamask(tmp_path / "cases", "twice", suffix=".prototxt")
    (tmp_path / "cases" / "link").symlink_to(tmp_path / "elsewhere")
    assert ids(tmp_path / "cases") == ["psamask_forward/general/linked", "psamask_forward/general/twice"]
    report = json.loads(cli("check", tmp_path / "cases", "--json").out)
    assert report["files"] == 3  # both forms of the case that is there twice
    assert "dotted" not in str(report)


def test_f13_failures_that_a_run_has_kept_are_no_cases(tmp_path: Path) -> None:
    write_psamask(tmp_path, "one")
    for results in (tmp_path, tmp_path / "earlier"):
        write_psamask(results / "failures" / "psamask_forward" / "general", "kept")
        (results / "results.jsonl").touch()
    assert ids(tmp_path) == ["psamask_forward/general/one"]
    assert [case.id for case in plan_cases([tmp_path], out=tmp_path)] == ["psamask_forward/general/one"]
    assert ids(tmp_path / "failures") == ids(tmp_path / "earlier" / "failures") == ["psamask_forward/general/kept"]


def test_text_files_get_their_id_from_the_manifest(tmp_path: Path) -> None:
    folder = tmp_path / "psamask_forward" / "invalid"
    write_psamask(folder, "bad", suite="", suffix=".prototxt")
    entry = {"files": ["psamask_forward/invalid/bad.prototxt"], "expect": ["BAD_PARAM"], "faults": ["null_handle"]}
    manifest = {"mluops": "1", "cases": {"psamask_forward/invalid/bad": entry}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    for argument in (tmp_path, folder, folder / "bad.prototxt"):
        (case,) = plan_cases([argument])
        assert (case.id, case.suite) == ("psamask_forward/invalid/bad", "invalid")
        assert case.manifest_meta is not None
        assert (case.manifest_meta["expect"], case.manifest_meta["faults"]) == (["BAD_PARAM"], ["null_handle"])


def test_a_file_that_cannot_be_read_is_a_case_with_a_problem(tmp_path: Path) -> None:
    write_psamask(tmp_path, "good")
    bad = tmp_path / "torn.pb"
    bad.write_bytes((tmp_path / "good.pb").read_bytes()[:-9])
    good, torn = plan_cases([tmp_path])
    assert good.problem is None
    assert torn.id == "unreadable/external/torn"
    assert torn.problem is not None
    assert "torn.pb" in torn.problem


def test_selection(tmp_path: Path) -> None:
    for suite in ("network", "general"):
        for number in range(3):
            write_psamask(tmp_path / suite, f"case{number}", suite=suite)
    assert len(ids(tmp_path)) == 6
    assert ids(tmp_path, suites=["network"], keywords="not case1") == [
        "psamask_forward/network/case0",
        "psamask_forward/network/case2",
    ]


def test_a_suite_that_neither_a_file_nor_an_operator_knows_is_refused(tmp_path: Path) -> None:
    write_psamask(tmp_path, "case", suite="my_own")
    assert ids(tmp_path, suites=["my_own"]) == ["psamask_forward/my_own/case"]
    assert ids(tmp_path, suites=["network"]) == []
    with pytest.raises(InputError, match="unknown suite 'my_wn': did you mean 'my_own'"):
        ids(tmp_path, suites=["my_own", "my_wn"])


def test_size_counts_the_bytes_of_the_tensors(tmp_path: Path) -> None:
    write_psamask(tmp_path, "case")
    (case,) = plan_cases([tmp_path])
    assert case.size == 4 * (1 * 2 * 3 * 9 + 1 * 2 * 3 * 6)


@pytest.mark.parametrize("name", ["missing", "missing.pb", "notes.txt"])
def test_paths_that_are_no_cases_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no case")
    with pytest.raises(InputError, match=name):
        plan_cases([tmp_path / name])


def test_a_damaged_manifest_is_an_error_with_its_place_and_a_foreign_one_none(tmp_path: Path) -> None:
    write_psamask(tmp_path, "a", suffix=".prototxt", suite="")
    manifest = tmp_path / "manifest.json"
    manifest.write_text('{"mluops": "0.1.0", "cases": {"x": {"files": ["a.prototxt"]}}}')
    with pytest.raises(InputError, match=r"manifest\.json: cases\['x'\]: the manifest is damaged"):
        plan_cases([tmp_path])
    manifest.write_text('{"name": "a web app"}')
    assert ids(tmp_path) == ["psamask_forward/external/a"]
