"""The judge in a run: options, status precedence, sentinels, and regressions, end to end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.contracts.binding import bind
from generators.operator_registry import operators
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case import calls
from mluops_cli.execution.case.case_run import prepare, run_case
from mluops_cli.execution.case.judgement import judge, judge_outputs, outputs_under_test
from mluops_cli.implementations.python import Python
from mluops_cli.reports.markdown.document import step_summary
from mluops_cli.results.finished import read_run
from schemas.casefiles.reading import read_case, write_case
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import add_tensor, case_node

PLUGIN = Path(__file__).parent / "judged.py"


def write_alien(
    path: Path,
    *outputs: Any,
    suite: str = "",
    criterion: str = "DIFF1",
    threshold: float = 1e-3,
    given: Any = (1, 1, 1, 1),
) -> Path:
    """A case of an operator without contract: outputs out0, out1, ... with their baselines; given is the input."""
    node = case_node("alien_op", suite=suite, name=path.stem)
    add_tensor(node.input, "in", np.shape(given), layout="ARRAY")
    for number, array in enumerate(outputs):
        add_tensor(node.output, f"out{number}", array.shape, layout="ARRAY")
    numbers = node.DESCRIPTOR.fields_by_name["evaluation_criterion"].enum_type.values_by_name
    node.evaluation_criterion.append(numbers[criterion].number)
    node.evaluation_threshold.append(threshold)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_case(path, node, [np.asarray(given, np.float32)], [np.asarray(array, np.float32) for array in outputs])
    return path


def result_of(path: Path, name: str, *, repeat: int = 1, **options: Any) -> dict[str, Any]:
    """What a run says of one case, in this process."""
    settings = WorkerSettings(CaseOptions("python", repeat=repeat, **options))
    return run_case({"file": str(path), "manifest_meta": None}, Python(f"{PLUGIN}:{name}"), settings)


def values(*shape: int) -> Any:
    return np.random.default_rng(0).uniform(1, 2, shape).astype(np.float32)


# -- options -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rulebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One small case of get_indice_pairs, its baseline left to the reference."""
    node = case_node("get_indice_pairs", name="case")
    message = node.get_indice_pairs_param
    for name, value in {"dimnb": 5, "batch": 1, "sub_m": 0, "transpose": 0, "inverse": 0, "num_act_out": 0}.items():
        setattr(message, name, value)
    rows = np.array([[0, 0, 0, 0], [0, 0, 1, 2], [0, 3, 3, 3], [0, 2, 1, 0], [0, 1, 1, 1]], np.int32)
    spaces = {"input_space": (4, 4, 4), "output_space": (4, 4, 4), "filter_space": (3, 3, 3)}
    for name, values in {**spaces, "pad": (1, 1, 1), "stride": (1, 1, 1), "dilation": (1, 1, 1)}.items():
        getattr(message, name).extend(values)
    params = {**spaces, "pad": (1, 1, 1), "stride": (1, 1, 1), "dilation": (1, 1, 1), "sub_m": 0, "batch": 1}
    outputs = operators()["get_indice_pairs"].reference({"indices": rows}, params)
    message.num_act_out = len(outputs["out_indices"])
    add_tensor(node.input, "indices", rows.shape, "INT32", "ARRAY")
    for name, array in outputs.items():
        add_tensor(node.output, name, array.shape, "INT32", "ARRAY")
    path = tmp_path_factory.mktemp("rulebook") / "case.pb"
    write_case(path, node, [rows], [None] * 3)
    return path


@pytest.mark.parametrize(
    ("implementation", "options", "passes"),
    [
        ("rulebook", {}, True),
        ("rulebook_reversed", {}, False),
        ("rulebook_reversed", {"compare": ("indice_pairs=canonical",)}, True),
        ("rulebook_reversed", {"compare": ("out_indices=canonical",)}, True),
        ("rulebook_half_reversed", {"compare": ("indice_pairs=canonical",)}, False),
        ("rulebook_half_reversed", {}, False),
        ("rulebook_tail", {}, True),
        ("rulebook_tail", {"compare": ("indice_pairs=canonical",)}, True),
        ("rulebook_tail", {"strict_tail": True}, False),
        ("rulebook_tail", {"strict_tail": True, "compare": ("indice_pairs=canonical",)}, False),
        ("rulebook", {"strict_tail": True}, True),
        ("rulebook_count", {}, False),
    ],
)
def test_rulebook_options(implementation: str, options: dict[str, Any], passes: bool, rulebook: Path) -> None:
    result = result_of(rulebook, implementation, **options)
    assert (result["status"] == "pass") == passes, result["reason"]
    if implementation == "rulebook_count":
        assert result["reason"].startswith("num_act_out is ")


