"""The manifest of a folder: merged, sorted, never another's file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xxhash

from generators.casegen import journal
from generators.casegen.manifest import ForeignManifest, hash_mismatches, read_manifest, write_manifest
from schemas.casefiles.reading import read_case
from schemas.errors import InputError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(b"")


def test_entries_whose_files_are_gone_are_dropped(tmp_path: Path) -> None:
    touch(tmp_path, "a.pb", "b.pb")
    entries = {"op/s/a": {"files": ["a.pb"]}, "op/s/b": {"files": ["b.in0.bin", "b.pb"]}}
    write_manifest(tmp_path, entries)
    assert read_manifest(tmp_path) == {"op/s/a": {"files": ["a.pb"]}}
    touch(tmp_path, "b.in0.bin")
    write_manifest(tmp_path, entries)
    assert read_manifest(tmp_path) == entries


def test_the_bytes_do_not_depend_on_the_order_of_entries(tmp_path: Path) -> None:
    touch(tmp_path, "a.pb", "b.pb")
    entries = {"op/s/a": {"files": ["a.pb"], "bytes": 1}, "op/s/b": {"files": ["b.pb"], "bytes": 2}}
    write_manifest(tmp_path, entries)
    first = (tmp_path / "manifest.json").read_bytes()
    write_manifest(tmp_path, {key: dict(reversed(entries[key].items())) for key in reversed(entries)})
    assert (tmp_path / "manifest.json").read_bytes() == first
    assert json.loads(first)["cases"]["op/s/b"]["bytes"] == 2


def test_f12_the_entries_of_many_cases_at_work_are_read_in_one_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is listed once, not once per case."""
    listed = 0
    look = Path.iterdir

    def counted(self: Path) -> Iterator[Path]:
        nonlocal listed
        listed += 1
        return look(self)

    folder = tmp_path / "op/s"
    folder.mkdir(parents=True)
    journal.begin(tmp_path)
    for number in range(50):
        (folder / f"c{number}.pb").write_bytes(b"")
        journal.append(tmp_path, f"op/s/c{number}", {"expect": ["SUCCESS"]})
    journal.append(tmp_path, "op/s/c1", {"files": ["op/s/c1.pb"]})
    monkeypatch.setattr(Path, "iterdir", counted)
    entries = read_manifest(tmp_path)
    assert entries["op/s/c49"] == {"files": ["op/s/c49.pb"], "expect": ["SUCCESS"]}
    assert entries["op/s/c1"] == {"files": ["op/s/c1.pb"]}
    assert (len(entries), listed) == (50, 1)


def test_a_folder_without_a_manifest_has_no_entries(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) == {}


@pytest.mark.parametrize("text", ["[]", "{}", '{"cases": {}}', "{", '{"mluops": "1", "cases": []}', ""])
def test_a_foreign_file_of_that_name_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ForeignManifest, match=r"manifest\.json: not a manifest of mluops"):
        read_manifest(tmp_path)


def test_f12_a_pipe_of_that_name_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(ForeignManifest, match=r"manifest\.json: not a manifest of mluops: not a file"):
        read_manifest(tmp_path)


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
        ("op/../../a", {}, "cases['op/../../a']: the manifest is damaged: found 'op/../../a', expected a path below"),
        (
            "op/s/a",
            {"files": ["../x.pb"]},
            "cases['op/s/a'].files: the manifest is damaged: found '../x.pb', expected ",
        ),
        ("op/s/a", {"files": ["/x.pb"]}, "cases['op/s/a'].files: the manifest is damaged: found '/x.pb', expected a p"),
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


TEXT = """op_name: "op"
input { id: "x" shape { dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, 2] }
output { id: "y" shape { dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT }
"""


def test_f7_values_that_the_manifest_does_not_say_are_found(tmp_path: Path) -> None:
    """What `check` asks: whether a file is of the gen that the manifest tells of."""
    path = tmp_path / "a.prototxt"
    path.write_text(TEXT)
    right, wrong = (xxhash.xxh3_128_hexdigest(np.array(values, np.float32).tobytes()) for values in ([1, 2], [1, 3]))

    def found(*tensors: dict[str, str]) -> list[tuple[str, str]]:
        with read_case(path) as file:
            return list(hash_mismatches(file, {"tensors": list(tensors)}))

    assert found({"name": "x", "hash": right}, {"name": "y"}) == []
    assert found({"name": "x", "hash": wrong}, {"name": "y"}) == [
        ("x", f"x has hash {right}, the manifest says {wrong}")
    ]
    assert found({"name": "x", "hash": right}, {"name": "y", "hash": wrong}) == [
        ("y", f"y has hash no values, the manifest says {wrong}")
    ]
    assert found({"name": "x", "hash": right}) == [("", "2 tensors, the manifest says 1")]


def test_b12_the_manifest_is_on_the_disk_when_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    write_manifest(tmp_path, {})
    assert synced == [(tmp_path / "manifest.json").stat().st_ino, tmp_path.stat().st_ino]
