"""Error bounds in a case file: all that were stored are read back, or none of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from schemas.casefiles.error_bounds import store_bounds, stored_bounds
from schemas.casefiles.reading import read_case, write_case
from schemas.protos import messages as proto

SHAPES = {"y": (2, 3), "z": (2, 3)}
BOUND = np.arange(6, dtype=np.float32).reshape(2, 3)


def written(path: Path, bounds: dict[str, np.ndarray], inline_limit: int = 1 << 20) -> Path:
    node = proto.Node(op_name="alien_op")
    proto.set_meta(node, proto.CaseMeta(suite="general", name="case"))
    more = store_bounds(node, bounds, path, inline_limit)
    write_case(path, node, [], [], more=more)
    return path


def read(path: Path) -> dict[str, list[list[float]]]:
    with read_case(path) as file:
        return {name: np.broadcast_to(bound, (2, 3)).tolist() for name, bound in stored_bounds(file, SHAPES).items()}


def test_a_bound_of_zeros_is_kept_beside_another(tmp_path: Path) -> None:
    for zeros in (np.zeros((2, 3), np.float32), np.zeros((), np.float32)):
        path = written(tmp_path / "case.pb", {"y": BOUND, "z": zeros})
        assert read(path) == {"y": BOUND.tolist(), "z": [[0.0] * 3] * 2}


def test_zeros_alone_are_not_stored(tmp_path: Path) -> None:
    assert read(written(tmp_path / "case.pb", {"z": np.zeros((2, 3), np.float32)})) == {}


def test_one_number_for_all_elements(tmp_path: Path) -> None:
    path = written(tmp_path / "case.pb", {"y": np.float32(0.5) * np.ones((), np.float32), "z": BOUND})
    assert read(path) == {"y": [[0.5] * 3] * 2, "z": BOUND.tolist()}


def test_none_is_read_where_one_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path / "case.pb", {"y": BOUND, "z": BOUND + 1}, inline_limit=0)
    assert read(path) == {"y": BOUND.tolist(), "z": (BOUND + 1).tolist()}
    sorted(tmp_path.glob("*.bin"))[0].unlink()
    assert read(path) == {}
