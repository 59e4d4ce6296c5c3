"""Reference kernels on their largest network cases: against PyTorch on one thread, and the memory of a rulebook.

PyTorch's rows need it: `.venv-torch/bin/python -m benchmarks references`, after `make test-torch`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from benchmarks.measure import Row, peak, ratio
from generators.casegen.case_data import case_bytes, draw_inputs
from generators.contracts.case import Case
from generators.contracts.model import Env
from generators.contracts.operator import Arrays, Operator
from generators.operator_registry import operator_named, operators
from generators.specs.expansion import expand_operator
from mluops_cli.implementations.torch import Torch

_PAIRS = 3  # the largest cases take seconds


def rows() -> Iterator[Row]:
    """The rulebook's memory; then, where torch is installed, each operator's time against a PyTorch composition."""
    yield _rulebook_memory()
    if Torch.unavailable():
        return
    importlib.import_module("torch").set_num_threads(1)  # may not be installed
    compositions = Torch().kernels
    for op, operator in operators().items():
        if op in compositions:
            yield _against_torch(operator, compositions[op])


def _against_torch(operator: Operator, composition: Any) -> Row:
    """The reference kernel against the composition alone: tensors are handed over, and checked, before."""
    torch = importlib.import_module("torch")
    case = max(expand_operator(operator.contract.op, {"network"}), key=case_bytes)
    inputs, env = drawn(case, operator)
    shapes = {plan.name: plan.dims for plan in case.outputs}
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}

    def composed() -> None:
        with torch.inference_mode():
            composition.compute(tensors, env, shapes)

    return ratio(f"{case.id}: reference / PyTorch", reference(operator, inputs, env), composed, 2, _PAIRS)


def _rulebook_memory() -> Row:
    """get_indice_pairs, network case (1): what the reference allocates at most, and what the dense grid would take."""
    operator = operator_named("get_indice_pairs")
    case = next(expand_operator("get_indice_pairs", {"network"}))
    inputs, env = drawn(case, operator)
    grid = 4 * env["batch"] * prod(env["output_space"])  # bytes: a row number, int32, per cell
    most = peak(reference(operator, inputs, env))
    note = f"{most:,} bytes against {grid:,}"
    return Row(f"{case.id}: peak memory of the reference / dense grid", most / grid, "x", 1, note=note)


def drawn(case: Case, operator: Operator) -> tuple[Arrays, Env]:
    """The inputs of a case, and the env that the reference kernel gets."""
    inputs = {name: array for name, array in draw_inputs(case, operator).items() if array is not None}
    shapes = {plan.name: plan.dims for plan in (*case.inputs, *case.outputs)}
    return inputs, operator.contract.bind(shapes, case.params)


def reference(operator: Operator, inputs: Arrays, env: Env) -> Callable[[], object]:
    """One call of the reference kernel, as something to be timed."""
    return lambda: operator.reference(inputs, env)
