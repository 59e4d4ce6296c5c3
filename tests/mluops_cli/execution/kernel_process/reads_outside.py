"""Right kernels that also read 64 elements beside one of their inputs; the name says which, and on which side."""

import ctypes
from typing import Any

from mluops_cli.search.faulty_kernels.catalogue import plugin

COUNT = 64


class _Reader:
    def __init__(self, number: int, *, before: bool) -> None:
        self.number = number
        self.before = before

    def __call__(self, op: str, inputs: Any, outputs: Any, params: Any, **rest: Any) -> Any:
        status = plugin(op).right(op, inputs, outputs, params, **rest)
        array = list(inputs.values())[self.number]
        size = COUNT * array.itemsize
        ctypes.string_at(array.ctypes.data + (-size if self.before else array.nbytes), size)
        return status

    def workspace_size(self, op: str, inputs: Any, outputs: Any, params: Any, size: Any) -> Any:
        kernel = plugin(op).right
        return kernel.workspace_size(op, inputs, outputs, params, size) if op == "get_indice_pairs" else None


def _then(kernel: _Reader, what: Any) -> Any:
    def called(*arguments: Any, **rest: Any) -> Any:
        kernel(*arguments, **rest)
        return what()

    return called


def _raise() -> None:
    raise KeyError("lost")


beyond_0, beyond_1, beyond_2 = (_Reader(number, before=False) for number in range(3))
before_0, before_1, before_2 = (_Reader(number, before=True) for number in range(3))


def uses_what_is_beside(op: str, inputs: Any, outputs: Any, params: Any, **rest: Any) -> Any:
    """Add the four bytes behind the first input to the outputs: the rest of a page, which is no guard page."""
    status = plugin(op).right(op, inputs, outputs, params, **rest)
    array = next(iter(inputs.values()))
    beside = ctypes.c_float.from_address(array.ctypes.data + array.nbytes).value
    for output in outputs.values():
        output[...] += beside * 0
    return status


beyond_and_raises, beyond_and_wrong_answer = _then(beyond_0, _raise), _then(beyond_0, lambda: "NO_STATUS")
