"""A case in a test is judged as `mluops run` judges it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from generators.specs.expansion import expand_operator
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.core.escaping import one_line
from mluops_cli.core.record import Record
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.execution.recorder import record_of
from mluops_cli.implementations.python import Python
from mluops_cli.pytest_plugin import MluopsCase, MluopsWarning
from mluops_cli.pytest_plugin.marker import Chosen, opened
from mluops_cli.reports.console import failure_lines
from mluops_cli.search.case_making import built_case, write_case
from tests.mluops_cli.pytest_plugin import kernels

KERNELS = Path(kernels.__file__)
MEASURED = {"latency_us", "interface_us", "printed", "repro"}  # of a record: times, and what differs between the two


@contextmanager
def opened_case(case_id: str, folder: Path, **options: Any) -> Iterator[MluopsCase]:
    """A built-in case as the fixture opens it."""
    op, suite, _ = case_id.split("/")
    (case,) = (each for each in expand_operator(op, {suite}) if each.id == case_id)
    with opened(Chosen(case, CaseOptions(**options)), folder) as found:
        yield found


def of_run(case_id: str, kernel: str, folder: Path, **options: Any) -> Record:
    """The record that `mluops run --impl python:` makes of a built-in case."""
    op, suite, _ = case_id.split("/")
    (case,) = (each for each in expand_operator(op, {suite}) if each.id == case_id)
    planned = write_case(case, folder)
    settings = WorkerSettings(CaseOptions(**options))
    return record_of(
        planned,
        "python",
        run_case({"file": planned.file, "manifest_meta": None}, Python(f"{KERNELS}:{kernel}"), settings),
    )


def told(action: Callable[[], Record]) -> tuple[str, str, Record | None]:
    """What a test sees: the kind of its end, the text, the record where there is one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            record = action()
        except AssertionError as failed:
            return "failed", str(failed), None
        except pytest.skip.Exception as skipped:
            return "skipped", str(skipped.msg), None
    return "warned" if caught else "passed", "\n".join(str(each.message) for each in caught), record


def plain(record: Record) -> dict[str, Any]:
    return {key: value for key, value in record.as_json().items() if key not in MEASURED}


DEMO = "psamask_forward/demo/even_mask"
ROWS = [
    ("right", DEMO, {}, "passed"),
    ("shifted", DEMO, {}, "failed"),
    ("unwritten", DEMO, {}, "failed"),
    ("outside", DEMO, {}, "failed"),
    ("refuses", DEMO, {}, "skipped"),
    ("bad_param", DEMO, {}, "failed"),
    ("right", "psamask_forward/demo/empty", {}, "passed"),
    ("right", "psamask_forward/invalid/small_psa_type_2", {}, "passed"),
    ("imprecise", "voxel_pooling_forward/demo/small", {}, "warned"),
    ("imprecise", "voxel_pooling_forward/demo/small", {"bound": "fail"}, "failed"),
    ("right", "get_indice_pairs/demo/scene_subm", {}, "passed"),
    ("silent", "get_indice_pairs/demo/scene_subm", {}, "warned"),
]


@pytest.mark.parametrize(("kernel", "case_id", "options", "end"), ROWS)
def test_run_and_check_judge_as_mluops_run(
    kernel: str, case_id: str, options: dict[str, Any], end: str, tmp_path: Path
) -> None:
    run = of_run(case_id, kernel, tmp_path / "run", **options)
    function = getattr(kernels, kernel)

    def by_hand(case: MluopsCase) -> Record:
        return case.check(status=function(case.op, case.inputs, case.outputs, case.params))

    def given(case: MluopsCase) -> Record:
        outputs = {name: np.empty_like(array) for name, array in case.outputs.items()}
        status = function(case.op, case.inputs, case.outputs, case.params)
        for name, array in case.outputs.items():
            outputs[name][...] = array
        return case.check(outputs, status)

    ways = {"run": lambda case: case.run(function), "check": by_hand, "outputs": given}
    for way, act in ways.items():
        with opened_case(case_id, tmp_path / way, **options) as case:
            found, text, record = told(lambda act=act, case=case: act(case))  # type: ignore[misc]
        assert found == end, f"{way}: {text}"
        if end == "failed":
            assert text == "\n".join(map(one_line, failure_lines(run)))
        elif end == "skipped":
            assert text == f"{case_id}: {run.reason}"
        else:
            assert record is not None
            ours, theirs = plain(record), plain(run)
            assert ours | {"file": ""} == theirs | {"file": ""}


def test_a_mistrusted_pass_warns_once_where_the_test_calls(tmp_path: Path) -> None:
    entry = {
        "name": "zeros",
        "sizes": {"N": 1, "H": 3, "W": 4},
        "params": {"psa_type": "collect", "h_mask": 3, "w_mask": 3},
        "inputs": {"x": {"dist": {"constant": 0}}},
    }
    chosen = Chosen(built_case("psamask_forward", "general", entry), CaseOptions())
    with opened(chosen, tmp_path) as case, pytest.warns(MluopsWarning, match="mistrusted: ") as caught:
        record = case.run(kernels.right)
    assert record.status == "mistrusted"
    assert [each.filename for each in caught] == [__file__]


# -- what run takes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [kernels.right, kernels.Right, kernels.Right(), f"{KERNELS}:Right"])
def test_run_takes_what_python_takes(kernel: Any, tmp_path: Path) -> None:
    with opened_case(DEMO, tmp_path) as case:
        assert case.run(kernel).status == "pass"
        with pytest.raises(AssertionError, match="elements wrong"):  # the buffers are filled anew
            case.run(kernels.unwritten)
        assert case.run(kernel).status == "pass"


