"""The manifest of a folder: merged, sorted, never another's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generators.manifest import read_manifest, update_manifest
from schemas.errors import InputError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(b"")


def test_entries_are_added_and_replaced(tmp_path: Path) -> None:
    touch(tmp_path, "a.pb", "b.pb")
    update_manifest(tmp_path, {"op/s/b": {"files": ["b.pb"], "bytes": 1}})
    update_manifest(tmp_path, {"op/s/a": {"files": ["a.pb"]}, "op/s/b": {"files": ["b.pb"], "bytes": 2}})
    assert read_manifest(tmp_path) == {"op/s/a": {"files": ["a.pb"]}, "op/s/b": {"files": ["b.pb"], "bytes": 2}}


def test_entries_whose_files_are_gone_are_dropped(tmp_path: Path) -> None:
    touch(tmp_path, "a.pb", "b.pb", "b.in0.bin")
    update_manifest(tmp_path, {"a": {"files": ["a.pb"]}, "b": {"files": ["b.in0.bin", "b.pb"]}})
    (tmp_path / "b.in0.bin").unlink()
    touch(tmp_path, "c.pb")
    update_manifest(tmp_path, {"c": {"files": ["c.pb"]}})
    assert list(read_manifest(tmp_path)) == ["a", "c"]


def test_the_bytes_do_not_depend_on_the_order_of_entries(tmp_path: Path) -> None:
    touch(tmp_path, "a.pb", "b.pb")
    entries = {"a": {"files": ["a.pb"], "bytes": 1}, "b": {"files": ["b.pb"], "bytes": 2}}
    update_manifest(tmp_path, entries)
    first = (tmp_path / "manifest.json").read_bytes()
    (tmp_path / "manifest.json").unlink()
    for key in ("b", "a"):
        update_manifest(tmp_path, {key: dict(reversed(entries[key].items()))})
    assert (tmp_path / "manifest.json").read_bytes() == first
    assert json.loads(first)["cases"]["b"]["bytes"] == 2


def test_a_folder_without_a_manifest_has_no_entries(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) == {}


@pytest.mark.parametrize("text", ["[]", "{}", '{"cases": {}}', "{", '{"mluops": "1", "cases": []}', ""])
def test_a_foreign_file_of_that_name_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"manifest\.json: not a manifest of mluops"):
        update_manifest(tmp_path, {"a": {"files": []}})
    assert path.read_text() == text
    assert not list(tmp_path.glob(".manifest*"))
