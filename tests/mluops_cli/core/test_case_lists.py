"""Lists of case ids in files, and what `mluops run --select` makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mluops_cli.core.case_lists import case_list, read_case_list
from mluops_cli.core.discovery import plan_cases
from schemas.errors import InputError
from tests.mluops_cli.execution.conftest import SUITE, write_psamask


def test_remarks_and_empty_lines_are_no_cases(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# a remark\n\n a/b/c \na/b/d/e # why\na/b/c\n")
    assert read_case_list(path) == {"a/b/c": 3, "a/b/d/e": 4}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("".join(case_list(["a/b/c", "a/b/d"], ["2 of 3 cases"])))
    assert list(read_case_list(path)) == ["a/b/c", "a/b/d"]


def test_only_listed_cases_are_planned(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        write_psamask(tmp_path, name)
    path = tmp_path / "list.txt"
    path.write_text(f"{SUITE}/three\n{SUITE}/one\n")
    assert [case.id for case in plan_cases([tmp_path], listed=path)] == [f"{SUITE}/one", f"{SUITE}/three"]
    assert [case.id for case in plan_cases([tmp_path], listed=path, keywords="three")] == [f"{SUITE}/three"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("psamask_forward/one\n", r"list\.txt:1: 'psamask_forward/one' is no case id, expected operator/suite/name"),
        (f"\n{SUITE}/oen\n", rf"list\.txt:2: no case {SUITE}/oen at the paths: did you mean '{SUITE}/one'\?"),
        ("a/b/c\n", r"list\.txt:1: no case a/b/c at the paths$"),
        (None, r"list\.txt: can't be read: No such file or directory"),
    ],
)
def test_lists_that_are_wrong(tmp_path: Path, text: str | None, message: str) -> None:
    write_psamask(tmp_path, "one")
    if text is not None:
        (tmp_path / "list.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        plan_cases([tmp_path], listed=tmp_path / "list.txt")
