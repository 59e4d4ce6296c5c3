"""Words of a spec that are made of a case mean what the case has."""

from __future__ import annotations

from typing import Any

import pytest

from generators.contracts.faults import CALL_FAULTS, TENSOR_FAULTS, Fault
from generators.specs.conversions import convert_expect, convert_faults, expect_words, fault_words, tensor_words
from schemas.tensor_descriptor import Descriptor

FAULTS = [*map(Fault, CALL_FAULTS), *(Fault(kind, "x") for kind in TENSOR_FAULTS)]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_faults_become_words_and_faults_again(fault: Fault) -> None:
    assert convert_faults(fault_words([fault])) == (fault,)


def test_two_tensors_with_one_fault_stand_in_one_list() -> None:
    faults = [Fault("null_pointer", "x"), Fault("null_pointer", "y")]
    assert fault_words(faults) == {"null_pointers": ["x", "y"]}


@pytest.mark.parametrize("expect", [("BAD_PARAM",), ("BAD_PARAM", "NOT_SUPPORTED")])
@pytest.mark.parametrize("beyond", [False, True])
def test_expected_statuses(expect: tuple[str, ...], beyond: bool) -> None:
    ((key, words),) = expect_words(expect, beyond_design=beyond).items()
    assert (key, convert_expect(words)) == ("expect_beyond_design" if beyond else "expect", expect)


@pytest.mark.parametrize(
    ("found", "more"),
    [
        (Descriptor("NHWC", "float", (2, 3)), {}),
        (Descriptor("NHWC", "half", (2, 3)), {"dtype": "half"}),
        (Descriptor("NCHW", "float", (2, 3), (6, 2)), {"layout": "NCHW", "strides": [6, 2]}),
    ],
)
def test_a_tensor_says_what_differs_from_its_defaults(found: Descriptor, more: dict[str, Any]) -> None:
    assert tensor_words(found, "float", "NHWC") == {"shape": [2, 3]} | more
