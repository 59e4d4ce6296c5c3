"""Writing and reading a case file against writing and mapping the raw array."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Row, ratio
from schemas.casefiles.reading import read_case, write_case
from schemas.protos import messages as proto

INLINE = 1 << 40
SIDE = 0
HALF, FLOAT, ARRAY = 1, 2, 5  # numbers of dtypes and of the layout in a case file


def _node(elements: int, dtype: int) -> Any:
    node = proto.Node(op_name="benchmark")
    node.input.add(id="x", layout=ARRAY, dtype=dtype, shape={"dims": [elements]})
    return node


def _write_raw(path: Path, array: NDArray[Any]) -> None:
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.write(array.data)


def _touch(array: NDArray[Any]) -> float:
    return float(array[::16].sum())  # one element of each cache line


def _floats(folder: Path, elements: int) -> list[Row]:
    array = np.random.default_rng(0).random(elements, np.float32)
    raw, node = folder / "raw.bin", _node(elements, FLOAT)
    cases = {"inline": (folder / "inline.pb", INLINE), "external data": (folder / "side.pb", SIDE)}

    def write(path: Path, limit: int) -> Callable[[], None]:
        def run() -> None:
            for old in path.parent.glob(f"{path.stem}.*"):
                old.unlink(missing_ok=True)
            write_case(path, node, [array], [], inline_limit=limit)

        return run

    def read(path: Path) -> Callable[[], None]:
        def run() -> None:
            with read_case(path) as case:
                _touch(case.inputs[0].array())

        return run

    size = f"{elements >> 20} M floats"
    rows = [
        ratio(f"write {size} {where} / raw write", write(path, limit), lambda: _write_raw(raw, array), 1.5)
        for where, (path, limit) in cases.items()
    ]
    rows += [
        ratio(f"read {size} {where} / map and touch", read(path), lambda: _touch(np.memmap(raw, np.float32, "r")), 1.2)
        for where, (path, _) in cases.items()
    ]
    return rows


def _halfs(folder: Path, elements: int) -> list[Row]:
    """Half travels as varints; per element against protobuf's own way, filling a repeated field from a list."""
    array = np.random.default_rng(0).integers(0, 1 << 16, elements, np.uint16).view(np.float16)
    path, node = folder / "half.pb", _node(elements, HALF)

    def write() -> None:
        write_case(path, node, [array], [], inline_limit=INLINE)

    def element_by_element() -> None:
        message = _node(elements, HALF)
        message.input[0].value_i.extend(array.view(np.uint16).tolist())
        (folder / "slow.pb").write_bytes(message.SerializeToString())

    def read() -> None:
        with read_case(path) as case:
            case.inputs[0].array()

    def parse() -> None:
        np.array(proto.Node.FromString(path.read_bytes()).input[0].value_i, np.int32).astype(np.uint16)

    size = f"{elements >> 20} M halfs"
    return [
        ratio(f"write {size} / protobuf from a list", write, element_by_element),
        ratio(f"read {size} / protobuf to an array", read, parse),
    ]


def rows(millions: int = 64) -> list[Row]:
    """All rows; takes about 12 bytes per float in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        return _floats(Path(folder), millions << 20) + _halfs(Path(folder), max(1, millions // 32) << 20)


if __name__ == "__main__":
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 64):
        print(f"{row.name:52} {row.value:6.2f} {row.unit}  (at most {row.bound})  {row.note}")
