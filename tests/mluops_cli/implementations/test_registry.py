"""Implementations by name, from files and modules; the reference implementation; the list."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from generators.contracts.faults import Fault
from mluops_cli.implementations import registry
from mluops_cli.implementations.base import Call, CannotShow, Implementation, Outcome
from mluops_cli.implementations.loading import load_file
from mluops_cli.main import cli
from schemas.errors import InputError, UnavailableError
from schemas.tensor_descriptor import Descriptor

SOURCE = """
def function(op, inputs, outputs, params): return "BAD_PARAM"
class Kind:
    made = 0
    def __init__(self): Kind.made += 1
    def __call__(self, op, inputs, outputs, params): return {"made": Kind.made}
instance = Kind()
class Space:
    nested = staticmethod(function)
"""


def call(implementation: Implementation) -> Outcome:
    return implementation.call(Call("alien_op", {}, {}, {}, {}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernels.py").write_text(SOURCE)
    package = tmp_path / "some_package_of_kernels"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text("from .other import function\n")
    (package / "other.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_functions_objects_and_classes_of_a_file(folder: Path) -> None:
    assert call(registry.implementation_named("python:kernels.py:function")).status == "BAD_PARAM"
    assert call(registry.implementation_named(f"python:{folder}/kernels.py:instance")).scalars == {"made": 1}
    kind = registry.implementation_named("python:kernels.py:Kind")
    assert call(kind).scalars == call(kind).scalars == {"made": 2}  # made once, not per call
    assert call(registry.implementation_named("python:kernels.py:Space.nested")).status == "BAD_PARAM"


def test_of_a_module_in_the_current_folder(folder: Path) -> None:
    assert call(registry.implementation_named("python:some_package_of_kernels.inner:function")).status == "BAD_PARAM"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("referenz", InputError, "did you mean 'reference'"),
        ("python", InputError, "expected FILE.py:NAME"),
        ("python:kernels.py", InputError, "expected FILE.py:NAME"),
        ("python:missing.py:f", InputError, "no such Python file"),
        ("python:kernels.py:functoin", InputError, "did you mean 'function'"),
        ("python:kernels.py:__doc__", InputError, "expected something callable"),
        ("python:some_package_of_kernels.nothing:f", InputError, "no module named 'some_package_of_kernels.nothing'"),
    ],
)
def test_names_that_are_wrong(text: str, error: type[Exception], message: str, folder: Path) -> None:
    with pytest.raises(error, match=message):
        registry.implementation_named(text)


def test_a_package_that_the_file_lacks_is_unavailable(folder: Path) -> None:
    (folder / "needy.py").write_text("\nimport no_such_package_at_all\n")
    with pytest.raises(UnavailableError, match=r"No module named 'no_such_package_at_all' \(.*needy.py:2\)"):
        registry.implementation_named("python:needy.py:f")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("Raises", InputError, r"can't load python:makes.py:Raises: ValueError: no card \(\S*/makes.py:4\)"),
        ("Leaves", InputError, r"can't load python:makes.py:Leaves: SystemExit: 0 \(\S*/makes.py:7\)"),
        ("Lacks", UnavailableError, r"can't load python:makes.py:Lacks: ImportError: no driver \(\S*/makes.py:10\)"),
        ("Needs", InputError, r"can't load python:makes.py:Needs: TypeError: .* required positional argument: 'card'"),
    ],
)
def test_a_class_that_cannot_be_made(name: str, error: type[Exception], message: str, folder: Path) -> None:
    (folder / "makes.py").write_text(
        "import sys\n"
        "class Raises:\n"
        "    def __init__(self):\n"
        "        raise ValueError('no card')\n"
        "class Leaves:\n"
        "    def __init__(self):\n"
        "        sys.exit(0)\n"
        "class Lacks:\n"
        "    def __init__(self):\n"
        "        raise ImportError('no driver')\n"
        "class Needs:\n"
        "    def __init__(self, card): pass\n"
    )
    with pytest.raises(error, match=f"^{message}$"):
        registry.implementation_named(f"python:makes.py:{name}")


def test_plug_in_implementations(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(Implementation):
        name = "mine"
        needs = "a card"

        def call(self, call: Call) -> Outcome:
            return Outcome(self.options)

        @classmethod
        def unavailable(cls) -> str:
            return "there is no card"

    monkeypatch.setattr(registry, "_added", {})
    registry.add_implementations(SimpleNamespace(IMPLEMENTATIONS=(Mine,)))  # type: ignore[arg-type]
    assert call(registry.implementation_named("mine:NOT_SUPPORTED")).status == "NOT_SUPPORTED"
    with pytest.raises(InputError, match="registered twice"):
        registry.add_implementations(SimpleNamespace(IMPLEMENTATIONS=(Mine,)))  # type: ignore[arg-type]
    assert registry.is_implementation("mine")
    assert not registry.is_implementation("others")
    listed = CliRunner().invoke(cli, ["implementations"], standalone_mode=False, env={"COLUMNS": "500"})
    assert listed.exception is None
    lines = {line.split()[0]: line for line in listed.output.splitlines()}
    assert "no: there is no card" in lines["mine"]
    assert "a card" in lines["mine"]
    assert {"tiled", "reference", "python"} <= lines.keys()
    assert "(default)  yes" in lines["tiled"]
    assert "psamask_forward" in lines["reference"]


def psamask(faults: tuple[str, ...] = (), h_mask: int = 3, W: int = 2) -> Call:
    """The hand-checked case of the operator: H=1, W=2, mask 1x3, but for the changes."""
    x: Any = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 2, 3)
    y = np.full((1, 1, 2, 2), -9, np.float32)
    described = {
        "x": Descriptor("NHWC", "float", (1, 1, 2, 3)),
        "y": Descriptor("NHWC", "float", (1, 1, W, 2)),
    }
    return Call(
        "psamask_forward",
        {"x": x},
        {"y": y},
        {"psa_type": 0, "h_mask": 1, "w_mask": h_mask},
        described,
        tuple(map(Fault.parse, faults)),
    )


def test_the_reference_computes_and_refuses() -> None:
    reference = registry.implementation_named("reference")
    good = psamask()
    assert reference.call(good).status == "SUCCESS"
    assert good.outputs["y"] is not None
    assert good.outputs["y"].reshape(-1).tolist() == [2, 3, 4, 5]
    for bad in (psamask(("null_handle",)), psamask(h_mask=0), psamask(W=3)):
        assert reference.call(bad).status == "BAD_PARAM"
        assert bad.outputs["y"] is not None
        assert (bad.outputs["y"] == -9).all()
    with pytest.raises(CannotShow, match="no reference kernel"):
        call(reference)


def test_a_plug_in_file_may_be_the_module_of_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_kernel.py").write_text(
        "from mluops_cli import Implementation, Outcome\n"
        "class Acme(Implementation):\n"
        "    name = 'acme'\n"
        "    def call(self, call):\n"
        "        return Outcome()\n"
        "IMPLEMENTATIONS = (Acme,)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_added", {})
    found = EntryPoint("acme", "acme_kernel:Acme", "mluops.implementations")
    monkeypatch.setattr(registry, "entry_points", lambda group, name="acme": [found] if name == "acme" else [])
    registry.add_implementations(load_file(tmp_path / "acme_kernel.py"))
    assert call(registry.implementation_named("acme")).status == "SUCCESS"
    (tmp_path / "copy.py").write_text((tmp_path / "acme_kernel.py").read_text())
    with pytest.raises(InputError, match="registered twice"):
        registry.add_implementations(load_file(tmp_path / "copy.py"))
