"""Memory as implementations get it: the bytes an array covers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.implementations.canary_buffer import memory_of
from mluops_cli.implementations.workspace import poisoned


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16, ml_dtypes.bfloat16, np.bool_, np.complex64])
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 4), (1,), (3, 1, 2)])
def test_a_dense_array_is_its_bytes(dtype: Any, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    memory = memory_of(array)
    assert memory.tobytes() == array.tobytes()
    assert memory.dtype == np.uint8
    assert array.size == 0 or np.may_share_memory(memory, array)


def test_gaps_of_a_strided_array_are_included() -> None:
    whole = np.arange(20, dtype=np.int16)
    array = np.lib.stride_tricks.as_strided(whole[2:], (2, 3), (16, 4))
    assert memory_of(array).view(np.int16).tolist() == list(range(2, 2 + 8 + 4 + 1))
    memory_of(array)[:] = 0
    assert array.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert (whole[1], whole[2], whole[14], whole[15]) == (1, 0, 0, 15)


def test_it_can_be_written_to_where_the_array_can() -> None:
    array = np.zeros((2, 2), np.float32)
    memory_of(array)[:4] = np.frombuffer(np.float32(1.5).tobytes(), np.uint8)
    assert array[0, 0] == 1.5
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        memory_of(array)[0] = 1


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_workspace_is_poisoned(size: int) -> None:
    memory = poisoned(size)
    assert memory.bytes.tolist() == [255] * size
    assert memory.corruption() is None
