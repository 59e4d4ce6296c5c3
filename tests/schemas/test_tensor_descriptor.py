"""How strides relate to a shape: held against NumPy's own strides."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tensor_descriptor import Descriptor, dense_strides, span, sparse_strides


@pytest.mark.parametrize("dims", [(), (5,), (2, 3, 4), (1, 1, 7), (3, 1, 2)])
def test_dense_strides_are_those_of_numpy(dims: tuple[int, ...]) -> None:
    strides = np.empty(dims, np.int8).strides
    assert dense_strides(dims) == strides
    assert dense_strides(list(dims)) == strides
    assert sparse_strides(dims, strides) is None
    assert span(dims, None) == span(dims, strides) == np.prod(dims, dtype=int)


def test_other_strides_stay() -> None:
    assert sparse_strides((2, 3), (4, 1)) == (4, 1)
    assert span((2, 3), (4, 1)) == 7  # 0 to 2 and 4 to 6
    assert span((2, 3), (0, 0)) == 1
    assert span((2, 0), (9, 9)) == 0
    with pytest.raises(ValueError, match=r"1 strides \[4\] for 2 dims \[2, 3\]"):
        sparse_strides((2, 3), (4,))


def test_sizes_are_exact_beyond_64_bits() -> None:
    assert dense_strides((2, 2**40, 2**40)) == (2**80, 2**40, 1)
    assert Descriptor("ARRAY", "float", (2**40, 2**40)).elements == 2**80


def test_a_descriptor_reads_like_a_mapping_too() -> None:
    descriptor = Descriptor("NHWC", "half", (1, 2), (4, 2))
    assert (descriptor["layout"], descriptor["dims"], descriptor["strides"]) == ("NHWC", (1, 2), (4, 2))
    with pytest.raises(KeyError):
        descriptor["elements"]
