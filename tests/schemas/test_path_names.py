"""Names and relative paths that others wrote: what may become part of a path."""

from __future__ import annotations

import pytest

from schemas.errors import InputError, SourceLocation
from schemas.path_names import check_name, check_relative_path


@pytest.mark.parametrize("name", ["demo", "a.b-c_1", "größe", "b c", "x" * 200, "~", "x..", "a:b"])
def test_names_that_may_be_part_of_a_path(name: str) -> None:
    assert check_name(name, "suite") == name


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "it is empty"),
        ("a/b", "separator"),
        ("a\\b", "separator"),
        ("/etc", "separator"),
        ("../x", "separator"),
        ("..", "starts with a dot"),
        (".", "starts with a dot"),
        (".git", "starts with a dot"),
        ("a\nb", "control characters"),
        ("a\0b", "control characters"),
        ("a\x1b[31m", "control characters"),
        ("a\u202eb", "control characters"),
        ("a\udc80", "control characters"),
        ("x" * 201, "201 bytes, at most 200"),
        ("ö" * 101, "202 bytes, at most 200"),
    ],
)
def test_f1_a6_b17_names_that_may_not(name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as raised:
        check_name(name, "suite", SourceLocation("spec.yaml", 3, 7))
    assert str(raised.value).startswith("spec.yaml:3:7: suite ")
    assert len(str(raised.value)) < 250
    assert str(raised.value).isprintable()


@pytest.mark.parametrize("path", ["a.bin", "data/a.bin", "a/../b.bin", "a/b/../../c.bin", ".hidden/a", "./a"])
def test_e10_paths_that_stay_inside(path: str) -> None:
    assert check_relative_path(path, "path", "the folder") == path


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("C:\\x", "is absolute"),
        ("c:x", "is absolute"),
        ("\\x", "is absolute"),
        ("..", "leads outside"),
        ("../in/a.bin", "leads outside"),
        ("a/../../in/a.bin", "leads outside"),
        ("a\\..\\..\\x", "leads outside"),
        ("a\0", "control characters"),
    ],
)
def test_paths_that_do_not(path: str, problem: str) -> None:
    with pytest.raises(InputError, match=f"{problem}, expected one below the folder"):
        check_relative_path(path, "path", "the folder")
