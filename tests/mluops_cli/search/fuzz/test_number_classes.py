from __future__ import annotations

from random import Random

import pytest

from mluops_cli.search.fuzz.number_classes import INT_MAX, MEMBERS, class_of, pick, within


def test_every_member_is_of_its_class() -> None:
    assert {class_of(number) for members in MEMBERS.values() for number in members} == set(MEMBERS)
    assert all(class_of(number) == name for name, members in MEMBERS.items() for number in members)


@pytest.mark.parametrize("number", [0, 1, 2, 3, 83, 97, 15, 16, 17, 127, 1023, 1024, 1025, 2049, 32769, 65537, INT_MAX])
def test_numbers_where_faults_live_are_drawn(number: int) -> None:
    assert number in MEMBERS[class_of(number)]


@pytest.mark.parametrize(
    ("number", "name"),
    [(-1, "-128 to -1"), (3, "3"), (64, "16 to 129, 2^k"), (65, "16 to 129, 2^k ± 1"), (83, "16 to 129, odd"),
     (100, "16 to 129, even"), (255, "130 to 2049, 2^k ± 1"), (2050, "2050 to 2^18"), (2**20, "above 2^18")],
)  # fmt: skip
def test_the_class_of_a_number(number: int, name: str) -> None:
    assert class_of(number) == name


def test_a_number_is_picked_within_bounds() -> None:
    rng = Random(1)
    drawn = {pick(rng, "16 to 129, 2^k", 20, 70) for _ in range(50)}
    assert drawn == {32, 64}
    assert pick(rng, "16 to 129, 2^k", 65, 100) is None
    assert within(1, 3) == ("1", "2", "3")
