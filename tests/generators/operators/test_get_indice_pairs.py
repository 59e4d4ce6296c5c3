"""get_indice_pairs: hand-checked rulebooks, brute force by dictionary, 64-bit cells, drawn sites."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from generators.contracts.checks import violations
from generators.operator_registry import operator_named
from schemas.casefiles.reading import read_case
from schemas.errors import InputError
from schemas.tensor_descriptor import Descriptor

OPERATOR = operator_named("get_indice_pairs")
ONE = (1, 1, 1)


def settings_of(
    space: Any,
    kernel: Any,
    stride: Any = ONE,
    pad: Any = (0, 0, 0),
    dilation: Any = ONE,
    batch: Any = 1,
    sub_m: Any = 0,
) -> Any:
    return {
        "batch": batch, "input_space": space, "filter_space": kernel, "stride": stride, "pad": pad,
        "dilation": dilation, "sub_m": sub_m,
    }  # fmt: skip


def rulebook(indices: Any, **params: Any) -> Any:
    indices = np.asarray(indices, np.int32).reshape(-1, 4)
    outputs = OPERATOR.baseline({"indices": indices}, {"indices": indices.shape}, settings_of(**params))
    return outputs["out_indices"], outputs["indice_pairs"], outputs["indice_num"]


def by_dictionary(
    indices: Any, space: Any, kernel: Any, stride: Any, pad: Any, dilation: Any, batch: Any, sub_m: Any
) -> Any:
    """The definition, site by site and offset by offset, with a dictionary of output rows."""
    sizes = [(space[a] + 2 * pad[a] - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1 for a in range(3)]
    out_space = space if sub_m else sizes
    reached: dict[int, list[tuple[int, tuple[int, ...]]]] = {}  # offset -> [(j, output coordinate)]
    for k, offset in enumerate(itertools.product(*map(range, kernel))):
        reached[k] = []
        for j, (n, *p) in enumerate(indices):
            moved = [p[a] + pad[a] - offset[a] * dilation[a] for a in range(3)]
            o = tuple(moved[a] // stride[a] for a in range(3))
            if all(moved[a] % stride[a] == 0 and 0 <= o[a] < out_space[a] for a in range(3)):
                reached[k].append((j, (n, *o)))
    found = sorted({o for pairs in reached.values() for _, o in pairs})
    outputs = [tuple(row) for row in indices] if sub_m else found
    row_of = {o: row for row, o in enumerate(outputs)}
    pairs = {k: [(j, row_of[o]) for j, o in listed if o in row_of] for k, listed in reached.items()}
    return outputs, pairs


@st.composite
def problems(draw: Any) -> Any:
    def triple(low: int, high: int) -> tuple[int, ...]:
        drawn: tuple[int, ...] = draw(st.tuples(*[st.integers(low, high)] * 3))
        return drawn

    space, kernel, sub_m = triple(1, 6), triple(1, 3), draw(st.integers(0, 1))
    stride, dilation, pad = (ONE, ONE, triple(0, 2)) if sub_m else (triple(1, 3), triple(1, 2), triple(0, 2))
    dilation = tuple(d if s == 1 else 1 for s, d in zip(stride, dilation, strict=True))
    batch = draw(st.integers(1, 3))
    cells = list(itertools.product(range(batch), *map(range, space)))
    rows = draw(st.lists(st.sampled_from(cells), unique=True, max_size=30))
    return rows, {
        "space": space, "kernel": kernel, "stride": stride, "pad": pad, "dilation": dilation, "batch": batch,
        "sub_m": sub_m,
    }  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(problems())
def test_reference_equals_the_dictionary(problem: Any) -> None:
    rows, params = problem
    sizes = [
        s + 2 * p - d * (k - 1) - 1
        for s, p, d, k in zip(*(params[name] for name in ("space", "pad", "dilation", "kernel")), strict=True)
    ]
    assume(params["sub_m"] or min(sizes) >= 0)
    out_indices, pairs, num = rulebook(rows, **params)
    outputs, expected = by_dictionary(rows, **params)
    assert [tuple(row) for row in out_indices.tolist()] == outputs
    for k, listed in expected.items():
        assert num[k] == len(listed)
        assert list(zip(*pairs[k, :, : num[k]].tolist(), strict=True)) == listed
        assert (pairs[k, :, num[k] :] == -1).all()


def test_two_adjacent_sites_in_subm() -> None:
    """Rows 0 and 1 are sites like any other: centre 2 pairs, two opposite offsets 1 each, the other 24 none."""
    sites = [[0, 4, 4, 4], [0, 4, 4, 5]]
    out_indices, pairs, num = rulebook(sites, space=(9, 9, 9), kernel=(3, 3, 3), pad=ONE, sub_m=1)
    np.testing.assert_array_equal(out_indices, sites)
    assert num[13] == 2
    assert num[12] == num[14] == 1
    assert num.sum() == 4
    # o = p + 1 - kw: kw = 0 carries site 0 (w = 4) to w = 5, row 1; kw = 2 the other way.
    assert pairs[12, :, 0].tolist() == [0, 1]
    assert pairs[14, :, 0].tolist() == [1, 0]


def test_a_single_site_in_subm_has_one_pair() -> None:
    _, pairs, num = rulebook([[0, 4, 4, 4]], space=(9, 9, 9), kernel=(3, 3, 3), pad=ONE, sub_m=1)
    assert num.sum() == 1
    assert (pairs == -1).sum() == 27 * 2 - 2


@pytest.mark.parametrize("sub_m", [0, 1])
def test_no_sites(sub_m: Any) -> None:
    out_indices, pairs, num = rulebook([], space=(5, 5, 5), kernel=(3, 3, 3), pad=ONE, sub_m=sub_m)
    assert out_indices.shape == (0, 4)
    assert pairs.shape == (27, 2, 0)
    assert num.tolist() == [0] * 27


def test_sites_that_reach_nothing() -> None:
    """Stride 3 without pad: the site at 1 is skipped by every output of a 1x1x1 kernel."""
    out_indices, pairs, num = rulebook([[0, 1, 0, 0]], space=(4, 4, 4), kernel=ONE, stride=(3, 3, 3))
    assert out_indices.shape == (0, 4)
    assert num.tolist() == [0]
    assert (pairs == -1).all()


def test_a_grid_beyond_2_to_the_31_cells_gives_the_same_coordinates() -> None:
    sites = [[0, 5, 6, 7], [0, 1000, 1200, 1220], [0, 5, 6, 8]]
    small = rulebook(sites, space=(1224,) * 3, kernel=(3, 3, 3), pad=ONE)
    large = rulebook(sites, space=(1324,) * 3, kernel=(3, 3, 3), pad=ONE)
    for one, other in zip(small, large, strict=True):
        np.testing.assert_array_equal(one, other)
    _, shifted, _ = rulebook([[3, 899, 899, 899]], space=(900,) * 3, kernel=ONE, batch=4)
    assert shifted.tolist() == [[[0], [0]]]


@pytest.mark.parametrize(("space", "batch", "fits"), [(2**20, 7, True), (2**20, 8, False), (2**21, 1, False)])
def test_64_bits_have_to_hold_every_cell(space: Any, batch: Any, fits: Any) -> None:
    """Beyond 2**63 cells two of them would share a number (PITFALLS B02: refused before anything is computed)."""
    params = settings_of((space,) * 3, ONE, batch=batch)
    descriptors = {
        name: Descriptor("ARRAY", "int32", dims)
        for name, dims in {
            "indices": (1, 4), "out_indices": (1, 4), "indice_pairs": (1, 2, 1), "indice_num": (1,),
        }.items()
    }  # fmt: skip
    found = [violation.rule for violation in violations(OPERATOR.contract, descriptors, params)]
    assert found == ([] if fits else ["64 bits hold the number of every cell"])


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pad", "dilation", "expected"),
    [(10, 3, 1, 0, 2, 6), (3, 3, 1, 0, 1, 1), (11, 3, 2, 0, 1, 5), (360, 3, 2, 1, 1, 180), (2, 3, 1, 0, 1, 0)],
)
def test_output_space(size: Any, kernel: Any, stride: Any, pad: Any, dilation: Any, expected: Any) -> None:
    params = settings_of((size,) * 3, (kernel,) * 3, (stride,) * 3, (pad,) * 3, (dilation,) * 3)
    assert OPERATOR.contract.bind({}, params)["output_space"] == (expected,) * 3


def test_16_cubed_kernel_offsets_are_quick() -> None:
    _, _, num = rulebook([[0, 9, 9, 9]], space=(32, 32, 32), kernel=(16, 16, 16))
    assert num.shape == (4096,)
    assert num.sum() == 10**3  # kernel offsets 0 to 9 on each axis


def check(indices: Any, **params: Any) -> Any:
    OPERATOR.check_values({"indices": np.asarray(indices, np.int32)}, OPERATOR.contract.bind({}, settings_of(**params)))


def test_sites_twice_or_outside_are_refused_with_row_column_and_bound() -> None:
    space = (10, 20, 40)
    check([[0, 9, 19, 39], [1, 9, 19, 39]], space=space, kernel=ONE, batch=2)
    with pytest.raises(InputError, match=r"row 1: h is 25, expected 0 to 19"):
        check([[0, 1, 1, 1], [0, 1, 25, 1]], space=space, kernel=ONE)
    with pytest.raises(InputError, match=r"row 0: n is 1, expected 0 to 0"):
        check([[1, 1, 1, 1]], space=space, kernel=ONE)
    with pytest.raises(InputError, match=r"\[0, 1, 2, 3\] is there twice"):
        check([[0, 0, 0, 0], [0, 1, 2, 3], [0, 1, 2, 3]], space=space, kernel=ONE)


@pytest.mark.parametrize(
    ("sites", "batch", "space"),
    [(500, 2, (8, 64, 64)), (60, 1, (3, 4, 5)), (1, 3, (1, 1, 1)), (30, 3, (1, 2, 5)), (1000, 4, (1, 200, 200)),
     (7, 4, (1324, 1324, 1324)), (3, 2**31 - 1, (5, 5, 5)), (0, 2, (5, 5, 5))],
)  # fmt: skip
def test_drawn_sites_are_unique_in_bounds_and_reproducible(sites: Any, batch: Any, space: Any) -> None:
    env = {**OPERATOR.contract.bind({}, settings_of(space, ONE, batch=batch)), "L": sites}
    drawn: Any = OPERATOR.draw("indices", "lidar", env, np.random.default_rng(11), {})
    assert drawn.shape == (sites, 4)
    assert drawn.dtype == np.int32
    assert len(np.unique(drawn, axis=0)) == sites
    assert (drawn >= 0).all()
    assert (drawn < [batch, *space]).all()
    np.testing.assert_array_equal(drawn, OPERATOR.draw("indices", "lidar", env, np.random.default_rng(11), {}))


def test_drawn_sites_lie_on_surfaces() -> None:
    """Neighbours are far more frequent than among sites drawn anywhere (0.6 % of the cells are active)."""
    params = settings_of((20, 200, 200), (3, 3, 3), pad=ONE, sub_m=1)
    env = {**OPERATOR.contract.bind({}, params), "L": 5000}
    sites: Any = OPERATOR.draw("indices", "lidar", env, np.random.default_rng(12), {})
    num = OPERATOR.reference({"indices": sites}, env)["indice_num"]
    assert num.sum() - num[13] > 5 * (5000 * 26 * 5000 / 800_000)


def test_a_given_number_of_outputs_is_met_exactly() -> None:
    params = settings_of((11, 90, 90), (3, 3, 3), (2, 2, 2), (0, 1, 1), batch=2)
    env = {**OPERATOR.contract.bind({}, params), "L": 4100, "A": 1613}
    sites: Any = OPERATOR.draw("indices", "lidar", env, np.random.default_rng(13), {})
    OPERATOR.check_values({"indices": sites}, env)
    assert len(OPERATOR.reference({"indices": sites}, env)["out_indices"]) == 1613
    with pytest.raises(InputError, match="can't reach exactly 1613 outputs"):
        OPERATOR.draw("indices", "lidar", {**env, "L": 100}, np.random.default_rng(13), {})


def test_theoretical_work() -> None:
    env = OPERATOR.contract.bind({"indices": (10, 4)}, settings_of((5, 5, 5), (3, 3, 3), pad=ONE, batch=2, sub_m=1))
    assert OPERATOR.theory_ops(env, {}, {}) == 48 * 27 * 10 + 6 * 10 + 2 * 27 + 1
    assert OPERATOR.theory_ops({**env, "sub_m": 0}, {}, {}) == 56 * 27 * 10 + 2 * 27 + 1


def test_the_public_rulebook_has_our_form(shared: Any) -> None:
    """The public sparse-convolution case: ten sites, each paired at all nine offsets, inputs in the order of j."""
    with read_case(shared / "public_cases/prototxt/indice_convolution_backward_data/case_0.prototxt") as case:
        public = case.inputs[2].array()
        message: Any = case.params_message()
        counts = list(message.indice_num)
    sites = np.array([(n, 0, 2, 2) for n in range(10)], np.int32)  # one in the middle of each batch's plane
    _, pairs, num = rulebook(sites, space=(1, 5, 5), kernel=(1, 3, 3), batch=10)
    assert pairs.shape == public.shape == (9, 2, 10)
    assert num.tolist() == counts
    assert np.array_equal(pairs[:, 0], public[:, 0])
    for k, (kh, kw) in enumerate(np.ndindex(3, 3)):  # every cell is reached: a row is its cell's number
        assert pairs[k, 1].tolist() == [9 * n + (2 - kh) * 3 + 2 - kw for n in range(10)]
