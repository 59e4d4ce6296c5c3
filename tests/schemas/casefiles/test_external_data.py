"""External data: compressed siblings, sizes, pieces, names that are odd."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.errors import InputError, UnavailableError
from tests.schemas.casefiles.building import make_node, read

VALUES = np.arange(3_000_000, dtype=np.float32)


def _compress(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    compressed: bytes = zstandard.ZstdCompressor().compress(data)
    return compressed


def test_a_compressed_sibling_is_read_where_the_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "x.bin.zst").write_bytes(_compress(VALUES.tobytes()))
    record = read(tmp_path, make_node(VALUES.size, path="x.bin")).inputs[0]
    assert record.value_count() == VALUES.size
    assert np.array_equal(record.array(), VALUES)
    assert not record.array().flags.writeable
    assert np.array_equal(np.concatenate(list(record.blocks())), VALUES)
    (tmp_path / "x.bin").write_bytes((VALUES + 1).tobytes())
    assert np.array_equal(record.array(), VALUES + 1)  # the exact name wins


def test_a_sibling_of_the_wrong_size_or_content(tmp_path: Path) -> None:
    (tmp_path / "x.bin.zst").write_bytes(_compress(VALUES.tobytes()))
    for count, told in ((VALUES.size + 1, "12000000 bytes, expected 12000004"), (7, "bytes or more, expected 28")):
        record = read(tmp_path, make_node(count, path="x.bin")).inputs[0]
        with pytest.raises(InputError, match=told):
            record.array()
    (tmp_path / "x.bin.zst").write_bytes(_compress(VALUES.tobytes())[:-9])
    with pytest.raises(InputError, match=r"x\.bin\.zst"):
        read(tmp_path, make_node(VALUES.size, path="x.bin")).inputs[0].array()
    (tmp_path / "x.bin.zst").write_bytes(b"no such thing")
    with pytest.raises(InputError, match=r"x\.bin\.zst can't be decompressed"):
        read(tmp_path, make_node(3, path="x.bin")).inputs[0].array()


def test_a_sibling_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "x.bin.zst").write_bytes(_compress(bytes(1 << 28)))
    record = read(tmp_path, make_node(4, path="x.bin")).inputs[0]
    count = record.value_count()
    assert count is not None
    assert 4 < count < 1 << 22


def test_without_the_package_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.bin.zst").write_bytes(b"")
    plain = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name in ("zstandard", "compression"):
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UnavailableError, match=r"zstandard: pip install mluops\[zstd\]"):
        read(tmp_path, make_node(4, path="x.bin")).inputs[0].array()


def test_pieces_are_what_the_whole_is(tmp_path: Path) -> None:
    VALUES.tofile(tmp_path / "x.bin")
    record = read(tmp_path, make_node(VALUES.size, path="x.bin")).inputs[0]
    pieces = list(record.blocks())
    assert len(pieces) > 1
    assert np.array_equal(np.concatenate(pieces), VALUES)
    (tmp_path / "x.bin").write_bytes(VALUES.tobytes()[:-2])
    assert sum(piece.size for piece in record.blocks()) == VALUES.size - 1


@pytest.mark.parametrize(
    "name", ["with space.bin", "größe 大.bin", "a.pb.prototxt", "deep/er/x.bin", "-x", "#", "x.zst"]
)
def test_odd_names(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(np.float32(5).tobytes())
    assert read(tmp_path, make_node(1, path=name)).inputs[0].array() == 5


def test_a_link_to_a_sibling_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "x.zst").write_bytes(b"")
    (tmp_path / "in" / "x.bin.zst").symlink_to(tmp_path / "x.zst")
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "in", make_node(1, path="x.bin")).inputs[0].array()


def test_e10_inner_dots_that_stay_inside(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "x.bin").write_bytes(np.float32(5).tobytes())
    assert read(tmp_path, make_node(1, path="data/../x.bin")).inputs[0].array() == 5
    (tmp_path / "far").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "far")
    with pytest.raises(InputError, match="leads outside"):  # to the folder above far
        read(tmp_path / "in", make_node(1, path="link/../x.bin")).inputs[0].array()