def test_a18_a_count_that_is_left_out_is_unverified(rulebook: Path, tmp_path: Path, run: Any) -> None:
    ran = run(rulebook, "--impl", f"python:{PLUGIN}:rulebook_uncounted", "-j", "1")
    (record,) = ran.records.values()
    assert (ran.code, record["status"], record["unverified"]) == (0, "pass", ["num_act_out"])
    assert ran.out.count("num_act_out is unverified in 1 case: it was not returned") == 1
    assert "Not returned, so unverified: `num_act_out`." in step_summary(read_run(tmp_path / "out"), 10_000)
    ran = run(rulebook, "--impl", "reference", "-j", "1")
    (record,) = ran.records.values()
    assert (record["unverified"], "unverified" in ran.out) == ([], False)


@pytest.mark.slow
def test_the_options_of_the_command(rulebook: Path, tmp_path: Path, run: Any) -> None:
    def code(implementation: str, *options: str) -> int:
        ran = run(rulebook, "--impl", f"python:{PLUGIN}:{implementation}", "-j", "1", *options)
        if ran.code == 1 and options:
            assert all(option in ran.out for option in options if option.startswith("--")), "the repro line lacks one"
        return int(ran.code)

    assert code("rulebook_reversed") == 1
    assert code("rulebook_reversed", "--compare", "out_indices=canonical") == 0
    assert code("rulebook_tail") == 0
    assert code("rulebook_tail", "--strict-tail") == 1
    for wrong in ("out_indices", "out_indices=sorted", "out_indixes=canonical", "y=canonical"):
        assert code("rulebook", "--compare", wrong) == 2
    holes = values(40)
    holes[3:6] = [np.nan, np.inf, -np.inf]
    case = write_alien(tmp_path / "nan" / "case.pb", holes, given=holes)
    mixed = f"python:{PLUGIN}:copies_not_finite_mixed"
    assert run(case, "--impl", mixed, "-j", "1").code == 1
    assert run(case, "--impl", mixed, "-j", "1", "--loose-nan").code == 0
    assert result_of(case, "zero_for_nan", loose_nan=True)["status"] == "fail"


# -- status precedence ----------------------------------------------------------------------------------------------


def test_what_a_pass_is_worth(tmp_path: Path, run: Any) -> None:
    mostly = np.zeros(1000)
    mostly[7] = 1
    baselines = {
        "varied": values(40), "constant": np.full(40, 3), "short_constant": np.full(15, 3), "zeros": np.zeros(40),
        "mostly_zero": mostly, "empty": np.zeros((0, 4)),
    }  # fmt: skip
    for name, array in baselines.items():
        write_alien(tmp_path / "cases" / f"{name}.pb", array, suite="general", given=array)
    for name in ("constant", "zeros"):
        array = baselines[name]
        write_alien(tmp_path / "cases" / f"boundary_{name}.pb", array, suite="boundary", given=array)
    impl = f"python:{PLUGIN}:copies"
    ran = run(tmp_path / "cases", "--impl", impl, "-j", "1")
    assert {case.split("/")[2]: status for case, status in ran.statuses.items()} == {
        "varied": "pass", "constant": "mistrusted", "short_constant": "pass", "zeros": "mistrusted",
        "mostly_zero": "mistrusted", "empty": "empty", "boundary_constant": "pass", "boundary_zeros": "pass",
    }  # fmt: skip
    assert ran.code == 0
    reasons = {case.split("/")[2]: record["reason"] for case, record in ran.records.items()}
    assert reasons["constant"] == "out0: all 40 values of the baseline are the same"
    assert "an output left at 0 would pass" in reasons["zeros"]
    assert run(tmp_path / "cases", "--impl", impl, "-j", "1", "--strict").code == 1


@pytest.mark.parametrize(("elements", "status"), [(0, "pass"), (4, "mistrusted")])
def test_of_an_empty_input_nothing_but_zeros_may_come(tmp_path: Path, elements: int, status: str) -> None:
    node = case_node("alien_op", name="case")
    add_tensor(node.input, "in", (elements,), layout="ARRAY")
    add_tensor(node.output, "out", (27,), layout="ARRAY")
    node.test_param.error_func.append(node.DESCRIPTOR.fields_by_name["evaluation_criterion"].enum_type.values[8].number)
    node.test_param.error_threshold.append(0)
    write_case(tmp_path / "case.pb", node, [np.ones(elements, np.float32)], [np.zeros(27, np.float32)])
    with read_case(tmp_path / "case.pb") as file:
        prepared = prepare(file)
        prepared.outputs["out"].array[...] = 0
        assert judge(prepared.bound, outputs(prepared), CaseOptions()).status == status


