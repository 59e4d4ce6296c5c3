from __future__ import annotations

import random

import pytest

from mluops_cli.core.filters import parse_keywords, parse_shard, shard
from schemas.errors import InputError

IDS = ["roi_crop_forward/network/a", "roi_crop_forward/general/b", "psamask_forward/network/c"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("network", [0, 2]),
        ("NETWORK", [0, 2]),
        ("roi and network", [0]),
        ("roi or network", [0, 1, 2]),
        ("not roi", [2]),
        ("not not roi", [0, 1]),
        ("psamask or roi and general", [1, 2]),
        ("(psamask or roi) and general", [1]),
        ("not (psamask or general)", [0]),
        ("forward/network/c", [2]),
        ("android", []),
    ],
)
def test_keywords(text: str, expected: list[int]) -> None:
    matches = parse_keywords(text)
    assert [number for number, case in enumerate(IDS) if matches(case)] == expected


@pytest.mark.parametrize("text", ["", "and", "a and", "a b", "(a", "a)", "not", "a or or b", "()"])
def test_keywords_that_are_no_expression(text: str) -> None:
    with pytest.raises(InputError, match="-k"):
        parse_keywords(text)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3"])
def test_shards_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="expected I/N"):
        parse_shard(text)


def test_shards_cover_everything_once_evenly_and_stably() -> None:
    sizes = {f"case{number}": random.Random(number).randrange(1, 1000) for number in range(101)}
    cases = list(sizes)
    parts = [shard(cases, index, 4, sizes.__getitem__, str) for index in (1, 2, 3, 4)]
    assert sorted(case for part in parts for case in part) == sorted(cases)
    loads = [sum(sizes[case] for case in part) for part in parts]
    # Heaviest first to the lightest: no two loads differ by more than the largest case.
    assert max(loads) - min(loads) <= max(sizes.values())
    shuffled = cases[::-1]
    assert sorted(shard(shuffled, 2, 4, sizes.__getitem__, str)) == sorted(parts[1])
    assert parts[1] == [case for case in cases if case in set(parts[1])]
