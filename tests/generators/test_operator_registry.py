"""The registry of operators: entry points of other packages, and contracts that the interface can't hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.contracts.binding import bind
from generators.contracts.case import Case, TensorPlan
from generators.contracts.model import Contract, Parameter, TensorSpec
from generators.contracts.operator import Arrays, Operator
from generators.data.draw import Values
from generators.operator_registry import operators
from schemas.casefiles.reading import read_case
from schemas.errors import InputError
from tests.conftest import PROJECT

GOOD = """
from generators import Contract, Operator, TensorSpec
class Good(Operator):
    contract = Contract("good_op", "pure_io", (TensorSpec("x", ("float",), "ARRAY", "N"),),
                        (TensorSpec("y", ("float",), "ARRAY", "N"),))
    def reference(self, inputs, env):
        return {"y": inputs["x"]}
"""


def entry_point(folder: Path, package: str, name: str, source: str) -> None:
    """An installed package that registers an operator."""
    (folder / f"{package}.py").write_text(source)
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[mluops.operators]\n{package} = {package}:{name}\n")


BROKEN = (  # source of a package, what is said of it
    ("raise RuntimeError('no card')", "RuntimeError: no card"),
    ("raise SystemExit(0)", "SystemExit: 0"),
    ("Broken = 5", "5 is no Operator"),
    ("", "AttributeError"),
    (GOOD.replace("good_op", "psamask_forward").replace("Good", "Broken"), "'psamask_forward' is registered twice"),
)


def test_b9_broken_entry_points_are_named_and_the_others_work(tmp_path: Path) -> None:
    """FOUND B9: one broken package stopped `list` and all other commands."""
    for number, (source, _) in enumerate(BROKEN):
        entry_point(tmp_path, f"broken_{number}", "Broken", source)
    entry_point(tmp_path, "good_package", "Good", GOOD)
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{tmp_path}"}

    def mluops(*arguments: str) -> Any:
        command = [sys.executable, "-m", "mluops_cli", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)

    listed = mluops("list", "psamask_forward")
    assert listed.returncode == 0, listed.stderr
    unknown = mluops("list", "broken_op")
    assert unknown.returncode == 2
    assert "unknown operator 'broken_op'" in unknown.stderr
    for number, (_, problem) in enumerate(BROKEN):
        named = f"entry point 'broken_{number}' of package broken_{number} gives no operator: "
        for said in (listed.stderr, unknown.stderr):
            assert any(named in line and problem in line for line in said.splitlines()), said
    code = "from generators.operator_registry import operator_named; print(operator_named('good_op').contract.op)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert ran.stdout == "good_op\n"


class Stranger(Operator):
    """An operator that the interface knows, with a parameter that its message lacks."""

    contract = Contract(
        op="nms",
        category="pure_io",
        inputs=(TensorSpec("x", ("float",), "ARRAY", "N"),),
        outputs=(TensorSpec("y", ("float",), "ARRAY", "N"),),
        parameters=(Parameter("depth"),),
    )

    def reference(self, inputs: Arrays, env: Any) -> Arrays:
        return {"y": np.abs(inputs["x"])}


def test_b8_a_parameter_that_the_interface_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FOUND B8: it was an AttributeError of the message."""
    monkeypatch.setitem(operators(), "nms", Stranger())
    message = "the contract of nms has a parameter 'depth', the interface's nms_param has only "
    x, y = (TensorPlan(name, "float", "ARRAY", (3,), values=Values("sequence", (0, 1))) for name in "xy")
    with pytest.raises(InputError, match=message):
        generate(Case("nms", "s", "a", {"depth": 1}, (x,), (y,), {"y": ()}), WriteOptions(tmp_path))
    file = tmp_path / "a.prototxt"
    file.write_text(
        'op_name: "nms" input { id: "x" shape { dims: 1 } dtype: DTYPE_FLOAT layout: LAYOUT_ARRAY value_f: 1 }'
        'output { id: "y" shape { dims: 1 } dtype: DTYPE_FLOAT layout: LAYOUT_ARRAY }'
    )
    with pytest.raises(InputError, match=message), read_case(file) as case:
        bind(case, operators()["nms"])


def test_a_plug_in_file_may_be_the_module_of_an_entry_point(tmp_path: Path) -> None:
    """The copy of another file is refused, the file itself is not: it holds the operator that is known."""
    entry_point(tmp_path, "good_package", "Good", GOOD + "OPERATORS = (Good,)\n")
    (tmp_path / "good_copy.py").write_text((tmp_path / "good_package.py").read_text())
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{tmp_path}"}
    told = {}
    for name in ("good_package", "good_copy"):
        listing = ["-m", "mluops_cli", "list", "psamask_forward", "--plugin", str(tmp_path / f"{name}.py")]
        told[name] = subprocess.run(
            [sys.executable, *listing], env=environment, capture_output=True, text=True, check=False
        )
    assert (told["good_package"].returncode, told["good_package"].stderr) == (0, "")
    assert told["good_copy"].returncode == 2
    assert "operator 'good_op' is registered twice" in told["good_copy"].stderr


def test_two_operators_of_one_name_in_a_file_are_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(GOOD + "OPERATORS = (Good, Good)\n")
    command = [sys.executable, "-m", "mluops_cli", "list", "--plugin", str(tmp_path / "twice.py")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    files = " and ".join([str(tmp_path / "twice.py")] * 2)
    assert (ran.returncode, ran.stderr) == (2, f"operator 'good_op' is registered twice, in {files}\n")