def test_an_output_called_like_an_input_is_told_beside_it(tmp_path: Path) -> None:
    node = case_node("alien_op", name="case")
    add_tensor(node.input, "x", (4,), layout="ARRAY")
    add_tensor(node.output, "x", (2, 3), layout="ARRAY")
    write_case(tmp_path / "case.pb", node, [np.ones(4, np.float32)], [values(2, 3)])
    result = result_of(tmp_path / "case.pb", "writes_nothing")
    assert [(each["role"], each["dims"]) for each in result["tensors"].values()] == [("input", [4]), ("output", [2, 3])]
    assert list(result["outputs"]) == ["x"]


def test_an_output_that_is_the_baselines_own_memory(tmp_path: Path) -> None:
    """No implementation can hand back an array of its own now; the judge would notice if one could."""
    with read_case(write_alien(tmp_path / "case.pb", values(40), values(3, 5))) as file:
        prepared = prepare(file)
        for name, buffer in prepared.outputs.items():
            buffer.array[...] = prepared.baseline[name]
        assert judge(prepared.bound, outputs(prepared), CaseOptions()).status == "pass"
        prepared.outputs["out1"].array = prepared.baseline["out1"]
        verdict = judge(prepared.bound, outputs(prepared), CaseOptions())
    assert verdict.status == "mistrusted"
    assert verdict.reason == "out1: the implementation returned the baseline's own memory"


def outputs(prepared: Any) -> Any:
    return outputs_under_test(prepared.bound, prepared.baseline, prepared.outputs, CaseOptions())


def test_replacing_the_array_of_an_output_is_writing_nothing(tmp_path: Path) -> None:
    path = write_alien(tmp_path / "case.pb", values(40))
    result = result_of(path, "replaces")
    assert result["status"] == "fail"
    assert result["outputs"]["out0"]["diagnosis"]["patterns"][0]["word"] == "never written"


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "status"), [("says_big_endian", "fail"), ("says_transposed", "fail"), ("flattens", "pass")]
)
def test_what_is_judged_has_the_shape_and_dtype_that_was_asked_for(name: str, status: str, tmp_path: Path) -> None:
    """Whatever an implementation sets on the arrays that it is given."""
    path = write_alien(tmp_path / "case.pb", values(5, 5))
    assert [result_of(path, name, repeat=repeat)["status"] for repeat in (1, 2)] == [status] * 2


