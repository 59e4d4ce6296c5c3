"""The packages of new operators, as their owners have them: `make test`, the checks of the stub, the suites."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from generators.importing.casefiles import read_dump
from generators.operator_registry import operators
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from mluops_cli.implementations.plugins import load_plugins
from tests.mluops_cli.conftest import Cli

# Of the interface's fft: a list, an enum and a float. The sizes of the second file are others.
CASE = """op_name: "fft"
input {{ id: "signal" shape {{ dims: [{batch}, {n}] }} layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT
        random_data {{ distribution: UNIFORM lower_bound: -2 upper_bound: 2 }} }}
output {{ id: "spectrum" shape {{ dims: [{batch}, {n}, 2] }} layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT }}
fft_param {{ rank: 1 n: [{n}] direction: 0 scale_factor: {scale} }}
test_param {{ error_func: DIFF1 error_threshold: 1e-5 }}
"""
# Images. The sizes of the second file are others.
PIXELS = """op_name: "pixels"
input {{ id: "x" shape {{ dims: [{n}, {h}, {w}, 3] }} layout: LAYOUT_{layout} dtype: DTYPE_FLOAT
        random_data {{ distribution: UNIFORM lower_bound: 0 upper_bound: 1 }} }}
output {{ id: "y" shape {{ dims: [{n}, {h}, {w}, 3] }} layout: LAYOUT_{layout} dtype: DTYPE_FLOAT }}
"""
SUITES = {"network", "boundary", "general", "nan_inf", "zero_element", "invalid", "demo"}


def make(folder: Path, target: str) -> subprocess.CompletedProcess[str]:
    """`make TARGET` in a package that isn't installed, with this interpreter."""
    command = ["make", target, f"PYTHON={sys.executable}"]
    return subprocess.run(command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, check=False)


def ruff(folder: Path) -> str:
    """What a linter and a formatter have to say of a package."""
    commands = (["check", "--no-cache", "--quiet"], ["format", "--no-cache", "--quiet", "--diff"])
    ran = [
        subprocess.run([sys.executable, "-m", "ruff", *words], cwd=folder, capture_output=True, text=True, check=False)
        for words in commands
    ]
    return "".join(each.stdout + each.stderr for each in ran)


@pytest.fixture
def fft(tmp_path: Path, cli: Cli) -> Path:
    """A package from two case files."""
    for name, values in {"a": (2, 8, 1.0), "b": (3, 16, 0.5)}.items():
        batch, n, scale = values
        (tmp_path / f"{name}.prototxt").write_text(CASE.format(batch=batch, n=n, scale=scale))
    files = (tmp_path / "a.prototxt", tmp_path / "b.prototxt")
    ran = cli("new-operator", "fft", "--from", *files, "--out", tmp_path / "fft")
    assert (ran.code, ran.err) == (0, "")
    return tmp_path / "fft"


@pytest.mark.slow
def test_only_the_reference_fails_until_it_is_written(fft: Path) -> None:
    drafted = make(fft, "test")
    assert drafted.returncode == 2
    assert re.search(r"^1 failed, \d+ passed, \d+ skipped", drafted.stdout, re.MULTILINE), drafted.stdout
    assert "FAILED tests/test_reference.py::test_it_is_written" in drafted.stdout
    module = fft / "mluops_fft" / "operators.py"
    text = module.read_text(encoding="utf-8")
    line = text[: text.index("    def reference")].count("\n") + 1
    assert f"AssertionError: {module}:{line}: write the reference kernel here" in drafted.stdout
    body = 'return {"spectrum": __import__("numpy").zeros((env["B"], env["N"], 2))}'
    module.write_text(text.replace('raise NotImplementedError("write it here")', body), encoding="utf-8")
    written = make(fft, "test")
    assert written.returncode == 0, written.stdout
    assert re.search(r"^SKIPPED .*NOT_SUPPORTED", written.stdout, re.MULTILINE)


