"""What the tests of a generated package say of a contract that was edited, and of an output without an error bound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.new_operator.test_package import exchanged, make

NO_BOUND = "output y has no error bound: a kernel that accumulates in half may pass"
BOUND = """return {"y": inputs["x"].astype("float64").sum(axis=1)}

    def error_bound(self, inputs, env, *, baseline=None, accumulate=None):
        return {"y": abs(inputs["x"]).sum(axis=1, dtype="float64") * 1e-6}
"""


@pytest.fixture
def row_sums(tmp_path: Path, cli: Cli) -> Path:
    """A package whose output has been made to hold the sums of rows, with a reference kernel and without a bound."""
    assert cli("new-operator", "row_sums", "--out", tmp_path / "row_sums").code == 0
    package = tmp_path / "row_sums" / "mluops_row_sums"
    changes = {
        '"N C",\n                criteria': '"N",\n                criteria',
        'raise NotImplementedError("write it here")': BOUND.partition("\n")[0],
    }
    for old, new in changes.items():
        assert exchanged(package / "operators.py", old, new) == 1
    return package


def test_checks_of_another_contract_are_one_failure(row_sums: Path) -> None:
    ran = make(row_sums.parent, "test")
    assert ran.returncode == 2
    assert re.search(r"^1 failed, \d+ passed, \d+ skipped", ran.stdout, re.MULTILINE), ran.stdout
    module = row_sums / "implementation.py"
    line = module.read_text(encoding="utf-8").partition("def refusal")[0].count("\n") + 1
    told = f"{module}:{line}: a legal call is refused with BAD_PARAM: these checks must follow the contract"
    assert f"AssertionError: {told}" in ran.stdout


@pytest.mark.slow
def test_an_output_without_an_error_bound_is_named(row_sums: Path) -> None:
    assert (
        exchanged(
            row_sums / "implementation.py", '"y": (("float",), "ARRAY", (N, C))', '"y": (("float",), "ARRAY", (N,))'
        )
        == 1
    )
    without = make(row_sums.parent, "test")
    assert without.returncode == 0, without.stdout
    assert (
        len(re.findall(rf"^SKIPPED \[\d+\] tests/test_reference.py:\d+: {NO_BOUND}$", without.stdout, re.MULTILINE))
        == 1
    )
    assert exchanged(row_sums / "operators.py", BOUND.partition("\n")[0], BOUND) == 1
    bounded = make(row_sums.parent, "test")
    assert bounded.returncode == 0, bounded.stdout
    assert "error bound" not in bounded.stdout
