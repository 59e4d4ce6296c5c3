"""Values from files: .npy and raw, their checks, and that the case's digest follows the content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from generators.casegen.case_data import draw_inputs
from generators.casegen.node import digest, recipe
from generators.casegen.size_estimate import planned_size
from generators.casegen.write_options import WriteOptions
from generators.contracts.case import Case
from generators.data.draw import draw, parse_values
from generators.operator_registry import operator_named
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from schemas.errors import InputError

VALUES = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4) / 7


def expanded(folder: Path, file: str, more: str = "") -> list[Case]:
    """A case whose input [1, 2, 3, 4] comes from the file; the `dist` is in line 6, column 18."""
    path = folder / "specs" / "a.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "op: psamask_forward\nsuites:\n  s:\n    - name: a\n"
        "      inputs: {x: {shape: [1, 2, 3, 4],\n"
        f"           dist: {{file: {file}{more}}}}}}}\n"
        "      params: {psa_type: 0, h_mask: 2, w_mask: 2}\n"
    )
    return list(expand(load_spec(path)))


def drawn(case: Case) -> Any:
    return draw_inputs(case, operator_named(case.op))["x"]


def refusal(folder: Path, file: str) -> str:
    with pytest.raises(InputError) as caught:
        expanded(folder, file)
    text = str(caught.value)
    place = f"{folder}{os.sep}specs{os.sep}a.yaml:6:18: suites.s[0].inputs.x.dist: "
    assert text.startswith(place)
    return text.removeprefix(place).replace(f"{folder}{os.sep}", "")


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_npy_file_beside_the_spec(tmp_path: Path, order: Any) -> None:
    (tmp_path / "specs").mkdir()
    np.save(tmp_path / "specs" / "x.npy", np.asarray(VALUES, order=order))
    (case,) = expanded(tmp_path, "x.npy")
    assert (drawn(case) == VALUES).all()
    assert drawn(case).flags.writeable
    assert drawn(case).flags.c_contiguous


def test_paths_may_be_absolute_or_lead_out(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    for path in (tmp_path / "x.npy", "../x.npy"):
        (case,) = expanded(tmp_path, str(path))
        assert (drawn(case) == VALUES).all()


def test_a_raw_file_holds_little_endian_elements(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(VALUES.astype("<f4").tobytes())
    (case,) = expanded(tmp_path, "../x.bin")
    assert (drawn(case) == VALUES).all()


def test_a_dtype_that_numpy_does_not_know(tmp_path: Path) -> None:
    values = VALUES.astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "b.npy", values)
    kept = parse_values({"file": "b.npy"}, {}, "bfloat16", folder=tmp_path)
    assert (draw(kept, values.shape, "bfloat16", (1,)) == values).all()


def test_nans_are_laid_over_a_copy(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    (case,) = expanded(tmp_path, "../x.npy", more=", nan: 0.25")
    assert np.isnan(drawn(case)).sum() == 6
    assert (np.load(tmp_path / "x.npy") == VALUES).all()


def test_the_digest_follows_the_content_and_not_the_folder(tmp_path: Path) -> None:
    digests = []
    for number, values in enumerate((VALUES, VALUES, VALUES + 1)):
        folder = tmp_path / str(number)
        folder.mkdir()
        np.save(folder / "x.npy", values)
        (case,) = expanded(folder, "../x.npy")
        assert str(tmp_path) not in recipe(case.inputs[0])
        assert recipe(case.inputs[0]).startswith("file x.npy xxh3_128:")
        digests.append(digest(case))
    assert digests[0] == digests[1] != digests[2]


def test_a_file_that_changes_after_expansion_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    (case,) = expanded(tmp_path, "../x.npy")
    np.save(tmp_path / "x.npy", VALUES + 1)
    os.utime(tmp_path / "x.npy", ns=(1, 1))
    with pytest.raises(InputError, match=r"x\.npy has changed since the spec was read"):
        drawn(case)


def test_the_size_on_disk_is_told_beforehand(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    (case,) = expanded(tmp_path, "../x.npy")
    assert planned_size(case, WriteOptions(Path(), inline_limit=1 << 20)) > 24 * 4


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x.npy", None, "can't read specs/x.npy: No such file or directory"),
        (".", None, "can't read specs: it is a folder, expected a regular file"),
        ("x.npy", b"", "specs/x.npy is no .npy file: "),
        ("x.npy", b"PK\3\4" + bytes(99), "specs/x.npy is no .npy file: "),
        ("x.npy", VALUES[..., :3], "specs/x.npy has shape [1, 2, 3, 3], the tensor [1, 2, 3, 4]"),
        ("x.npy", VALUES.reshape(24), "specs/x.npy has shape [24], the tensor [1, 2, 3, 4]"),
        ("x.npy", VALUES.astype(np.float64), "specs/x.npy has dtype float64, the tensor float"),
        ("x.npy", VALUES.astype(">f4"), "specs/x.npy has dtype >f4, the tensor float"),
        ("x.npy", np.array([None]), "specs/x.npy is no .npy file: "),
        ("x.bin", bytes(95), "specs/x.bin holds 95 bytes of values, the tensor's [1, 2, 3, 4] of float take 96"),
        ("x.bin", bytes(192), "specs/x.bin holds 192 bytes of values, the tensor's [1, 2, 3, 4] of float take 96"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else None,
)  # fmt: skip
def test_a_file_that_does_not_fit_is_told_with_the_place(
    tmp_path: Path, name: str, content: Any, expected: str
) -> None:
    (tmp_path / "specs").mkdir()
    if isinstance(content, bytes):
        (tmp_path / "specs" / name).write_bytes(content)
    elif content is not None:
        np.save(tmp_path / "specs" / name, content, allow_pickle=True)
    assert refusal(tmp_path, name).startswith(expected.replace("/", os.sep))


def test_an_npy_file_cut_short_is_told(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    path = tmp_path / "specs" / "x.npy"
    np.save(path, VALUES)
    path.write_bytes(path.read_bytes()[:-4])
    assert refusal(tmp_path, "x.npy") == "specs/x.npy is no .npy file: mmap length is greater than file size"


def test_f12_a_fifo_is_refused_and_never_opened(tmp_path: Path) -> None:
    """FOUND F12: opening one waits for a writer for ever."""
    (tmp_path / "specs").mkdir()
    for name in ("x.npy", "x.bin"):
        os.mkfifo(tmp_path / "specs" / name)
        assert refusal(tmp_path, name) == f"can't read specs/{name}: it is a FIFO, expected a regular file"
