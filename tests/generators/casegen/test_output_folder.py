"""OUT of a gen: one writer at a time, its own files known after a kill, foreign ones never touched (F1, F4, F7)."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generators.casegen import journal, output_folder
from generators.casegen.generate import generate
from generators.casegen.manifest import agrees, read_manifest, read_stored
from generators.casegen.output_folder import open_output
from generators.casegen.write_options import FORMATS, WriteOptions
from generators.contracts.case import Case, TensorPlan
from generators.data.draw import Values
from schemas.criteria import Criterion
from schemas.errors import InputError, UnavailableError

CASE = Case(
    op="psamask_forward",
    suite="demo",
    name="a",
    params={"psa_type": 0, "h_mask": 1, "w_mask": 3},
    inputs=(TensorPlan("x", "float", "NHWC", (1, 1, 2, 3), values=Values("uniform", (-1, 1))),),
    outputs=(TensorPlan("y", "float", "NHWC", (1, 1, 2, 2)),),
    criteria={"y": (Criterion("diff3", 0.0),)},
)
FORKS = multiprocessing.get_context("forkserver")  # a process of its own that need not import everything anew
FORKS.set_forkserver_preload([__name__])
CASES = {name: replace(CASE, name=name) for name in "abc"}
FOLDER = "psamask_forward/demo"


def ids(*names: str) -> list[str]:
    return [CASES[name].id for name in names]


def write(options: WriteOptions, *names: str, seed: int = 1) -> list[str]:
    """A gen of these cases; what it said."""
    said: list[str] = []
    with open_output(options, ids(*names), said.append):
        for name in names:
            generate(replace(CASES[name], seed=seed), options)
    return said


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_entries_are_added_and_replaced(tmp_path: Path) -> None:
    options = WriteOptions(tmp_path)
    assert write(options, "a", "b") == []
    first = read_manifest(tmp_path)
    write(options, "b", "c", seed=2)
    second = read_manifest(tmp_path)
    assert list(second) == ids("a", "b", "c")
    assert second[CASES["a"].id] == first[CASES["a"].id]
    assert second[CASES["b"].id]["tensors"] != first[CASES["b"].id]["tensors"]
    assert files(tmp_path) == [".mluops.lock", "manifest.json", *(f"{FOLDER}/{name}.pb" for name in "abc")]


def killed(options: WriteOptions, name: str, seed: int, moment: str) -> None:
    """A gen of one case that is killed at some moment, in a process of its own."""

    def die(*_: object, **__: object) -> None:
        os._exit(9)

    module = "generators.casegen.case_writer.write_case"
    patch = pytest.MonkeyPatch()
    if moment == "before the files":
        patch.setattr(module, die)
    elif moment == "between the formats":
        from schemas.casefiles.reading import write_case

        def first_only(path: Path, *arguments: Any, **named: Any) -> Any:
            return write_case(path, *arguments, **named) if path.suffix == ".pb" else os._exit(9)

        patch.setattr(module, first_only)
    elif moment == "before the second line":
        first_line = journal.append

        def once(*line: Any) -> None:
            first_line(*line)
            patch.setattr(journal, "append", die)

        patch.setattr(journal, "append", once)
    elif moment == "before the manifest":
        patch.setattr(output_folder, "settle", die)
    elif moment == "before files are removed":
        patch.setattr(output_folder, "_remove_stale", die)
    elif moment == "before the manifest is written":
        patch.setattr(output_folder, "write_manifest", die)
    else:
        assert moment == "before the journal ends"
        patch.setattr(journal, "end", die)
    write(options, name, seed=seed)


MOMENTS = (
    "before the files", "before the second line", "before the manifest",
    "before files are removed", "before the manifest is written", "before the journal ends",
)  # fmt: skip


@pytest.mark.parametrize(
    ("format", "moment"),
    [("both", "between the formats"), *((form, moment) for form in FORMATS for moment in MOMENTS)],
)
def test_f7_after_a_kill_at_any_moment_the_next_gen_knows_its_own(tmp_path: Path, moment: str, format: str) -> None:
    """A second seed in some format over a first one in .pb, killed; then another case, and then the same again."""
    write(WriteOptions(tmp_path), "a", "b")
    second = WriteOptions(tmp_path, format)
    process = FORKS.Process(target=killed, args=(second, "a", 2, moment))
    process.start()
    process.join()
    assert process.exitcode == 9
    assert set(read_manifest(tmp_path)) == set(ids("a", "b"))  # also before anything is mended
    said = write(WriteOptions(tmp_path), "c")
    assert said[0] == f"{tmp_path}: the last gen into this folder was stopped; the manifest is brought up to date"
    assert set(files(tmp_path)) - {"manifest.json", ".mluops.lock"} == {
        file for entry in read_stored(tmp_path).values() for file in entry["files"]
    }
    for case, entry in read_stored(tmp_path).items():
        for file in entry["files"]:
            assert agrees(tmp_path / file, entry), (case, file)
    assert write(second, "a", seed=2)[:1] in ([], ["1 file of earlier cases of these names removed, such as "
                                                   f"{tmp_path}/{FOLDER}/a.pb"])  # fmt: skip
    assert read_stored(tmp_path)[CASES["a"].id]["files"] == [f"{FOLDER}/a{suffix}" for suffix in second.suffixes]


def test_f7_what_a_killed_gen_left_half_written_is_removed(tmp_path: Path) -> None:
    write(WriteOptions(tmp_path), "a")
    journal.begin(tmp_path)
    journal.append(tmp_path, CASES["a"].id, {"expect": ["SUCCESS"], "tensors": []})
    for folder in (tmp_path, tmp_path / FOLDER):
        (folder / ".mluops-0123456789abcdef.part").write_bytes(b"half")
    (tmp_path / FOLDER / ".mine.part").write_bytes(b"mine")
    write(WriteOptions(tmp_path), "b")
    assert files(tmp_path) == [
        ".mluops.lock", "manifest.json", f"{FOLDER}/.mine.part", f"{FOLDER}/a.pb", f"{FOLDER}/b.pb"
    ]  # fmt: skip


def test_f7_an_interrupted_gen_lists_what_is_whole(tmp_path: Path) -> None:
    options = WriteOptions(tmp_path)

    def interrupted() -> None:
        with open_output(options, ids("a", "b"), lambda text: None):
            generate(CASES["a"], options)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(read_stored(tmp_path)) == ids("a")
    assert not (tmp_path / journal.NAME).exists()


def test_a_cut_off_journal_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    journal.begin(tmp_path)
    journal.append(tmp_path, "op/s/a", {"files": ["a.pb"]})
    with (tmp_path / journal.NAME).open("a") as file:
        file.write('\n["op/s/b", {"fil')
    journal.append(tmp_path, "op/s/c", {"files": ["c.pb"]})
    with (tmp_path / journal.NAME).open("a") as file:
        file.write("\n[]\n5\n[1, {}]\n")
    assert list(journal.read(tmp_path)) == ["op/s/a", "op/s/c"]


def test_f1_a_journal_of_strangers_leads_nowhere(tmp_path: Path) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out"
    victim.mkdir()
    out.mkdir()
    for name in ("x.pb", ".mluops-0123456789abcdef.part"):
        (victim / name).write_text("mine")
    journal.begin(out)
    for case in ("../victim/x/y", "op/../../victim/x", "op/s/../../../victim/x"):
        journal.append(out, case, {"files": ["../victim/x.pb"], "tensors": []})
    write(WriteOptions(out), "a")
    assert files(victim) == [".mluops-0123456789abcdef.part", "x.pb"]
    assert list(read_stored(out)) == ids("a")


def test_f1_nothing_is_removed_that_the_manifest_does_not_name(tmp_path: Path) -> None:
    """External data of a case without a manifest: replaced, but left alone where the new case has none."""
    write(WriteOptions(tmp_path, inline_limit=0), "a")
    (tmp_path / "manifest.json").unlink()
    external = [name for name in files(tmp_path) if name.endswith(".bin")]
    assert external
    write(WriteOptions(tmp_path), "a")
    assert [name for name in files(tmp_path) if name.endswith(".bin")] == external


def test_f1_a_file_beside_a_signed_one_that_it_does_not_name_is_foreign(tmp_path: Path) -> None:
    write(WriteOptions(tmp_path), "a")
    (tmp_path / "manifest.json").unlink()
    mine = tmp_path / FOLDER / "a.in0.bin"
    mine.write_text("mine")
    with pytest.raises(InputError, match=r"a\.in0\.bin: not made by mluops, and a case would replace it"):
        write(WriteOptions(tmp_path), "a")
    assert mine.read_text() == "mine"


def test_an_unlisted_file_that_would_be_run_instead_is_refused(tmp_path: Path) -> None:
    write(WriteOptions(tmp_path), "a")
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"a\.pb: no manifest lists it, and it would be run instead"):
        write(WriteOptions(tmp_path, "prototxt"), "a")
    assert files(tmp_path) == [".mluops.lock", f"{FOLDER}/a.pb"]


def test_f1_the_lock_is_no_link_to_elsewhere(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / ".mluops.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnavailableError, match=r"\.mluops\.lock: can't write"):
        write(WriteOptions(out), "a")
    assert not (tmp_path / "elsewhere").exists()


def slowly(folder: Path, said: Any) -> None:
    options = WriteOptions(folder)
    with open_output(options, ids("a"), said.put):
        generate(CASES["a"], options)
        said.put("at work")
        time.sleep(1)
        said.put("done")


def test_f4_a_second_gen_waits_for_the_first(tmp_path: Path) -> None:
    said = FORKS.Queue()
    first = FORKS.Process(target=slowly, args=(tmp_path, said))
    first.start()
    assert said.get(timeout=60) == "at work"
    second = write(WriteOptions(tmp_path), "b")
    assert said.get(timeout=60) == "done"
    first.join()
    assert second == [f"{tmp_path}: another gen is writing into this folder; waiting until it ends"]
    assert list(json.loads((tmp_path / "manifest.json").read_text())["cases"]) == ids("a", "b")
