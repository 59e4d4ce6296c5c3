"""The command: exit codes, what it writes, selection, resuming, interruption."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.core.hardware.machine import processor
from schemas.casefiles.reading import write_case
from tests.mluops_cli.execution.conftest import PLUGIN, add_tensor, case_node, write_psamask

RIGHT = f"python:{PLUGIN}:right"
NEVER = f"python:{PLUGIN}:never"


def test_a_pass(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "one")
    ran = run(tmp_path / "cases", "--impl", RIGHT)
    assert ran.code == 0
    (record,) = ran.records.values()
    assert record["case"] == "psamask_forward/general/one"
    assert {key: record[key] for key in ("op", "suite", "status", "operator_status", "impl")} == {
        "op": "psamask_forward",
        "suite": "general",
        "status": "pass",
        "operator_status": "SUCCESS",
        "impl": RIGHT,
    }
    assert record["latency_us"] > 0
    assert record["outputs"]["y"]["criteria"][0]["name"] == "diff3"
    assert ran.summary["counts"] == {"pass": 1}
    assert ran.summary["exit_code"] == 0
    words = shlex.split(record["repro"])
    repro = tmp_path / "out" / "repro"
    assert words == ["mluops", "run", str(tmp_path / "cases" / "one.pb"), "--impl", RIGHT, "--out", str(repro)]


def test_the_contract_and_the_reference_agree(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path, "valid")
    write_psamask(tmp_path, "null", suite="invalid", expect=["BAD_PARAM"], faults=["null_handle"])
    assert run(tmp_path, "--impl", "reference").statuses == dict.fromkeys(
        ("psamask_forward/general/valid", "psamask_forward/invalid/null"), "pass"
    )
    ran = run(tmp_path, "--impl", RIGHT)
    assert ran.code == 0
    assert ran.records["psamask_forward/invalid/null"]["status"] == "skip"


def test_an_invalid_case_wants_its_status(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path, "bad", h_mask=0, suite="invalid", expect=["BAD_PARAM"])
    refused = run(tmp_path, "--impl", f"python:{PLUGIN}:right")
    assert refused.code == 1
    (record,) = refused.records.values()
    assert (record["status"], record["reason"]) == ("fail", "expected BAD_PARAM, got SUCCESS")
    assert run(tmp_path, "--impl", "reference").code == 0


def test_an_operator_without_a_contract_runs_on_its_baseline(tmp_path: Path, run: Any) -> None:
    node = case_node("alien_op", suite="")
    add_tensor(node.input, "in", (2, 3), layout="ARRAY")
    add_tensor(node.output, "out", (2, 3), layout="ARRAY")
    error = node.test_param.DESCRIPTOR.fields_by_name["error_func"].enum_type
    node.test_param.error_func.append(error.values_by_name["DIFF1"].number)
    node.test_param.error_threshold.append(1e-6)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_case(tmp_path / "good.pb", node, [x], [2 * x])
    write_case(tmp_path / "other.pb", node, [x], [3 * x])
    write_case(tmp_path / "none.pb", node, [x], [None])
    ran = run(tmp_path, "--impl", f"python:{PLUGIN}:alien")
    assert ran.statuses == {
        "alien_op/external/good": "pass",
        "alien_op/external/other": "fail",
        "alien_op/external/none": "error",
    }
    assert ran.code == 2  # a case file that can't be judged is wrong
    assert ran.records["alien_op/external/good"]["printed"] == "['in'] ['out'] None ARRAY\n"
    assert "no baseline" in ran.records["alien_op/external/none"]["reason"]


def test_an_unreadable_file_is_one_error_record(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path, "good")
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff\xff")
    ran = run(tmp_path, "--impl", RIGHT)
    assert ran.code == 2
    assert ran.statuses == {"psamask_forward/general/good": "pass", "unreadable/external/bad": "error"}
    assert "Traceback" not in ran.out + ran.err


def test_an_implementation_that_raises_is_exit_1(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path, "case", h_mask=5)
    ran = run(tmp_path, "--impl", f"python:{PLUGIN}:hostile")
    assert (ran.code, set(ran.statuses.values())) == (1, {"error"})


def test_nothing_selected(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "case")
    for options in (["-k", "nowhere"], ["--suite", "network"]):
        ran = run(tmp_path / "cases", "--impl", RIGHT, *options)
        assert ran.code == 5
        assert "no case is selected" in ran.err
    (tmp_path / "empty").mkdir()
    assert run(tmp_path / "empty").code == 5


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--impl", "tild"], 2, "did you mean 'tiled'?"),
        (["--impl", "python:no_such.py:f"], 2, "no such Python file"),
        (["--impl", f"python:{PLUGIN}:rigt"], 2, "has no 'rigt': did you mean 'right'?"),
        (["--impl", "python:no.such.module:f"], 2, "no module named 'no'"),
        (["--impl", "python:nothing"], 2, "expected FILE.py:NAME or package.module:NAME"),
        (["--impl", f"python:{PLUGIN}:TRIGGER"], 2, "expected something callable"),
        (["--impl", "reference:x=1"], 2, "takes no options"),
        (["-k", "a and"], 2, "-k"),
        (["--shard", "5/4"], 2, "--shard"),
        (["--timeout", "0"], 2, "--timeout"),
        (["--timeout", "nan"], 2, "'nan' is not a number of seconds"),
        (["--perf", "--min-time", "inf"], 2, "'inf' is not a number of seconds"),
        (["--suite", "genral"], 2, "unknown suite 'genral': did you mean 'general'?"),
        (["nowhere"], 2, "no such file or folder"),
    ],
)
def test_a_command_that_is_wrong(options: list[str], code: int, message: str, tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "case")
    ran = run(tmp_path / "cases", *options)
    assert ran.code == code
    assert message in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert ran.records == {}


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("import no_such_package", 3, "No module named 'no_such_package'"),
        ("def f(:", 2, "SyntaxError"),
        ("1 / 0", 2, "ZeroDivisionError"),
        ("import sys; sys.exit(0)", 2, "SystemExit: 0"),
        ("import os; os.abort()", 3, "signal 6 (SIGABRT)"),
    ],
)
def test_an_implementation_that_cannot_be_loaded(text: str, code: int, message: str, tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "case")
    (tmp_path / "impl.py").write_text(text + "\n")
    ran = run(tmp_path / "cases", "--impl", f"python:{tmp_path / 'impl.py'}:f")
    assert ran.code == code
    assert message in ran.err
    assert "impl.py" in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_max_fail_stops(tmp_path: Path, run: Any) -> None:
    for number in range(6):
        write_psamask(tmp_path, f"case{number}", h_mask=5, seed=number)
    ran = run(tmp_path, "--impl", f"python:{PLUGIN}:writes_nothing", "-j", "1", "--max-fail", "2")
    assert ran.code == 1
    assert len(ran.records) == 2
    assert ran.summary["not_run"] == 4


def test_strict_fails_what_proves_nothing(tmp_path: Path, run: Any) -> None:
    node = case_node("alien_op", suite="")
    add_tensor(node.input, "in", (40,), layout="ARRAY")
    add_tensor(node.output, "out", (40,), layout="ARRAY")
    node.evaluation_criterion.append(
        node.DESCRIPTOR.fields_by_name["evaluation_criterion"].enum_type.values_by_name["DIFF1"].number
    )
    node.evaluation_threshold.append(1e-6)
    varied, zeros = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    write_case(tmp_path / "varied.pb", node, [varied], [2 * varied])
    write_case(tmp_path / "zeros.pb", node, [zeros], [zeros])
    impl = f"python:{PLUGIN}:alien"
    ran = run(tmp_path, "--impl", impl)
    assert ran.statuses == {"alien_op/external/varied": "pass", "alien_op/external/zeros": "mistrusted"}
    assert ran.code == 0
    assert run(tmp_path, "--impl", impl, "--strict").code == 1


def test_a_success_with_nothing_to_compare_proves_nothing(tmp_path: Path, run: Any) -> None:
    node = case_node("alien_op", suite="")
    add_tensor(node.input, "in", (2,), layout="ARRAY")
    add_tensor(node.output, "NULL", (2,), layout="ARRAY")
    write_case(tmp_path / "case.pb", node, [np.ones(2, np.float32)], [None])
    ran = run(tmp_path, "--impl", f"python:{PLUGIN}:idle")
    assert ran.records["alien_op/external/case"]["reason"] == "nothing was compared"
    assert ran.statuses == {"alien_op/external/case": "mistrusted"}
    assert ran.code == 1


def test_earlier_results_are_replaced_and_foreign_files_left(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "a", "one")
    write_psamask(tmp_path / "b", "two")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep")
    run(tmp_path / "a", "--impl", RIGHT)
    ran = run(tmp_path / "b", "--impl", RIGHT)
    assert list(ran.records) == ["psamask_forward/general/two"]
    assert (tmp_path / "out" / "mine.txt").read_text() == "keep"


def test_the_line_that_reproduces_a_case_whose_name_begins_with_a_dash(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_psamask(tmp_path, "-n")
    monkeypatch.chdir(tmp_path)
    (record,) = run(".", "--impl", RIGHT).records.values()
    again = run(*shlex.split(record["repro"])[2:])
    assert (again.code, list(again.records)) == (0, [record["case"]])


def test_every_error_of_a_case_names_its_file_as_the_command_does(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_psamask(tmp_path / "cases", "rank", h_mask=2)
    torn = (tmp_path / "cases" / "rank.pb").read_bytes()[:-9]
    (tmp_path / "cases" / "torn.pb").write_bytes(torn)
    node = case_node("alien_op", suite="")
    add_tensor(node.input, "in", (2,), layout="ARRAY")
    add_tensor(node.output, "out", (2,), layout="ARRAY")
    write_case(tmp_path / "cases" / "bare.pb", node, [np.ones(2, np.float32)], [None])
    monkeypatch.chdir(tmp_path)
    reasons = {name: record["reason"] for name, record in run("cases", "--impl", RIGHT).records.items()}
    assert reasons["unreadable/external/torn"].startswith("cases/torn.pb: ")
    assert reasons["alien_op/external/bare"].startswith("cases/bare.pb: carries no baseline")


def test_an_implementation_that_changes_the_folder(tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "impl.py").write_text(
        "import os\ndef f(op, inputs, outputs, params):\n    os.chdir('/')\n    return 'NOT_SUPPORTED'\n"
    )
    for number in range(3):
        write_psamask(tmp_path / "cases", f"case{number}")
    monkeypatch.chdir(tmp_path)
    ran = run("cases", "--impl", "python:impl.py:f", "-j", "1")
    assert set(ran.statuses.values()) == {"skip"}


@pytest.mark.parametrize("way", ["python", "exec"])
def test_d3_what_a_failing_implementation_printed_is_kept_and_shown(way: str, tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "a")
    if way == "python":
        (tmp_path / "impl.py").write_text("def f(op, inputs, outputs, params):\n    g()\ndef g():\n    1 / 0\n")
        impl, expected = f"python:{tmp_path / 'impl.py'}:f", ["    g()", "ZeroDivisionError: division by zero"]
    else:
        (tmp_path / "program.sh").write_text("echo ==1==ERROR: AddressSanitizer >&2; exit 1\n")
        impl, expected = f"exec:sh {tmp_path / 'program.sh'} {{dir}}", ["==1==ERROR: AddressSanitizer"]
    ran = run(tmp_path / "cases", "--impl", impl)
    (record,) = ran.records.values()
    for line in expected:
        assert line in record["printed"].splitlines()
        assert f"    {line}\n" in ran.out
    assert "mluops_cli" not in record["printed"]


@pytest.mark.parametrize(
    ("environment", "options", "threads"),
    [
        ({}, [], "1"),
        ({"OMP_NUM_THREADS": "3"}, [], "3"),
        ({"OMP_NUM_THREADS": "3"}, ["--threads", "2"], "2"),
        ({}, ["--threads", "2"], "2"),
    ],
)
def test_d12_threads(
    environment: dict[str, str],
    options: list[str],
    threads: str,
    tmp_path: Path,
    run: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    write_psamask(tmp_path / "cases", "a")
    (tmp_path / "program.sh").write_text("echo threads $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS; exit 71\n")
    ran = run(tmp_path / "cases", "--impl", f"exec:sh {tmp_path / 'program.sh'} {{dir}}", *options)
    (record,) = ran.records.values()
    blas = threads if options else "1"
    assert record["printed"] == f"threads {threads} {blas}\n"
    assert ("--threads" in record["repro"]) is bool(options)


@pytest.mark.slow
def test_a15_the_device_that_ran_is_recorded(tmp_path: Path, run: Any) -> None:
    (tmp_path / "plugin.py").write_text(
        "from mluops_cli.implementations.base import Implementation, Outcome\n"
        "class Card(Implementation):\n"
        "    name = 'card'\n"
        "    def device(self):\n        return 'NPU 9'\n"
        "    def call(self, call):\n        return Outcome('NOT_SUPPORTED')\n"
        "IMPLEMENTATIONS = [Card]\n"
    )
    write_psamask(tmp_path / "cases", "a")
    for options, device in (
        (["--impl", "card", "--plugin", str(tmp_path / "plugin.py")], "NPU 9"),
        (["--impl", "reference"], processor()),
        (["--impl", "reference", "--perf", "--repeat", "1", "--device", "MLU370-X8"], "MLU370-X8"),
    ):
        ran = run(tmp_path / "cases", *options)
        (record,) = ran.records.values()
        assert record["device"] == ran.summary["environment"]["device"] == device


def test_a15_a_crash_names_the_device_too(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "a", h_mask=5)
    (record,) = run(tmp_path / "cases", "--impl", f"python:{PLUGIN}:segfault").records.values()
    assert (record["status"], record["device"]) == ("crash", processor())
    assert record["case_hash"]


def test_blas_gets_one_thread_and_prints_stay_with_the_case(tmp_path: Path, run: Any) -> None:
    (tmp_path / "impl.py").write_text(
        "import os\n"
        "def f(op, inputs, outputs, params):\n"
        "    print('threads', os.environ['OMP_NUM_THREADS'], inputs['x'].shape)\n"
        "    os.system('echo from a child')\n"
        "    return 'NOT_SUPPORTED'\n"
    )
    write_psamask(tmp_path / "cases", "a")
    write_psamask(tmp_path / "cases", "b", h_mask=1)
    ran = run(tmp_path / "cases", "--impl", f"python:{tmp_path / 'impl.py'}:f", "-j", "1")
    printed = {name[-1]: record["printed"] for name, record in ran.records.items()}
    assert printed == {
        "a": "threads 1 (1, 2, 3, 9)\nfrom a child\n",
        "b": "threads 1 (1, 2, 3, 3)\nfrom a child\n",
    }
    assert "from a child" not in ran.out
    assert "OMP_NUM_THREADS" not in os.environ or os.environ["OMP_NUM_THREADS"]


def test_g2_copies_keep_the_sign_of_zero(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "one")
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from tests.mluops_cli.execution.misbehaving import right\n"
        "def psamask(op, inputs, outputs, params):\n"
        "    right(op, inputs, outputs, params)\n"
        "    outputs['y'][outputs['y'] == 0] = -0.0\n"
    )
    impl = f"python:{tmp_path / 'mine.py'}:psamask"
    ran = run(tmp_path / "cases", "--impl", impl)
    (record,) = ran.records.values()
    assert (ran.code, record["status"]) == (1, "fail")
    assert "the wrong sign" in record["reason"]
    loose = run(tmp_path / "cases", "--impl", impl, "--loose-zero")
    (record,) = loose.records.values()
    assert (loose.code, record["status"]) == (0, "pass")
    assert " --loose-zero " in record["repro"]
