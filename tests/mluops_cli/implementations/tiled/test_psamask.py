"""psamask on the device against loops over every element."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mluops_cli.implementations.tiled.onchip import Machine
from mluops_cli.implementations.tiled.psamask import PsamaskBackward, PsamaskForward, _find_limits, _parts
from schemas.tensor_descriptor import Descriptor
from tests.mluops_cli.implementations.tiled.trial import MACHINES, Trial, unwritten

COLLECT, DISTRIBUTE = 0, 1
SHAPES = (  # N, H, W, h_mask, w_mask
    (1, 1, 1, 1, 1),
    (2, 3, 4, 3, 3),
    (3, 4, 2, 2, 5),
    (1, 5, 3, 9, 7),
    (2, 1, 7, 4, 2),
    (7, 2, 3, 1, 6),
    (1, 2, 13, 3, 8),
)

Pair = tuple[tuple[int, ...], tuple[int, ...]]


def pairs(N: int, H: int, W: int, h_mask: int, w_mask: int, psa_type: int) -> list[Pair]:
    """(index in the masked tensor, index in the full tensor) of every valid cell, by the formula."""
    found: list[Pair] = []
    for n in range(N):
        for h in range(H):
            for w in range(W):
                for p in range(h_mask):
                    for q in range(w_mask):
                        i, j = p + h - (h_mask - 1) // 2, q + w - (w_mask - 1) // 2
                        if 0 <= i < H and 0 <= j < W:
                            full = (n, h, w, i * W + j) if psa_type == COLLECT else (n, i, j, h * W + w)
                            found.append(((n, h, w, p * w_mask + q), full))
    return found


def trial(shape: tuple[int, ...], psa_type: int, backward: bool = False) -> tuple[Trial, np.ndarray[Any, Any]]:
    """A call with distinct values and the answer."""
    N, H, W, h_mask, w_mask = shape
    masked, full = (N, H, W, h_mask * w_mask), (N, H, W, H * W)
    given, computed = (full, masked) if backward else (masked, full)
    values = (np.arange(np.prod(given), dtype=np.float32) + 1).reshape(given)
    right = np.zeros(computed, np.float32)
    for in_masked, in_full in pairs(N, H, W, h_mask, w_mask, psa_type):
        source, target = (in_full, in_masked) if backward else (in_masked, in_full)
        right[target] = values[source]
    names = ("dy", "dx") if backward else ("x", "y")
    params = {"psa_type": psa_type, "h_mask": h_mask, "w_mask": w_mask}
    op = "psamask_backward" if backward else "psamask_forward"
    layouts = dict.fromkeys(names, "NHWC")
    return Trial(op, {names[0]: values}, {names[1]: unwritten(computed)}, params, layouts), right


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("psa_type", [COLLECT, DISTRIBUTE])
@pytest.mark.parametrize("shape", SHAPES)
def test_against_loops(shape: tuple[int, ...], psa_type: int, backward: bool, machine: Machine) -> None:
    case, right = trial(shape, psa_type, backward)
    assert case.run(machine) == "SUCCESS"
    (computed,) = case.outputs.values()
    np.testing.assert_array_equal(computed, right)


def test_hand_checked() -> None:
    for psa_type, rows in ((COLLECT, [[2, 3], [4, 5]]), (DISTRIBUTE, [[2, 4], [3, 5]])):
        case, _ = trial((1, 1, 2, 1, 3), psa_type)
        assert case.inputs["x"].ravel().tolist() == [1, 2, 3, 4, 5, 6]
        assert case.run() == "SUCCESS"
        assert case.outputs["y"][0, 0].tolist() == rows


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("psa_type", [COLLECT, DISTRIBUTE])
@pytest.mark.parametrize(
    ("positions", "tiles"),
    [(20 * 3, 1), (20 * 2, 2), (20 + 19, 3), (5 * 3, 3 * 2), (5, 3 * 4), (4, 3 * 4 * 2), (2, 3 * 4 * 3), (1, 60)],
)
def test_memory_for_so_many_positions_makes_so_many_tiles(
    positions: int, tiles: int, psa_type: int, backward: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N=3, H=4, W=5: first whole n, then whole h, then w are what fits; remainders included."""
    case, right = trial((3, 4, 5, 3, 2), psa_type, backward)
    bytes_of_position = (6 + 20 * (psa_type + 1)) * 4
    seen = []
    kernel = PsamaskBackward if backward else PsamaskForward
    tile = kernel.tile

    def counted(self: Any, *arguments: Any) -> None:
        seen.append(1)
        tile(self, *arguments)

    monkeypatch.setattr(kernel, "tile", counted)
    assert case.run(Machine(nram=positions * bytes_of_position, clusters=1, cores=1)) == "SUCCESS"
    assert len(seen) == tiles
    (computed,) = case.outputs.values()
    np.testing.assert_array_equal(computed, right)


@pytest.mark.parametrize("psa_type", [COLLECT, DISTRIBUTE])
def test_mask_of_which_not_one_position_fits(psa_type: int) -> None:
    for backward in (False, True):
        case, _ = trial((3, 4, 5, 3, 2), psa_type, backward)
        nram = (6 + 20 * (psa_type + 1)) * 4
        assert case.run(Machine(nram=nram - 1)) == "NOT_SUPPORTED"
        assert case.run(Machine(nram=nram)) == "SUCCESS"