def test_what_is_no_kernel_is_refused(tmp_path: Path) -> None:
    with opened_case(DEMO, tmp_path) as case:
        with pytest.raises(pytest.fail.Exception, match="the kernel is a int, expected something callable"):
            case.run(7)  # type: ignore[arg-type]
        with pytest.raises(pytest.fail.Exception, match="did you mean 'right'"):
            case.run(f"{KERNELS}:rigth")


def test_repeat_and_relations_are_options_of_a_case(tmp_path: Path) -> None:
    with opened_case(DEMO, tmp_path, repeat=3, relations=True) as case:
        record = case.run(kernels.right)
    assert record.repeats == 3
    assert record.relations


@pytest.mark.parametrize("kernel", ["raises", "nonsense"])
def test_an_error_of_the_kernel_is_told(kernel: str, tmp_path: Path) -> None:
    words = {"raises": "raised ArithmeticError: no such mask", "nonsense": "returned an unknown operator status 'FINE'"}
    with opened_case(DEMO, tmp_path) as case, pytest.raises(AssertionError, match=f"^ERROR {DEMO}: {words[kernel]}"):
        case.run(getattr(kernels, kernel))


@pytest.mark.parametrize(
    "end", [KeyboardInterrupt, pytest.skip.Exception, pytest.fail.Exception, pytest.exit.Exception]
)
def test_what_ends_a_test_is_no_failure_of_the_kernel(end: type[BaseException], tmp_path: Path) -> None:
    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        raise end("ended")

    with opened_case(DEMO, tmp_path) as case, pytest.raises(end, match="ended"):
        case.run(kernel)


# -- what check takes ----------------------------------------------------------------------------------------


def right_outputs(case: MluopsCase) -> dict[str, Any]:
    """The right outputs, in arrays of their own; the buffers are left as they are."""
    outputs = {name: np.empty_like(array) for name, array in case.outputs.items()}
    kernels.right(case.op, case.inputs, outputs, case.params)
    return outputs


def test_one_output_needs_no_name(tmp_path: Path) -> None:
    with opened_case(DEMO, tmp_path) as case:
        y = right_outputs(case)["y"]
        assert case.check(y).status == "pass"
        assert case.check({"y": y}).status == "pass"
        assert case.check(case.outputs).status == "pass"  # they hold it now
        y[0, 0, 0, 0] += 1
        with pytest.raises(AssertionError, match="1 of 576 elements wrong"):
            case.check(y)


def test_buffers_that_nothing_was_written_to_fail(tmp_path: Path) -> None:
    with opened_case(DEMO, tmp_path) as case, pytest.raises(AssertionError, match="never written"):
        case.check()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y: {"y": y.astype(np.float64)}, "output 'y' is of float64, expected float32"),
        (lambda y: {"y": y.astype(ml_dtypes.bfloat16)}, "output 'y' is of bfloat16, expected float32"),
        (lambda y: {"y": y[..., :-1]}, r"output 'y' has the shape \(.*\), expected \("),
        (lambda y: {"Y": y}, "check was given an output 'Y'"),
        (lambda y: {}, "output 'y' is missing"),
    ],
)
def test_outputs_that_do_not_fit_fail(change: Callable[[Any], Any], words: str, tmp_path: Path) -> None:
    with opened_case(DEMO, tmp_path) as case, pytest.raises(AssertionError, match=words):
        case.check(change(right_outputs(case)["y"]))


def test_valid_rows_of_an_output_with_capacity_are_enough(tmp_path: Path) -> None:
    with opened_case("get_indice_pairs/demo/scene_subm", tmp_path) as case:
        outputs = right_outputs(case)
        rows = int(kernels.right(case.op, case.inputs, dict(outputs), case.params)["num_act_out"])
        outputs["out_indices"] = outputs["out_indices"][:rows]
        record = case.check(outputs, {"num_act_out": rows})
        assert (record.status, record.unverified) == ("pass", [])
        with pytest.raises(AssertionError, match=f"num_act_out is {rows + 1}, expected {rows}"):
            case.check(outputs, {"num_act_out": rows + 1})
        with pytest.raises(AssertionError, match="one array, expected a dict of the outputs out_indices"):
            case.check(outputs["out_indices"])


@pytest.mark.parametrize(
    ("status", "fits"), [("BAD_PARAM", True), (3, True), ({"status": 3}, True), ("SUCCESS", False)]
)
def test_an_invalid_case_wants_its_status(status: Any, *, fits: bool, tmp_path: Path) -> None:
    with opened_case("psamask_forward/invalid/small_x_dtype_half", tmp_path) as case:
        assert case.expected_status == ("BAD_PARAM",)
        if fits:
            assert case.check(status=status).operator_status == "BAD_PARAM"
            return
        with pytest.raises(AssertionError, match="expected BAD_PARAM, got SUCCESS"):
            case.check(status=status)


# -- the case ------------------------------------------------------------------------------------------------


def test_a_case_has_arrays_that_a_test_cannot_spoil(tmp_path: Path) -> None:
    with opened_case(DEMO, tmp_path) as case:
        assert (case.id, case.op, case.suite, case.tags) == (DEMO, "psamask_forward", "demo", ())
        assert {name: case.params[name] for name in ("h_mask", "w_mask")} == {"h_mask": 2, "w_mask": 4}
        assert case.descriptors["x"].layout == "NHWC"  # type: ignore[union-attr]
        x, y = case.inputs["x"], case.outputs["y"]
        assert x is not None
        assert y is not None
        assert not x.flags.writeable
        assert not np.array_equal(y.reshape(-1)[:1], np.zeros(1, np.float32))  # filled with what the baseline lacks
        case.outputs.clear()
        case.params.clear()
        assert case.run(kernels.right).status == "pass"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
