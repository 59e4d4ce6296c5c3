"""What is drawn: legal entries of the grammar of specs, for any contract, the same from the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from generators.casegen.case_data import case_bytes
from generators.operator_registry import add_operators, operators
from generators.specs.case_builder import CaseBuilder
from generators.specs.conversions import Problem
from generators.specs.mistakes import mistakes
from generators.specs.models import Entry
from mluops_cli.search.faulty_kernels.catalogue import MODULES
from mluops_cli.search.fuzz.drawing import SUITE, Drawn, draw_call
from mluops_cli.search.fuzz.factors import Domain, domain_of
from mluops_cli.search.fuzz.pairs import Pairs, pairs_of
from tests.downstream.acme_ops import operators as acme

OPS = (*MODULES, "tile_rows")  # tile_rows: of another author
MOST = 4 << 20
COUNT = 150


@pytest.fixture(scope="module", autouse=True)
def _acme() -> Iterator[None]:
    add_operators(acme)
    yield
    del operators()["tile_rows"]
    domain_of.cache_clear()
    pairs_of.cache_clear()


def drawn(domain: Domain, seed: int = 1, count: int = COUNT) -> list[Drawn]:
    found = [draw_call(domain, seed, number, MOST) for number in range(count)]
    return [each for each in found if each is not None]


@pytest.mark.parametrize("op", OPS)
def test_calls_are_legal_entries_within_the_bytes(op: str) -> None:
    domain = domain_of(op)
    calls = drawn(domain)
    assert len(calls) >= COUNT * 0.95
    builder = CaseBuilder(domain.contract, Path(), 1)
    values_refused = 0
    for call in calls:
        assert list(mistakes(Entry, call.entry)) == []
        try:
            case = builder.case(call.entry, SUITE, call.entry["name"], "")
            assert case_bytes(case) <= MOST
        except Problem as problem:
            assert problem.path[0] == "inputs"  # noqa: PT017 - others are illegal sizes and parameters
            assert problem.path[-1] == "dist"  # noqa: PT017
            values_refused += 1
    assert values_refused < COUNT * 0.2


@pytest.mark.parametrize("op", OPS)
def test_the_same_seed_draws_the_same_calls(op: str) -> None:
    first, again, other = (drawn(domain_of(op), seed, 40) for seed in (1, 1, 2))
    assert first == again
    assert [each.classes for each in first] != [each.classes for each in other]


def test_every_second_call_starts_from_the_next_pair_of_classes() -> None:
    pairs = Pairs([("a", ("1", "2")), ("b", ("x", "y", "z")), ("c", ("p", "q"))])
    assert len(pairs) == 2 * 3 + 2 * 2 + 3 * 2
    starts = [tuple(sorted(pairs.start(1, number).items())) for number in range(len(pairs))]
    assert len(set(starts)) == len(pairs)
    assert starts != [tuple(sorted(pairs.start(2, number).items())) for number in range(len(pairs))]


def test_most_pairs_that_calls_start_from_are_kept() -> None:
    domain = domain_of("roi_crop_forward")
    pairs = Pairs(domain.factors)
    kept = 0
    for number in range(65, 265, 2):
        call = draw_call(domain, 1, number, 64 << 20)
        kept += call is not None and pairs.start(1, number // 2).items() <= call.classes.items()
    assert kept > 50


def test_sizes_that_kernels_stumble_over_are_drawn() -> None:
    calls = [draw_call(domain_of("psamask_forward"), 1, number, 64 << 20) for number in range(400)]
    sizes = {
        value for call in calls if call for value in (*call.entry["sizes"].values(), *call.entry["params"].values())
    }
    assert {0, 1, 2, 3, 5, 7, 16, 64} <= sizes
    assert sizes & {127, 128, 129, 255, 256, 257}
    assert max(value for value in sizes if isinstance(value, int)) > 1024
    unequal = [call for call in calls if call and call.entry["params"]["h_mask"] != call.entry["params"]["w_mask"]]
    assert len(unequal) > len(calls) / 2


def test_a_dim_is_drawn_though_it_has_a_default() -> None:
    """num_active_out was N in all calls: no output without a site, and no site without an output."""
    calls = [each.entry for each in drawn(domain_of("indice_convolution_forward"))]
    plain = [each for each in calls if each["params"].get("sub_m", "default") == "default"]
    more = [each["params"]["num_active_out"] > each["sizes"]["N"] for each in plain]
    fewer = [each["params"]["num_active_out"] < each["sizes"]["N"] for each in plain]
    assert min(sum(more), sum(fewer)) > COUNT // 6
    assert len(calls) - len(plain) > COUNT // 30  # with sub_m the two are equal


def test_a_tiny_call_takes_no_long_time() -> None:
    """Samples of a bin are in no tensor: their number squared would take seconds."""
    ratios = []
    for call in drawn(domain_of("roialign_forward"), count=400):
        sizes, params = call.entry["sizes"], call.entry["params"]
        B, H, W, C, K = (sizes[name] for name in "BHWCK")
        bins = params.get("pooled_height", 7) * params.get("pooled_width", 7)
        ratio = params.get("sampling_ratio", 2)
        size = 4 * (max(1, B * H * W * C) + max(1, K) * 5 + max(1, K) * bins * C)
        assert K * bins * C * 8 * max(1, ratio) ** 2 <= max(2**24, 64 * size)
        ratios.append(ratio)
    assert sum(ratio > 129 for ratio in ratios) > 3, "large ones are drawn too, with few bins"
