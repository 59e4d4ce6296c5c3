"""Callables for `--impl python:`: right but for what their names say.

The baselines of alien_op are in the case file, which an implementation isn't shown. In this process `right` finds them
as no honest one could, so that the tests need no second way of computing them. A run calls in another process, where
there is none to be found: `copies` is right for cases whose output is their input.
"""

import gc
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from mluops_cli.execution.case.calls import Prepared

Array = np.ndarray[Any, Any]
Arrays = dict[str, Any]
Params = dict[str, Any]
Kernel = Callable[..., Any]

NOTED: list[list[Array]] = []
_calls: Counter[str] = Counter()


def right(outputs: Arrays) -> dict[str, Array]:
    """The baselines of the case whose outputs these are."""
    own = {name: array.ctypes.data for name, array in outputs.items()}
    for each in gc.get_objects():
        if isinstance(each, Prepared):
            held = {name: buffer.array.ctypes.data for name, buffer in each.outputs.items()}
            if held == own:
                return each.baseline
    raise LookupError("no such case")


def baseline(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    for name, array in right(outputs).items():
        outputs[name][...] = array


def copies(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    outputs["out0"][...] = inputs["in"]


def copies_not_finite_mixed(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    copies(op, inputs, outputs, params)
    outputs["out0"][3:6] = [-np.inf, np.nan, np.inf]


def _changed(change: Callable[[Arrays], None]) -> Kernel:
    def call(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
        baseline(op, inputs, outputs, params)
        change(outputs)

    return call


def _set(outputs: Arrays, at: Any, value: Any, name: str = "out0") -> None:
    outputs[name].reshape(-1)[at] = value


all_nan = _changed(lambda outputs: _set(outputs, slice(None), np.nan))
one_nan = _changed(lambda outputs: _set(outputs, 17, np.nan))
one_inf = _changed(lambda outputs: _set(outputs, 17, np.inf))
inf_of_the_other_sign = _changed(lambda outputs: _set(outputs, 0, -np.inf))
ninety_nine = _changed(lambda outputs: _set(outputs, -1, 99))
zeros = _changed(lambda outputs: _set(outputs, slice(None), 0))
ones = _changed(lambda outputs: _set(outputs, slice(None), 1))
second_wrong = _changed(lambda outputs: _set(outputs, 1, 99, "out1"))
zero_for_nan = _changed(lambda outputs: _set(outputs, 3, 0))


def _round_and_spoil(outputs: Arrays) -> Any:
    """All elements off by a rounding difference, two of them by much more."""
    outputs["out0"][...] *= np.float32(1 + 1e-6)
    _set(outputs, [2000, 2001], 99)


noise_and_two_wrong = _changed(_round_and_spoil)


def writes_nothing(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    pass


def writes_first_only(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    outputs["out0"][...] = right(outputs)["out0"]


def writes_all_but_last(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    outputs["out0"][:-1] = right(outputs)["out0"][:-1]


def replaces(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    outputs["out0"] = right(outputs)["out0"]


def says_big_endian(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """The bytes are in the wrong order, but the array says so."""
    baseline(op, inputs, outputs, params)
    outputs["out0"].view(np.uint8)[...] = outputs["out0"].byteswap().view(np.uint8)
    outputs["out0"].dtype = ">f4"


def says_transposed(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Stored transposed, but the strides say so."""
    baseline(op, inputs, outputs, params)
    y = outputs["out0"]
    y.reshape(-1)[...] = y.T.copy().reshape(-1)
    y.strides = y.strides[::-1]


def flattens(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Right, and its arrays flattened in place."""
    baseline(op, inputs, outputs, params)
    inputs["in"].shape = outputs["out0"].shape = (-1,)


def notes_sentinels(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    NOTED.append([array.copy() for array in outputs.values()])
    baseline(op, inputs, outputs, params)


def wavers(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Within the tolerance, never twice the same."""
    _calls["wavers"] += 1
    baseline(op, inputs, outputs, params)
    outputs["out0"][0] *= np.float32(1 + 1e-5 * _calls["wavers"])


def right_once(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    _calls["right_once"] += 1
    baseline(op, inputs, outputs, params)
    if _calls["right_once"] > 1:
        outputs["out0"][...] = 0


def _pairs(inputs: Arrays, params: Params) -> dict[str, Array]:
    """The rulebook, by loops; for a filter of 3 cells per axis, and stride, pad and dilation of 1."""
    sites = inputs["indices"].tolist()
    reached = [
        (k, j, (n, d + 1 - kd, h + 1 - kh, w + 1 - kw))
        for k, (kd, kh, kw) in enumerate(product(range(3), repeat=3))
        for j, (n, d, h, w) in enumerate(sites)
    ]
    inside = [each for each in reached if all(0 <= at < 4 for at in each[2][1:])]
    assert params["output_space"] == [4, 4, 4]
    cells = sorted({cell for _, _, cell in inside})
    pairs, num = np.full((27, 2, len(sites)), -1, np.int32), np.zeros(27, np.int32)
    for k, j, cell in inside:
        pairs[k, :, num[k]] = j, cells.index(cell)
        num[k] += 1
    return {"out_indices": np.array(cells, np.int32), "indice_pairs": pairs, "indice_num": num}


def _answer(outputs: Arrays, found: Mapping[str, Array]) -> dict[str, Any]:
    for name, array in found.items():
        outputs[name][...] = array
    return {"status": 0, "num_act_out": len(found["out_indices"])}


def rulebook(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    return _answer(outputs, _pairs(inputs, params))


def rulebook_reversed(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Rows in the opposite order, the pairs renumbered."""
    found = _pairs(inputs, params)
    found["out_indices"] = found["out_indices"][::-1]
    last = len(found["out_indices"]) - 1
    for k, count in enumerate(found["indice_num"]):
        found["indice_pairs"][k, 1, :count] = last - found["indice_pairs"][k, 1, :count]
    return _answer(outputs, found)


def rulebook_half_reversed(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Rows in the opposite order, the pairs left as they were."""
    found = _pairs(inputs, params)
    found["out_indices"] = found["out_indices"][::-1]
    return _answer(outputs, found)


def rulebook_tail(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Anything behind the defined pairs."""
    found = _pairs(inputs, params)
    for k, count in enumerate(found["indice_num"]):
        found["indice_pairs"][k, :, count:] = 77
    return _answer(outputs, found)


def rulebook_count(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    return _answer(outputs, _pairs(inputs, params)) | {"num_act_out": 1}


def rulebook_uncounted(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> None:
    """num_act_out is left out."""
    _answer(outputs, _pairs(inputs, params))


def returns_at_once(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """What an implementation does whose design returns at once for zero elements."""


def _counted(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> int:
    """A right rulebook; the number of rows of out_indices that are defined."""
    found = right(outputs)
    for name, array in found.items():
        outputs[name][: len(array)] = array
    return len(found["out_indices"])


def rubbish_behind_the_rows(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    rows = _counted(op, inputs, outputs, params)
    outputs["out_indices"][rows:] = 7
    return {"num_act_out": rows}


def last_row_missing(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    rows = _counted(op, inputs, outputs, params)
    outputs["out_indices"][rows - 1] = -1


def counts_the_capacity(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    _counted(op, inputs, outputs, params)
    return {"num_act_out": len(outputs["out_indices"])}