@pytest.mark.usefixtures("own_plugins")
def test_the_contract_is_what_the_files_have_in_common(fft: Path) -> None:
    load_plugins([fft / "mluops_fft" / "operators.py"])
    contract = operators()["fft"].contract
    assert [(each.name, each.dtypes, each.shape) for each in contract.tensors.values()] == [
        ("signal", ("float",), "B N"),
        ("spectrum", ("float",), "B N 2"),
    ]
    assert contract.inputs[0].values == {"uniform": [-2, 2]}
    assert [(each.name, each.threshold) for each in contract.outputs[0].criteria] == [("diff1", 1e-5)]
    assert [(each.name, each.kind, each.length, each.default) for each in contract.parameters] == [
        ("rank", "int", None, 1),
        ("n", "int", 1, None),
        ("direction", "int", None, 0),
        ("scale_factor", "float", None, 1.0),
    ]
    assert contract.parameters[1].text == "[8], [16] in the given case files"
    assert ruff(fft) == ""


@pytest.mark.usefixtures("own_plugins")
def test_gen_says_that_the_reference_is_missing(fft: Path, cli: Cli) -> None:
    module = fft / "mluops_fft" / "operators.py"
    ran = cli("gen", "fft", "--suite", "boundary,demo", "--plugin", module, "--out", fft / "cases")
    assert ran.code == 2
    told, count = ran.err.splitlines()
    assert re.match(rf"{re.escape(str(module))}:\d+: the reference kernel of fft is not written", told)
    assert count == "4 cases are not made: 1 problem"
    assert [path.stem for path in (fft / "cases").rglob("*.pb")] == ["no_b"]  # it needs no baseline


@pytest.mark.usefixtures("own_plugins")
def test_the_suites_and_the_page(fft: Path, cli: Cli) -> None:
    load_plugins([fft / "mluops_fft" / "operators.py"])
    cases = list(expand(load_spec(fft / "mluops_fft" / "fft.yaml")))
    assert {case.suite for case in cases} == SUITES
    network = [case for case in cases if case.suite == "network"]
    assert sorted(case.plans[0].dims for case in network) == [(2, 8), (3, 16)]
    assert sorted(case.params["scale_factor"] for case in network) == [0.5, 1.0]
    assert {case.params["scale_factor"] for case in cases if case.suite == "general"} == {0.5, 1.0}
    assert cli("docs", "fft", "--out", fft / "pages").code == 0
    assert "`[B, N, 2]`" in (fft / "pages" / "fft.md").read_text(encoding="utf-8")


def refusals(package: Path, op: str, cli: Cli) -> dict[str, str]:
    """Case -> "pass" or the status with its reason, of the suite invalid, of the implementation as it stands."""
    plugins = [word for name in ("operators", "implementation") for word in ("--plugin", package / f"{name}.py")]
    cases, out = package / "cases", package / "results"
    assert cli("gen", op, "--suite", "invalid", "--plugin", package / "operators.py", "--out", cases).code == 0
    cli("run", cases, *plugins, "--impl", op, "-j", "1", "--out", out)
    records = map(json.loads, (out / "results.jsonl").read_text(encoding="utf-8").splitlines())
    said = {record["case"]: (record["status"], record["reason"]) for record in records}
    return {case: status if status == "pass" else f"{status}: {reason}" for case, (status, reason) in said.items()}


@pytest.mark.usefixtures("own_plugins")
def test_points_in_boxes(shared: Path, tmp_path: Path, cli: Cli) -> None:
    """The suite invalid passes against the stub's checks, and doesn't where a check is missing."""
    target = tmp_path / "boxes"
    files = shared / "public_cases" / "prototxt" / "points_in_boxes"
    made = cli("new-operator", "points_in_boxes", "--from", files, "--out", target)
    assert made.code == 0
    assert "all cases have the same shapes" in made.err
    package = target / "mluops_points_in_boxes"
    found = refusals(package, "points_in_boxes", cli)
    assert len(found) > 30
    assert set(found.values()) == {"pass"}


def exchanged(path: Path, old: str, new: str) -> int:
    """Write new for old in a file; how often it stood there."""
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(old, new), encoding="utf-8")
    return text.count(old)


def answer_success(module: Path) -> None:
    """Let the stub answer SUCCESS, as one that computes does: an illegal call that it accepts is seen then."""
    assert exchanged(module, 'return "NOT_SUPPORTED"  # compute here, then return "SUCCESS"', 'return "SUCCESS"') == 1


