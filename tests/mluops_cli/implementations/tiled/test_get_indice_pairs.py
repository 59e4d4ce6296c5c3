"""get_indice_pairs on the device against a dictionary of sites."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mluops_cli.implementations.tiled import kernels
from mluops_cli.implementations.tiled.base import WorkspaceKernel
from mluops_cli.implementations.tiled.onchip import Machine, OnChipLimitError
from schemas.tensor_descriptor import Descriptor
from tests.mluops_cli.implementations.tiled.trial import MACHINES, Trial, unwritten

OP = "get_indice_pairs"
Array = np.ndarray[Any, Any]
Triple = tuple[int, int, int]
ONES: Triple = (1, 1, 1)


def trial(
    sites: Sequence[tuple[int, ...]],
    space: Triple,
    batch: int = 1,
    filters: Triple = (3, 3, 3),
    pad: Triple = ONES,
    stride: Triple = ONES,
    dilation: Triple = ONES,
    subm: bool = False,
) -> tuple[Trial, tuple[Array, Array, Array]]:
    """A call and its answer (out_indices, indice_pairs, indice_num) by a dictionary over output sites."""
    steps = zip(space, filters, pad, stride, dilation, strict=True)
    out_space = space if subm else tuple((i + 2 * p - d * (f - 1) - 1) // s + 1 for i, f, p, s, d in steps)
    reached: list[list[tuple[int, tuple[int, ...]]]] = []
    for offset in itertools.product(*map(range, filters)):
        reached.append([])
        for j, (n, *p) in enumerate(sites):
            o = [(p[a] + pad[a] - offset[a] * dilation[a]) / stride[a] for a in range(3)]
            if all(x == int(x) and 0 <= x < bound for x, bound in zip(o, out_space, strict=True)):
                reached[-1].append((j, (n, *map(int, o))))
    out = sites if subm else sorted({site for each in reached for _, site in each})
    row_of = {site: row for row, site in enumerate(out)}
    pairs = np.full((len(reached), 2, len(sites)), -1, np.int32)
    numbers = np.zeros(len(reached), np.int32)
    for k, found in enumerate(reached):
        kept = [(j, row_of[site]) for j, site in found if site in row_of]
        pairs[k, :, : len(kept)] = np.array(kept, np.int32).reshape(-1, 2).T
        numbers[k] = len(kept)
    params = {"dimnb": 5, "batch": batch, "pad": list(pad), "stride": list(stride), "dilation": list(dilation)}
    params |= {"input_space": list(space), "filter_space": list(filters), "output_space": list(out_space)}
    params |= {"sub_m": int(subm), "transpose": 0, "inverse": 0}
    outputs = {
        "out_indices": unwritten((len(out), 4), np.int32),
        "indice_pairs": unwritten(pairs.shape, np.int32),
        "indice_num": unwritten(numbers.shape, np.int32),
    }
    indices = np.array(sites, np.int32).reshape(-1, 4)
    return Trial(OP, {"indices": indices}, outputs, params), (np.array(out, np.int32).reshape(-1, 4), pairs, numbers)


def check(case: Trial, answer: tuple[Array, Array, Array], machine: Machine | None = None) -> None:
    assert case.run(machine) == {"status": "SUCCESS", "num_act_out": len(answer[0])}
    for computed, right in zip(case.outputs.values(), answer, strict=True):
        np.testing.assert_array_equal(computed, right)


def random_sites(count: int, batch: int, space: Triple, seed: int = 0) -> list[tuple[int, ...]]:
    """Distinct sites in random order."""
    cells = np.random.default_rng(seed).permutation(batch * math.prod(space))[:count]
    return [tuple(map(int, np.unravel_index(cell, (batch, *space)))) for cell in cells]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("count", "batch", "space", "change"),
    [
        (1, 1, (1, 1, 1), {}),
        (40, 2, (4, 5, 6), {}),
        (60, 3, (3, 4, 5), {"subm": True}),
        (50, 2, (5, 6, 7), {"subm": True, "filters": (1, 3, 5), "pad": (0, 1, 2)}),
        (40, 2, (7, 8, 9), {"stride": (2, 2, 2), "pad": (0, 1, 1)}),
        (30, 1, (9, 8, 10), {"dilation": (2, 3, 1), "pad": (2, 2, 0)}),
        (30, 2, (9, 5, 6), {"stride": (3, 1, 2), "dilation": (1, 2, 1), "filters": (2, 2, 4), "pad": (1, 0, 3)}),
        (25, 1, (3, 3, 3), {"filters": (1, 1, 1), "pad": (0, 0, 0)}),
    ],
)
def test_against_a_dictionary(count: int, batch: int, space: Triple, change: dict[str, Any], machine: Machine) -> None:
    check(*trial(random_sites(count, batch, space), space, batch, **change), machine)


@pytest.mark.parametrize("subm", [False, True])
@pytest.mark.parametrize("nram", [98, 128, 200, 333, 1000])
def test_memories_that_hold_few_sites_offsets_or_cells(nram: int, subm: bool) -> None:
    check(*trial(random_sites(30, 2, (4, 4, 4)), (4, 4, 4), 2, subm=subm), Machine(nram=nram, clusters=1, cores=3))


def test_a_memory_that_holds_no_pair_is_an_error() -> None:
    case, _ = trial(random_sites(3, 1, (4, 4, 4)), (4, 4, 4))
    with pytest.raises(OnChipLimitError):
        case.run(Machine(nram=97))


def test_two_adjacent_points_in_subm() -> None:
    case, answer = trial([(0, 1, 1, 1), (0, 1, 1, 2)], (3, 3, 3), subm=True)
    check(case, answer)
    numbers = case.outputs["indice_num"].tolist()
    assert numbers[13] == 2
    assert numbers[12] == numbers[14] == 1
    assert sum(numbers) == 4
    assert case.outputs["indice_pairs"][13, :, :2].tolist() == [[0, 1], [0, 1]]
    assert case.outputs["indice_pairs"][12, :, 0].tolist() == [0, 1]  # from w=1 by kw=0 to w=2


def test_c2_subm_takes_an_out_indices_with_more_rows_than_sites() -> None:
    case, (out, _, numbers) = trial([(0, 1, 1, 1), (0, 1, 1, 2)], (3, 3, 3), subm=True)
    case.outputs["out_indices"] = unwritten((5, 4), np.int32)
    assert case.run() == {"status": "SUCCESS", "num_act_out": 2}
    np.testing.assert_array_equal(case.outputs["out_indices"][:2], out)
    np.testing.assert_array_equal(case.outputs["indice_num"], numbers)
    case.outputs["out_indices"] = unwritten((1, 4), np.int32)
    assert case.run() == "BAD_PARAM"


@pytest.mark.parametrize("side", [1224, 1324, 2000])
def test_cell_numbers_pass_32_bits(side: int) -> None:
    last = side - 1
    sites = [(0, 0, 0, 0), (0, last, last, last), (0, last, last, 0), (0, side // 2, 1, last)]
    for subm in (False, True):
        check(*trial(sites, (side, side, side), subm=subm))


def test_cell_and_payload_beyond_63_bits_are_a_limit() -> None:
    """2^31 * 2^31 cells leave no bit for the pairs of 3 sites; the answer says so before anything is written."""
    case, _ = trial([(0, 0, 0, 0), (0, 0, 0, 1), (0, 5, 0, 1)], (2**31 - 1, 2**31 - 1, 2), filters=ONES, pad=(0, 0, 0))
    assert case.run() == "NOT_SUPPORTED"
    assert (case.outputs["indice_num"] == 77).all()


def test_4096_offsets() -> None:
    check(*trial([(0, 8, 8, 8), (0, 0, 0, 0)], (17, 17, 17), filters=(16, 16, 16), pad=(0, 0, 0)))
    case, _ = trial([(0, 8, 8, 8)], (17, 17, 17), filters=(16, 16, 16), pad=(0, 0, 0))
    wide = {"filter_space": [17, 16, 16]}
    changed = {
        "indice_pairs": Descriptor("ARRAY", "int32", (17 * 256, 2, 1)),
        "indice_num": Descriptor("ARRAY", "int32", (17 * 256,)),
    }
    assert case.run(describe=changed, params=wide) == "BAD_PARAM"


@pytest.mark.parametrize("subm", [False, True])
def test_zero_elements(subm: bool) -> None:
    case, (_, _, numbers) = trial([], (4, 4, 4), subm=subm)
    assert case.run(workspace=None) == {"status": "SUCCESS", "num_act_out": 0}
    assert case.outputs["indice_num"].tolist() == numbers.tolist() == [0] * 27
    assert case.run(null=("indice_num",)) == "BAD_PARAM"


def test_sites_that_reach_nothing() -> None:
    """A stride of 2 without padding and a filter of 1 skips the odd places."""
    case, answer = trial([(0, 1, 0, 0), (0, 0, 3, 0)], (5, 5, 5), filters=ONES, pad=(0, 0, 0), stride=(2, 2, 2))
    check(case, answer)
    assert case.outputs["out_indices"].shape == (0, 4)
    assert (case.outputs["indice_pairs"] == -1).all()


def test_the_number_of_outputs_is_told_whatever_the_buffer_holds() -> None:
    case, (out, _, numbers) = trial(random_sites(3, 1, (6, 6, 6)), (6, 6, 6))
    case.outputs["out_indices"] = unwritten((5, 4), np.int32)
    assert case.run() == {"status": "SUCCESS", "num_act_out": len(out)}
    np.testing.assert_array_equal(case.outputs["out_indices"], out[:5])
    np.testing.assert_array_equal(case.outputs["indice_num"], numbers)
    case.outputs["out_indices"] = unwritten((len(out) + 1, 4), np.int32)
    assert case.run()["num_act_out"] == len(out)
    np.testing.assert_array_equal(case.outputs["out_indices"][:-1], out)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimnb": 4},
        {"batch": 0},
        {"batch": -1},
        {"transpose": 1},
        {"inverse": 1},
        {"sub_m": 2},
        {"pad": [1, -1, 1]},
        {"stride": [0, 1, 1]},
        {"dilation": [1, 1, 0]},
        {"input_space": [4, 0, 4]},
        {"output_space": [4, 4, -4]},
        {"filter_space": [0, 3, 3]},
        {"filter_space": [3, 3, 1]},
        {"stride": [1, 2, 1], "dilation": [1, 2, 1]},
        {"input_space": [1, 1, 4]},  # 2 * 4 cells for 10 sites
        {"output_space": [1, 1, 1]},  # 2 cells for all outputs
        {"pad": [1, 1]},
    ],
)
def test_parameters(wrong: dict[str, Any]) -> None:
    case, answer = trial(random_sites(10, 2, (4, 4, 4)), (4, 4, 4), 2)
    assert case.run(params=wrong) == "BAD_PARAM"
    check(case, answer)


@pytest.mark.parametrize(
    "wrong", [{"stride": [1, 1, 2]}, {"dilation": [2, 1, 1]}, {"output_space": [4, 4, 5]}, {"input_space": [5, 4, 4]}]
)
def test_parameters_of_subm(wrong: dict[str, Any]) -> None:
    case, answer = trial(random_sites(10, 2, (4, 4, 4)), (4, 4, 4), 2, subm=True)
    assert case.run(params=wrong) == "BAD_PARAM"
    check(case, answer)


@pytest.mark.parametrize(
    ("name", "change", "status"),
    [
        ("indices", {"dtype": "int64"}, "BAD_PARAM"),
        ("out_indices", {"dtype": "int64"}, "BAD_PARAM"),
        ("indice_pairs", {"dtype": "float"}, "BAD_PARAM"),
        ("indice_num", {"dtype": "int64"}, "BAD_PARAM"),
        ("indices", {"dims": (10, 3)}, "BAD_PARAM"),
        ("indices", {"dims": (40,)}, "BAD_PARAM"),
        ("indices", {"dims": (9, 4)}, "BAD_PARAM"),
        ("out_indices", {"dims": (9, 4)}, "BAD_PARAM"),  # subm: as many as sites
        ("out_indices", {"dims": (10, 3)}, "BAD_PARAM"),
        ("indice_pairs", {"dims": (27, 2, 11)}, "BAD_PARAM"),
        ("indice_pairs", {"dims": (27, 1, 10)}, "BAD_PARAM"),
        ("indice_pairs", {"dims": (26, 2, 10)}, "BAD_PARAM"),
        ("indice_pairs", {"dims": (54, 10)}, "BAD_PARAM"),
        ("indice_num", {"dims": (26,)}, "BAD_PARAM"),
        ("indice_num", {"dims": (27, 1)}, "BAD_PARAM"),
        ("indices", {"strides": (8, 2)}, "NOT_SUPPORTED"),
        ("out_indices", {"strides": (1, 10)}, "NOT_SUPPORTED"),
        ("indice_pairs", {"strides": (20, 1, 2)}, "NOT_SUPPORTED"),
        ("indice_num", {"strides": (2,)}, "NOT_SUPPORTED"),
        ("indices", None, "BAD_PARAM"),
        ("out_indices", None, "BAD_PARAM"),
        ("indice_pairs", None, "BAD_PARAM"),
        ("indice_num", None, "BAD_PARAM"),
    ],
)
def test_descriptors(name: str, change: dict[str, Any] | None, status: str) -> None:
    case, _ = trial(random_sites(10, 2, (4, 4, 4)), (4, 4, 4), 2, subm=True)
    described = case.descriptors()[name]
    assert described is not None
    assert case.run(describe={name: None if change is None else replace(described, **change)}) == status


def test_handle_pointers_and_large_tensors() -> None:
    case, _ = trial(random_sites(10, 2, (4, 4, 4)), (4, 4, 4), 2)
    assert case.run(handle=None) == "BAD_PARAM"
    for name in (*case.inputs, *case.outputs):
        assert case.run(null=(name,)) == "BAD_PARAM"
    L = 2**31 // 54 + 1
    large = {
        "indices": Descriptor("ARRAY", "int32", (L, 4)),
        "indice_pairs": Descriptor("ARRAY", "int32", (27, 2, L)),
    }
    spaces = {"input_space": [1000] * 3, "output_space": [1000] * 3}
    assert case.run(describe=large, null=("indices", "indice_pairs"), params=spaces) == "NOT_SUPPORTED"


@pytest.mark.parametrize("subm", [False, True])
def test_workspace_protocol(subm: bool) -> None:
    case, answer = trial(random_sites(10, 2, (4, 4, 4)), (4, 4, 4), 2, subm=subm)
    assert case.run(workspace=None) == "BAD_PARAM"
    assert case.run(workspace=-1) == "BAD_PARAM"
    check(case, answer)
    kernel = kernels()[OP]()
    assert isinstance(kernel, WorkspaceKernel)
    size = np.zeros(1, np.uint64)
    assert kernel.workspace_size(OP, case.inputs, case.outputs, case.params, None) == "BAD_PARAM"
    assert kernel.workspace_size(OP, case.inputs, case.outputs, case.params, size) == "SUCCESS"
    pairs, sites = 27 * 10, 10 if subm else 128
    assert size[0] == pairs * 8 + sites * 8 + pairs * 4