def test_the_largest_network_mask_fits_the_default_memory() -> None:
    """97x97 on 49x49, DISTRIBUTE: (9409 + 2*2401) * 4 = 56844 bytes a position."""
    assert _find_limits((range(1), range(3), range(49)), (9409 + 2 * 2401) * 4, Machine().nram) == (1, 1, 11)


def test_shares_follow_n_then_h_then_w_then_the_largest() -> None:
    n, h, w = range(5), range(9), range(2)
    assert [s[0] for s in _parts((n, h, w), 4)] == [range(2), range(2, 3), range(3, 4), range(4, 5)]
    assert [s[1] for s in _parts((n, h, w), 8)] == [range(2), *(range(i, i + 1) for i in range(2, 9))]
    assert [s[2] for s in _parts((range(2), range(3), range(8)), 4)] == [range(i, i + 2) for i in (0, 2, 4, 6)]
    assert [s[1] for s in _parts((range(2), range(3), range(2)), 4)] == [range(i, i + 1) for i in range(3)]
    assert all(s[0] == n and s[2] == w for s in _parts((n, h, w), 8))


def test_special_values_are_copied_bit_for_bit() -> None:
    for psa_type in (COLLECT, DISTRIBUTE):
        case, _ = trial((1, 1, 2, 1, 1), psa_type)
        bits = np.array([0xFFC01234, 0x80000001], np.uint32)
        case.inputs["x"] = bits.view(np.float32).reshape(1, 1, 2, 1)
        assert case.run() == "SUCCESS"
        diagonal = case.outputs["y"].reshape(2, 2).diagonal()
        assert np.ascontiguousarray(diagonal).view(np.uint32).tolist() == bits.tolist()


@pytest.mark.parametrize("axis", range(3))
def test_zero_elements(axis: int) -> None:
    shape = [2, 3, 4, 3, 3]
    shape[axis] = 0
    for backward in (False, True):
        case, _ = trial(tuple(shape), COLLECT, backward)
        assert case.run() == "SUCCESS"


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(
    ("name", "change", "status"),
    [
        ("x", {"dtype": "half"}, "BAD_PARAM"),
        ("y", {"dtype": "half"}, "BAD_PARAM"),
        ("x", {"layout": "NCHW"}, "BAD_PARAM"),
        ("y", {"layout": "ARRAY"}, "BAD_PARAM"),
        ("x", {"dims": (2, 3, 36)}, "BAD_PARAM"),
        ("y", {"dims": (2, 3, 4, 12, 1)}, "BAD_PARAM"),
        ("x", {"dims": (2, 3, 4, 10)}, "BAD_PARAM"),
        ("y", {"dims": (2, 3, 4, 11)}, "BAD_PARAM"),
        ("y", {"dims": (3, 3, 4, 12)}, "BAD_PARAM"),
        ("y", {"dims": (2, 4, 4, 12)}, "BAD_PARAM"),
        ("y", {"dims": (2, 3, 5, 12)}, "BAD_PARAM"),
        ("x", {"strides": (216, 72, 18, 2)}, "NOT_SUPPORTED"),
        ("y", {"strides": (144, 12, 36, 1)}, "NOT_SUPPORTED"),
        ("x", {"strides": (108, 36, 9, 1)}, "SUCCESS"),
        ("x", None, "BAD_PARAM"),
        ("y", None, "BAD_PARAM"),
    ],
)
def test_descriptors(name: str, change: dict[str, Any] | None, status: str, backward: bool) -> None:
    case, _ = trial((2, 3, 4, 3, 3), COLLECT, backward)
    name = {"x": "dx", "y": "dy"}[name] if backward else name
    described = case.descriptors()[name]
    assert described is not None
    changed = None if change is None else replace(described, **change)
    assert case.run(describe={name: changed}) == status


@pytest.mark.parametrize(
    "params",
    [
        {"psa_type": 2},
        {"psa_type": -1},
        {"h_mask": 0, "w_mask": 3},
        {"h_mask": 3, "w_mask": 0},
        {"h_mask": -3, "w_mask": -3},
        {"h_mask": 4},
    ],
)
def test_parameters(params: dict[str, int]) -> None:
    assert trial((2, 3, 4, 3, 3), COLLECT)[0].run(params=params) == "BAD_PARAM"


def test_null_handle_and_pointers() -> None:
    case, _ = trial((2, 3, 4, 3, 3), COLLECT)
    assert case.run(handle=None) == "BAD_PARAM"
    assert case.run(null=("x",)) == "BAD_PARAM"
    assert case.run(null=("y",)) == "BAD_PARAM"
    assert trial((0, 3, 4, 3, 3), COLLECT)[0].run(null=("x", "y")) == "SUCCESS"


def test_large_tensors_need_no_memory_to_be_refused() -> None:
    case, _ = trial((1, 1, 1, 1, 1), COLLECT)
    for N, status in ((2**31 // 4, "NOT_SUPPORTED"), (2**31 // 4 - 1, "BAD_PARAM")):  # then only the pointers are null
        dims = (N, 1, 2, 2)
        large = {name: Descriptor("NHWC", "float", dims) for name in ("x", "y")}
        answer = case.run(describe=large, null=("x", "y"), params={"h_mask": 1, "w_mask": 2})
        assert answer == status


def test_an_invalid_call_writes_nothing() -> None:
    case, _ = trial((2, 3, 4, 3, 3), COLLECT)
    before = case.outputs["y"].copy()
    case.run(params={"psa_type": 5})
    case.run(Machine(nram=10))
    np.testing.assert_array_equal(case.outputs["y"], before)