LAYOUTS = (  # the layout of the files, what is changed in a file, and whether wrong layouts are refused then
    ("NHWC", (), True),
    ("NHWC", (("implementation.py", 'layout not in ("ARRAY", each.layout)', "False"),), False),
    ("ARRAY", (("operators.py", '"ARRAY"', '"NHWC"'),), False),
    ("ARRAY", (("operators.py", '"ARRAY"', '"NHWC"'), ("implementation.py", '"ARRAY", (', '"NHWC", (')), True),
)


@pytest.mark.parametrize(("layout", "changes", "refused"), LAYOUTS)
@pytest.mark.usefixtures("own_plugins")
def test_layouts_are_checked(
    layout: str, changes: tuple[tuple[str, str, str], ...], refused: bool, tmp_path: Path, cli: Cli
) -> None:
    files = [tmp_path / "a.prototxt", tmp_path / "b.prototxt"]
    for path, (n, h, w) in zip(files, ((2, 5, 7), (4, 6, 9)), strict=True):
        path.write_text(PIXELS.format(n=n, h=h, w=w, layout=layout), encoding="utf-8")
    ran = cli("new-operator", "pixels", "--from", *files, "--out", tmp_path / "pixels")
    assert (ran.code, ran.err) == (0, "")
    package = tmp_path / "pixels" / "mluops_pixels"
    answer_success(package / "implementation.py")
    for name, old, new in changes:
        assert exchanged(package / name, old, new) > 0
    found = refusals(package, "pixels", cli)
    layouts = {case for case in found if "_layout_" in case}
    assert "pixels/invalid/small_x_layout_array" in layouts
    assert {case for case, status in found.items() if status != "pass"} == (set() if refused else layouts)


CHECKS = (  # of the stub, and a case that sees that it is missing
    ("handle is None or ", "handle is False or ", "null_handle"),
    ("each.dims != dims", "len(each.dims) == 9", "output1_dim1"),
    ("each.dims != dims", "len(each.dims) == len(dims) and each.dims != dims", "output1_rank"),
    ("each.dtype not in dtypes", 'each.dtype == "bool"', "dtype"),
    ("each.strides is not None", "False", "strided"),
    ("each.elements >= LARGE", "False", "large"),
    ("data is None and", "False and", "null_pointer"),
)


@pytest.mark.parametrize(("check", "without", "case"), CHECKS)
@pytest.mark.usefixtures("own_plugins")
@pytest.mark.slow
def test_a_check_that_is_missing_is_seen(
    check: str, without: str, case: str, shared: Path, tmp_path: Path, cli: Cli
) -> None:
    files = shared / "public_cases" / "prototxt" / "points_in_boxes"
    assert cli("new-operator", "points_in_boxes", "--from", files, "--out", tmp_path / "boxes").code == 0
    package = tmp_path / "boxes" / "mluops_points_in_boxes"
    module = package / "implementation.py"
    answer_success(module)
    assert exchanged(module, check, without) == 1
    failed = [name for name, status in refusals(package, "points_in_boxes", cli).items() if status != "pass"]
    assert failed
    assert any(case in name for name in failed), failed


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.slow
@pytest.mark.long
def test_every_public_operator(shared: Path, tmp_path: Path, cli: Cli) -> None:
    """Of each public operator a package whose suites expand and whose checks hold, or one message."""
    refused, made = [], []
    for folder in sorted((shared / "public_cases" / "prototxt").iterdir()):
        op = read_dump(next(iter(sorted(folder.glob("*.prototxt")))), "").drafts[0].op
        ran = cli("new-operator", op, "--from", folder, "--out", tmp_path / op)
        if ran.code:
            assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
            assert not (tmp_path / op).exists()
            refused.append(op)
            continue
        package = tmp_path / op / f"mluops_{op}"
        load_plugins([package / "operators.py"])
        cases = list(expand(load_spec(package / f"{op}.yaml")))
        assert {case.suite for case in cases} >= SUITES - {"nan_inf", "zero_element"}, op
        found = refusals(package, op, cli)
        assert found
        assert {case: status for case, status in found.items() if status != "pass"} == {}
        made.append(op)
    assert ruff(tmp_path) == ""
    assert len(made) > 3 * len(refused) > 0
