"""pytest --mluops PATH: case files as tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.pytest_plugin.conftest import PLUGIN, RunPytest, run_process, write

DEMO = ["empty", "even_mask", "nan_inf", "psa_type_2", "square_collect", "square_distribute"]
RIGHT = ("--mluops-impl", "python:kernels.py:right")
SHIFTED = ("--mluops-impl", "python:kernels.py:shifted")


@pytest.fixture
def cases(folder: Path, cli: Cli, run_pytest: RunPytest) -> Path:
    """The demo cases of psamask_forward in the folder cases, and a test beside them."""
    write(folder, test_other="def test_other(): ...\n")
    assert cli("gen", "psamask_forward", "--suite", "demo", "--out", folder / "cases").code == 0
    return folder / "cases"


def test_a_test_per_file_and_nothing_else(cases: Path, run_pytest: RunPytest) -> None:
    result = run_pytest("--mluops", "cases", "--collect-only", "-q")
    expected = [f"cases/psamask_forward/demo/{name}.pb::psamask_forward/demo/{name}" for name in DEMO]
    assert [line for line in result.outlines if "::" in line] == expected
    run_pytest("--mluops", "cases").assert_outcomes(passed=6)  # on tiled
    run_pytest("--mluops", "cases", "test_other.py", *RIGHT).assert_outcomes(passed=7)


def test_a_failure_has_the_diagnosis_and_the_command_that_repeats_it(cases: Path, run_pytest: RunPytest) -> None:
    result = run_pytest("--mluops", "cases/psamask_forward/demo/square_collect.pb", *SHIFTED)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "* psamask_forward/demo/square_collect *",
            "FAIL psamask_forward/demo/square_collect: y: * elements wrong *",
            "*repro: mluops run cases/psamask_forward/demo/square_collect.pb --impl python:kernels.py:shifted --out *",
        ]
    )
    assert not any("case_files.py" in line for line in result.outlines), result.outlines


@pytest.mark.parametrize(
    ("arguments", "outcomes"),
    [
        (("-m", "demo and not mluops"), {"passed": 6}),
        (("-m", "boundary"), {"deselected": 6}),
        (("-k", "square or even_mask"), {"passed": 3, "deselected": 3}),
        (("cases/psamask_forward/demo/empty.pb",), {"passed": 1}),
        (("cases/psamask_forward/demo/empty.pb::psamask_forward/demo/empty", "test_other.py"), {"passed": 2}),
    ],
)
def test_selection(arguments: tuple[str, ...], outcomes: dict[str, int], cases: Path, run_pytest: RunPytest) -> None:
    run_pytest("--mluops", "cases", *arguments, *RIGHT).assert_outcomes(**outcomes)


def test_last_failed(cases: Path, run_pytest: RunPytest) -> None:
    failed = run_pytest("--mluops", "cases", *SHIFTED, cache=True).parseoutcomes()["failed"]
    assert 0 < failed < 6
    again = run_pytest("--mluops", "cases", "--lf", *SHIFTED, cache=True).parseoutcomes()
    assert again["failed"] == failed
    assert "passed" not in again


def test_statuses(cases: Path, run_pytest: RunPytest) -> None:
    run_pytest("--mluops", "cases", "--mluops-impl", "python:kernels.py:refuses").assert_outcomes(skipped=5, passed=1)
    result = run_pytest("--mluops", "cases", "--mluops-impl", "python:kernels.py:raises", "-k", "even_mask")
    result.assert_outcomes(failed=1, deselected=5)
    result.stdout.fnmatch_lines(["*raised ArithmeticError: no such mask*", '*raise ArithmeticError("no such mask")*'])


def test_doubts_warn_and_options_judge(folder: Path, cli: Cli, run_pytest: RunPytest) -> None:
    cli("gen", "voxel_pooling_forward", "--suite", "demo", "--out", folder / "cases")
    run = ("--mluops", "cases", "-k", "small", "--mluops-impl", "python:kernels.py:imprecise")
    result = run_pytest(*run)
    result.assert_outcomes(passed=1, deselected=4)
    result.stdout.fnmatch_lines(["*MluopsWarning: voxel_pooling_forward/demo/small: beyond the error bound: *"])
    run_pytest(*run, "--mluops-options=--loose-nan").assert_outcomes(passed=1, deselected=4)
    run_pytest(*run, "--mluops-options", "--bound fail").assert_outcomes(failed=1, deselected=4)
    strict = run_pytest(*run, "-W", "error::mluops_cli.pytest_plugin.MluopsWarning")
    strict.assert_outcomes(failed=1, deselected=4)
    assert not any("case_files.py" in line for line in strict.outlines)


def test_a_broken_file_fails_alone(cases: Path, run_pytest: RunPytest) -> None:
    (cases / "broken.pb").write_bytes(b"no case")
    result = run_pytest("--mluops", "cases", *RIGHT)
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["ERROR unreadable/external/broken: *broken.pb*"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--mluops", "none"), "ERROR: no such file or folder: none"),
        (("--mluops", "cases", "--mluops-impl", "tilde"), "ERROR: unknown implementation 'tilde'*"),
        (("--mluops", "cases", "--mluops-impl", "python:kernels.py:rigth"), "ERROR: *did you mean 'right'*"),
        (("--mluops", "cases", "--mluops-options", "--bound x"), "ERROR: options '--bound x': *"),
        (("--mluops-impl", "tiled"), "ERROR: --mluops-impl and --mluops-options need --mluops PATH"),
    ],
)
def test_wrong_arguments_are_one_message(
    arguments: tuple[str, ...], words: str, cases: Path, run_pytest: RunPytest
) -> None:
    result = run_pytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([words])


def test_the_implementation_is_made_once_and_closed(cases: Path, folder: Path) -> None:
    write(
        folder,
        plugin="""
        from mluops_cli import Implementation, Outcome

        class Noting(Implementation):
            name = "noting"

            def __init__(self, options=""):
                super().__init__(options)
                print("made", file=open("noted.txt", "a"))

            def call(self, call):
                return Outcome("NOT_SUPPORTED")

            def close(self):
                print("closed", file=open("noted.txt", "a"))

        IMPLEMENTATIONS = (Noting,)
        """,
    )
    options = ("--mluops-options", "--plugin plugin.py")
    run_process(folder, *PLUGIN, "--mluops", "cases", "--mluops-impl", "noting", *options).assert_outcomes(
        skipped=5, passed=1
    )
    assert (folder / "noted.txt").read_text().split() == ["made", "closed"]