def test_an_output_that_changes_while_it_is_judged_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a thread of the implementation can change it."""

    def interrupted(*arguments: Any) -> Any:
        judged = judge_outputs(*arguments)
        buffers = arguments[3]
        buffers["out1"].array[2, 3] += 1
        return judged

    monkeypatch.setattr(calls, "judge_outputs", interrupted)
    result = result_of(write_alien(tmp_path / "case.pb", values(40), values(3, 5)), "baseline")
    assert (result["status"], result["reason"]) == ("fail", "out1 is still being written after the call returned")
    assert result["retire"]


# -- sentinels and repeats -----------------------------------------------------------------------------------


def test_sentinels_are_none_of_the_baseline_and_another_in_each_repeat(tmp_path: Path) -> None:
    path = write_alien(tmp_path / "case.pb", values(40), np.zeros(20) - 1)
    result = result_of(path, "notes_sentinels", repeat=3)
    assert result["status"] == "mistrusted"  # the second output is constant
    manifest_meta = Python(f"{PLUGIN}:notes_sentinels").kernel.target.__globals__["NOTED"]
    for repeats, baseline in zip(zip(*manifest_meta[-3:], strict=True), (values(40), np.full(20, -1)), strict=True):
        first, second, third = (each.view(np.uint32) for each in repeats)
        assert ((first != second) & (second != third)).all()
        assert not any((each == baseline).any() for each in repeats)


def test_repeats_say_whether_they_are_bit_identical(tmp_path: Path) -> None:
    path = write_alien(tmp_path / "case.pb", values(40))
    same, near = (result_of(path, name, repeat=3) for name in ("baseline", "wavers"))
    assert (same["status"], same["bit_identical"], same["repeats"]) == ("pass", True, 3)
    assert (near["status"], near["bit_identical"], near["repeats"]) == ("pass", False, 3)


def test_every_repeat_is_judged(tmp_path: Path) -> None:
    """PITFALLS B62: right once, zeros from then on."""
    result = result_of(write_alien(tmp_path / "case.pb", values(40)), "right_once", repeat=3)
    assert (result["status"], result["repeats"]) == ("fail", 2)
    assert result["reason"].startswith("repeat 2, after right ones: out0: 40 of 40 elements wrong (1); zeros instead")


# -- regressions ---------------------------------------------------------------------------------------------

# name of the implementation -> baselines, part of the reason; all with diff1 at 1e-3.
WRONG: dict[str, tuple[list[Any], str]] = {
    "all_nan": ([values(40)], "NaN or Inf disagree with the baseline at 40 of 40 elements, the first at [0]"),
    "one_nan": ([values(40)], "NaN or Inf disagree with the baseline at 1 of 40 elements, the first at [17]"),
    "one_inf": ([values(40)], "NaN or Inf disagree with the baseline at 1 of 40 elements, the first at [17]"),
    "inf_of_the_other_sign": ([np.array([np.inf, 1, 2])], "disagree with the baseline at 1 of 3 elements"),
    "ninety_nine": ([np.array([np.nan, 1, 2])], "out0: 1 of 3 elements wrong (0.333); "),
    "zeros": ([values(40) * np.float32(1e-6)], "; diff1 = 0.99"),
    "ones": ([np.zeros(40)], "out0: 40 of 40 elements wrong (1); "),
    "second_wrong": ([np.array([np.nan, 1, 2]), np.array([1, 2, 3])], "out1: 1 of 3 elements wrong"),
    "writes_first_only": ([values(40), values(20)], "out1: 20 of 20 elements wrong"),
    "writes_nothing": ([values(40)], "out0: 40 of 40 elements wrong (1); never written"),
    "writes_all_but_last": ([values(40)], "out0: 1 of 40 elements wrong (0.025); never written"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_public_runners_mistakes(name: str, tmp_path: Path) -> None:
    """Faults of judges elsewhere (B54, B55, B58, B59, B60, C03)."""
    baselines, reason = WRONG[name]
    path = write_alien(tmp_path / "case.pb", *baselines)
    result = result_of(path, name)
    assert result["status"] == "fail"
    assert reason in result["reason"]
    assert result_of(path, "baseline")["status"] in ("pass", "mistrusted")


def test_d4_the_reason_counts_only_what_is_beyond_the_tolerance(tmp_path: Path) -> None:
    """Rounding differences of all other elements gave a second, larger count."""
    result = result_of(write_alien(tmp_path / "case.pb", values(4000)), "noise_and_two_wrong")
    assert result["reason"].startswith("out0: 2 of 4000 elements wrong (0.0005); ")
    assert re.findall(r"\d+ (?:of \d+ )?elements", result["reason"]) == ["2 of 4000 elements"]
    assert "; diff1 = " in result["reason"]


def test_an_all_zero_baseline_met_by_zeros(tmp_path: Path) -> None:
    """PITFALLS B58: no NaN in the report, and no more than a mistrusted pass."""
    result = result_of(write_alien(tmp_path / "case.pb", np.zeros(40)), "baseline")
    assert result["status"] == "mistrusted"
    assert result["outputs"]["out0"]["criteria"][0]["value"] == 0


def test_an_empty_output_beside_others_is_passed_over(tmp_path: Path) -> None:
    path = write_alien(tmp_path / "case.pb", np.zeros((0, 3)), values(20))
    assert result_of(path, "baseline")["status"] == "pass"
    assert result_of(path, "writes_nothing")["status"] == "fail"


def test_no_criterion_is_no_pass(tmp_path: Path) -> None:
    node = case_node("alien_op", suite="")
    add_tensor(node.input, "in", (4,), layout="ARRAY")
    add_tensor(node.output, "out0", (40,), layout="ARRAY")
    write_case(tmp_path / "case.pb", node, [np.ones(4, np.float32)], [values(40)])
    result = result_of(tmp_path / "case.pb", "baseline")
    assert result["status"] == "fail"
    assert "there is no criterion to judge it by" in result["reason"]


@pytest.mark.parametrize("op", sorted(operators()))
def test_an_implementation_that_does_nothing_fails_for_each_operator(op: str, tmp_path: Path, cli: Cli) -> None:
    """PITFALLS B60: those too whose right answer is mostly zero or -1."""
    assert cli("gen", op, "--suite", "demo", "--out", tmp_path, "-j", "1").code == 0
    judged = 0
    for path in sorted(tmp_path.rglob("*.pb")):
        with read_case(path) as file:
            bound = bind(file, operators()[op])
            holds = bound.valid and any(bound.outputs[name].elements for name in bound.compared)
        if holds:
            judged += 1
            assert result_of(path, "writes_nothing")["status"] == "fail", path.stem
    assert judged >= 2
