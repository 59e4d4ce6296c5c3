"""The manifest of a folder: merged, sorted, never another's file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from generators.casegen.manifest import ForeignManifest, read_manifest, update_manifest
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
    update_manifest(tmp_path, {"op/s/a": {"files": ["a.pb"]}, "op/s/b": {"files": ["b.in0.bin", "b.pb"]}})
    (tmp_path / "b.in0.bin").unlink()
    touch(tmp_path, "c.pb")
    update_manifest(tmp_path, {"op/s/c": {"files": ["c.pb"]}})
    assert list(read_manifest(tmp_path)) == ["op/s/a", "op/s/c"]


def test_the_bytes_do_not_depend_on_the_order_of_entries(tmp_path: Path) -> None:
    touch(tmp_path, "a.pb", "b.pb")
    entries = {"op/s/a": {"files": ["a.pb"], "bytes": 1}, "op/s/b": {"files": ["b.pb"], "bytes": 2}}
    update_manifest(tmp_path, entries)
    first = (tmp_path / "manifest.json").read_bytes()
    (tmp_path / "manifest.json").unlink()
    for key in ("op/s/b", "op/s/a"):
        update_manifest(tmp_path, {key: dict(reversed(entries[key].items()))})
    assert (tmp_path / "manifest.json").read_bytes() == first
    assert json.loads(first)["cases"]["op/s/b"]["bytes"] == 2


def test_a_folder_without_a_manifest_has_no_entries(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) == {}


@pytest.mark.parametrize("text", ["[]", "{}", '{"cases": {}}', "{", '{"mluops": "1", "cases": []}', ""])
def test_a_foreign_file_of_that_name_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text)
    with pytest.raises(ForeignManifest, match=r"manifest\.json: not a manifest of mluops"):
        update_manifest(tmp_path, {"a": {"files": []}})
    assert path.read_text() == text
    assert not list(tmp_path.glob(".manifest*"))


@pytest.mark.parametrize(
    ("case", "entry", "message"),
    [
        (
            "x",
            {"files": ["a.prototxt"]},
            "cases['x']: the manifest is damaged: found 'x', expected operator/suite/name",
        ),
        ("op/s/", {}, "cases['op/s/']: the manifest is damaged: found 'op/s/', expected operator/suite/name"),
        ("op/s/a", 5, "cases['op/s/a']: the manifest is damaged: found 5, expected a mapping"),
        ("op/s/a", {"files": 5}, "cases['op/s/a'].files: the manifest is damaged: found 5, expected a list of words"),
        ("op/s/a", {"files": [5]}, "cases['op/s/a'].files: the manifest is damaged: found [5], expected a list of w"),
        ("op/s/a", {"expect": "SUCCESS"}, "cases['op/s/a'].expect: the manifest is damaged: found 'SUCCESS', expected"),
        ("op/s/a", {"faults": None}, "cases['op/s/a'].faults: the manifest is damaged: found None, expected a list"),
        ("op/s/a", {"tensors": [{}]}, "cases['op/s/a'].tensors: the manifest is damaged: found [{}], expected a list"),
        ("op/s/a", {"tensors": {}}, "cases['op/s/a'].tensors: the manifest is damaged: found {}, expected a list of"),
    ],
)
def test_a_damaged_entry_is_told_with_its_place(tmp_path: Path, case: str, entry: object, message: str) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"mluops": "0.1.0", "cases": {case: entry}}))
    with pytest.raises(InputError, match=re.escape(f"manifest.json: {message}")) as caught:
        read_manifest(tmp_path)
    assert not isinstance(caught.value, ForeignManifest)
