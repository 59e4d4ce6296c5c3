"""--relations with programs: related calls through folders and case files, and what is said where one can't be run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.operator_registry import operators
from generators.specs.expansion import expand_operator
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case.case_run import prepare, run_case
from mluops_cli.implementations.exec import Exec
from schemas.casefiles.reading import read_case
from tests.conftest import PROJECT

# A program on case files: the reference kernel. argv: CASE OUT, then a factor for a batch of one.
KERNEL = """
import sys
from pathlib import Path
import numpy as np
from generators.contracts.binding import bind
from generators.operator_registry import operators
from schemas.casefiles.reading import read_case, write_case
with read_case(Path(sys.argv[1])) as case:
    bound = bind(case, operators()[case.op])
    computed = bound.computed(bound.input_arrays())
    if len(bound.input_arrays()["input"]) == 1:
        computed = {name: array * np.float32(sys.argv[3]) for name, array in computed.items()}
    write_case(Path(sys.argv[2]), case.node, [None] * len(case.inputs), list(computed.values()))
"""
FORWARD_ONLY = """
def kernel(op, inputs, outputs, params, **rest):
    from mluops_cli.search.faulty_kernels.psamask import right
    if op.endswith("backward"):
        raise KeyError("there is no such kernel")
    return right(op, inputs, outputs, params, **rest)
"""


def small_case(op: str, folder: Path, accepted: Callable[[Any], bool] = lambda case: True) -> Path:
    """The file of the smallest valid case of the suite general that is accepted."""
    cases = [each for each in expand_operator(op, {"general"}) if each.valid and accepted(each)]

    case = min(cases, key=lambda each: sum(prod(plan.dims) for plan in each.inputs))
    generate(case, WriteOptions(folder))
    return folder / f"{case.id}.pb"


@pytest.mark.parametrize("op", sorted(operators()))
def test_a_call_from_no_case_file_is_written_as_one_from_a_file(tmp_path: Path, op: str) -> None:
    """What the program is told of a related call, down to its parameters, is what it is told of a case."""
    command = f"{sys.executable} {{case}} {{out}}"
    told = []
    with read_case(small_case(op, tmp_path / "cases")) as file:
        call = prepare(file).call
        for number, node in enumerate((call.node, None)):
            folder = tmp_path / str(number)
            folder.mkdir()
            Exec(command).exchange.write(replace(call, node=node), folder)
            with read_case(folder / "case.pb") as written:
                node = written.node
                tensors = [
                    (each.id, list(each.shape.dims), each.dtype, each.layout) for each in (*node.input, *node.output)
                ]
                values = [each.array().tobytes() for each in written.inputs]
                told.append((node.op_name, str(getattr(node, f"{op}_param", "")), tensors, values))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("factor", "verdict", "status"),
    [pytest.param("1", "holds", "pass", marks=pytest.mark.slow), ("1.01", "broken: ", "fail")],
)
def test_relations_through_case_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: str, verdict: str, status: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    (tmp_path / "program.py").write_text(KERNEL)
    program = Exec(f"{sys.executable} {tmp_path / 'program.py'} {{case}} {{out}} {factor}")
    path = small_case("roi_crop_forward", tmp_path, lambda case: case.inputs[0].dims[0] == 2 < case.inputs[0].dims[3])
    settings = WorkerSettings(CaseOptions("exec", relations=True))
    result = run_case({"file": str(path), "manifest_meta": None}, program, settings)
    assert result["status"] == status, result["reason"]
    told = result["relations"]
    assert told.pop("batch").startswith(verdict)
    assert told.pop("adjoint").startswith("not run: roi_crop_backward: the program ended with exit code 1")
    assert {*told.values()} == {"holds"}
    assert len(told) == len(operators()["roi_crop_forward"].contract.relations) - 2


def test_a_program_without_the_other_direction_is_not_blamed(tmp_path: Path, run: Any, cli: Any) -> None:
    """By a folder; the console says what was not run, and the exit code is that of a pass."""
    assert cli("gen", "psamask_forward", "--suite", "demo", "--out", tmp_path / "cases").code == 0
    command = f"exec:{sys.executable} {PROJECT / 'examples' / 'exec_python' / 'psamask.py'} {{dir}}"
    case = tmp_path / "cases" / "psamask_forward" / "demo" / "square_collect.pb"
    ran = run(case, "--impl", command, "--relations")
    (record,) = ran.records.values()
    assert (ran.code, record["status"]) == (0, "pass"), record["reason"]
    assert record["relations"].pop("adjoint").startswith("not run: psamask_backward: ")
    assert {*record["relations"].values()} == {"holds"}
    assert "relation adjoint was not run in 1 case, the first: psamask_backward: " in ran.out


def test_a_callable_without_the_other_direction_is_not_blamed(tmp_path: Path, run: Any) -> None:
    path = small_case("psamask_forward", tmp_path)
    (tmp_path / "mine.py").write_text(FORWARD_ONLY)
    ran = run(path, "--impl", f"python:{tmp_path / 'mine.py'}:kernel", "--relations")
    (record,) = ran.records.values()
    assert (ran.code, record["status"]) == (0, "pass"), record["reason"]
    expected = "not run: psamask_backward: raised KeyError: 'there is no such kernel' ("
    assert record["relations"]["adjoint"].startswith(expected)
