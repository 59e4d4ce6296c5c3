"""Which case an argument names, and what is said where it names none."""

from __future__ import annotations

import pytest

from mluops_cli.commands.named_cases import case_named
from schemas.errors import InputError

MANY = [f"mean_pool/general/mean_{number}" for number in range(20)]


def test_an_id_and_a_part_that_one_id_has() -> None:
    assert case_named(MANY[1], MANY, "case", "of this run") == MANY[1]
    assert case_named("mean_19", MANY, "case", "of this run") == MANY[19]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mean_1", "mean_1 fits 11 cases: {0[1]}, {0[10]}, {0[11]} and 8 more; give the whole id"),
        ("meen_3", "no case of this run is called meen_3: did you mean 'mean_3'?"),
        ("0x", "no case of this run is called 0x: expected one of 20, such as mean_0"),
        ("x/y", "no case of this run is called x/y: expected one of 20, such as mean_pool/general/mean_0"),
    ],
)
def test_no_case_or_several(text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        case_named(text, MANY, "case", "of this run")
    assert str(raised.value) == said.format(MANY)


def test_few_names_are_listed() -> None:
    with pytest.raises(InputError, match=r"is called q: expected one of mean_0, mean_1$"):
        case_named("q", MANY[:2], "case", "of this run")
