"""Contracts as source: read back they are the same, and a formatter leaves them as they are."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from generators import Contract, Coordinate, Criterion, Parameter, Relation, RowSum, Rule, TensorSpec
from generators.operator_registry import operators
from mluops_cli.new_operator.source import Code, source

NAMES = {
    each.__name__: each for each in (Contract, Coordinate, Criterion, Parameter, Relation, RowSum, Rule, TensorSpec)
}


@pytest.mark.parametrize("op", sorted(operators()))
def test_the_source_of_a_contract_is_the_contract(op: str) -> None:
    contract = operators()[op].contract
    read = eval(source(contract), dict(NAMES))
    assert {each.name: getattr(read, each.name) for each in fields(read)} == {
        each.name: getattr(contract, each.name) for each in fields(contract)
    }


def test_a_formatter_has_nothing_to_do(tmp_path: Path) -> None:
    lines = [
        f"{op} = {source(operator.contract, before=len(op) + 3)}\n" for op, operator in sorted(operators().items())
    ]
    (tmp_path / "contracts.py").write_text("".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "format", "--no-cache", "--diff", "--line-length", "120", "contracts.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_values() -> None:
    assert source('a "b"\n') == '"a \\"b\\"\\n"'
    assert source(("a",)) == '("a",)'
    assert source({"uniform": [-1, 0.5]}) == '{"uniform": [-1, 0.5]}'
    assert source(Parameter("n", minimum=1, kind="float")) == 'Parameter("n", minimum=1, kind="float")'
    assert source((("half",), (Code("N"), Code('params["k"]')))) == '(("half",), (N, params["k"]))'
    assert source((Code("N" * 60), Code("M" * 60))) == f"(\n    {'N' * 60},\n    {'M' * 60},\n)"
