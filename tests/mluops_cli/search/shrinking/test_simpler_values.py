from __future__ import annotations

from typing import Any

import numpy as np

from mluops_cli.search.shrinking.simpler_values import simpler, simpler_elements, zeroed


def test_no_values_are_simpler_than_0() -> None:
    assert list(simpler({"constant": 0}, signed=True)) == []


def test_what_is_tried_ends_at_the_values_themselves() -> None:
    found: list[Any] = list(simpler({"integers": [0, 1]}, signed=True))
    assert found[0] == {"constant": 0}
    assert {"integers": [0, 1]} not in found
    assert {} not in found


def test_special_values_are_kept_over_simple_ones_at_last() -> None:
    found: list[Any] = list(
        simpler({"uniform": [-1, 1], "nan": 0.3, "special": [5], "special_share": 0.2}, signed=True)
    )
    assert found.index({"constant": 0}) < found.index({"constant": 0, "nan": 0.3})
    assert {"constant": 1, "special": [5], "special_share": 0.2} in found
    assert list(simpler({"constant": 0, "nan": 0.3}, signed=True))[-1] == {}


def test_values_that_are_given_become_whole() -> None:
    values = np.array([0.4, np.nan, -7.6], np.float32)
    found = [each for each in simpler(values, signed=True) if isinstance(each, np.ndarray)]
    np.testing.assert_array_equal(found[0], np.array([0.4, 0, -7.6], np.float32))
    np.testing.assert_array_equal(found[1], np.array([1, np.nan, -1], np.float32))
    np.testing.assert_array_equal(found[2], np.array([0, np.nan, -8], np.float32))


def test_blocks_get_smaller_down_to_single_values() -> None:
    assert list(zeroed(np.zeros(3))) == [(0, 3), (0, 1), (1, 2), (2, 3)]
    assert list(zeroed(np.zeros(0))) == []


def test_one_value() -> None:
    assert list(simpler_elements(np.float32(0))) == []
    assert list(simpler_elements(np.float32(-3.2))) == [0, 1, -1, -2, -3]
    assert list(simpler_elements(np.float32(np.nan))) == [0, 1]
