"""Calls through `capi`: arguments, workspaces, counts, relations, and what the library leaves unchecked."""

from __future__ import annotations

import ctypes
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.contracts.faults import Fault
from generators.operator_registry import operators
from mluops_cli.implementations.base import Call, CannotShow
from mluops_cli.implementations.capi import CApi
from mluops_cli.implementations.capi import symbols as tables
from mluops_cli.implementations.capi.library import as_argument
from mluops_cli.implementations.registry import implementation_named
from schemas.tensor_descriptor import Descriptor
from tests.mluops_cli.implementations.calls import (
    check_hand_values,
    get_indice_pairs,
    masked_im2col,
    psamask,
)
from tests.mluops_cli.implementations.capi.conftest import SOURCES, build, variant

# Cases of what neither the design nor the vendor checks (docs/vendor.md).
UNCHECKED = {
    "psa_type_2", "rois_5_of_2_images", "small_psa_type_2", "small_psa_type_minus1", "small_h_mask_0", "small_w_mask_0",
    "small_workspace_short", "small_n_3", "small_n_5",
}  # fmt: skip
UNTOLD = {
    "roialign_forward",
    "masked_col2im_forward",
    "indice_convolution_forward",
}  # operators whose functions the public interface's copy doesn't tell
KNOWN = " and ".join(f"not {op}/" for op in UNTOLD)


def test_hand_values(standin: str) -> None:
    check_hand_values(CApi(standin).call)


@pytest.mark.slow
def test_the_small_suites_pass_where_the_library_is_strict(
    standin: str, suites: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_STRICT", "1")
    ran = run(suites, "-k", KNOWN, "--impl", f"capi:{standin}", "-j", "1")
    assert ran.code == 0
    assert {record["op"] for record in ran.records.values() if record["status"] == "pass"} == set(tables.OPERATORS)
    assert set(ran.statuses.values()) <= {"pass", "empty"}
    faults = [case for case in ran.records if "_null_" in case or "_workspace_" in case]
    assert len(faults) > 50
    assert {ran.statuses[case] for case in faults} == {"pass"}


def test_relations_hold(standin: str, suites: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_STRICT", "1")
    ran = run(suites, "-k", KNOWN, "--suite", "demo", "--impl", f"capi:{standin}", "-j", "1", "--relations")
    assert ran.code == 0
    told = {(record["op"], name): text for record in ran.records.values() for name, text in record["relations"].items()}
    assert told.keys() == {(op, each.name) for op in tables.OPERATORS for each in operators()[op].contract.relations}
    assert {text for record in ran.records.values() for text in record["relations"].values()} == {"holds"}


@pytest.mark.slow
def test_c1_to_c7_the_small_suites_fail_only_where_the_vendor_is_wrong(
    standin: str, suites: Path, run: Callable[..., Any]
) -> None:
    ran = run(suites, "-k", KNOWN, "--impl", f"capi:{standin}", "-j", "1")
    assert ran.code == 1
    wrong = {
        case: record["reason"] for case, record in ran.records.items() if record["status"] not in ("pass", "empty")
    }
    # The kernels 1x3x3 and 2x2x2 lose an output (docs/vendor.md).
    assert [case.rpartition("/")[2] for case in sorted(wrong)] == [
        "kernel_filter_space1x3x3",
        "kernel_filter_space2x2x2",
    ]
    assert all(reason.startswith("num_act_out is ") for reason in wrong.values())
    unchecked = {case for case, each in ran.records.items() if each["beyond_design"]}
    assert {ran.records[case]["operator_status"] for case in unchecked} == {"SUCCESS"}
    assert {case.rpartition("/")[2] for case in unchecked} == UNCHECKED


def test_the_tables_name_what_the_contracts_have() -> None:
    assert set(tables.OPERATORS) == set(operators()) - UNTOLD
    for op, function in tables.OPERATORS.items():
        contract = operators()[op].contract
        words = function.arguments.split()
        assert [word for word in words if word in contract.tensors] != []
        for name in contract.tensors:
            assert words.index(name) == words.index(f"{name}_desc") + 1
        assert ("workspace" in words) == contract.workspace == (function.size is not None)


def test_device_time_and_workspace(standin: str) -> None:
    outcome = CApi(standin).call(masked_im2col())
    assert outcome.latency_us is not None
    assert 0 < outcome.latency_us < 1e6
    assert outcome.workspace_bytes == (9 + 8) * 4
    assert CApi(standin).call(psamask()).workspace_bytes is None


@pytest.mark.parametrize(("value", "expected"), [(True, ctypes.c_bool), (0.25, ctypes.c_float), (-3, ctypes.c_int)])
def test_a_parameter_is_passed_as_c_has_it(value: float, expected: type) -> None:
    passed = as_argument(value)
    assert type(passed) is expected
    assert passed.value == value


# ---- faults are shown really ----


@pytest.mark.parametrize(
    "call",
    [
        psamask(faults=("null_handle",)),
        psamask(faults=("null_descriptor:y",), descriptors={"y": None}),
        masked_im2col(faults=("workspace:null",)),
        masked_im2col(faults=("null_workspace_size",)),
        psamask(descriptors={"x": Descriptor("NCHW", "float", (1, 1, 2, 3))}),
    ],
)
def test_what_is_wrong_is_answered(call: Call, standin: str) -> None:
    assert CApi(standin).call(call).status == "BAD_PARAM"


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (masked_im2col, "size_query_null_handle"),
        *[(masked_im2col, f"size_query_null_descriptor:{name}")
          for name in ("feature", "mask_h_idx", "mask_w_idx", "data_col")],
        (get_indice_pairs, "size_query_null_handle"),
        *[(get_indice_pairs, f"size_query_null_descriptor:{name}")
          for name in ("indices", "indice_pairs", "out_indices", "indice_num")],
        (get_indice_pairs, "null_parameters"),
    ],
)  # fmt: skip
def test_c8_null_arguments_of_other_functions_than_the_operator_s(
    call: Callable[..., Call], fault: str, standin: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """They had no words: neither a null sparse descriptor, nor nulls where the workspace size is asked for."""
    faulty = replace(call(), faults=(Fault.parse(fault),))
    assert CApi(standin).call(faulty).status == "BAD_PARAM"
    asked = fault.startswith("size_query")
    assert ("WorkspaceSize returned 3" in capfd.readouterr().err) == asked


def test_c8_a_library_that_accepts_nulls_is_seen(standin: str, tmp_path: Path) -> None:
    change = (
        "|| !mask_h || !mask_w || !data_col || !size ||",
        "|| !mask_h || (!mask_w && !handle) || !data_col || !size ||",
    )
    careless = CApi(variant(tmp_path, standin, change))
    faults = {name: Fault.parse(f"size_query_null_descriptor:{name}") for name in ("mask_w_idx", "mask_h_idx")}
    answers = {name: careless.call(replace(masked_im2col(), faults=(fault,))).status for name, fault in faults.items()}
    assert answers == {"mask_w_idx": "SUCCESS", "mask_h_idx": "BAD_PARAM"}


@pytest.mark.parametrize("fault", ["null_parameters", "size_query_null_handle", "size_query_null_descriptor:x"])
def test_c8_who_can_not_be_asked_skips_with_the_reason(standin: str, fault: str) -> None:
    call = replace(psamask(), faults=(Fault.parse(fault),))
    for implementation in (CApi(standin), implementation_named("tiled")):
        with pytest.raises(CannotShow, match=r"mluOpPsamaskForward (takes its|has no)|can't be shown that the "):
            implementation.call(call)


def test_null_pointers_and_too_large_tensors(standin: str) -> None:
    call = psamask(faults=("null_pointer:x",))
    null = Call(call.op, {"x": None}, call.outputs, call.params, call.descriptors, call.faults)
    assert CApi(standin).call(null).status == "BAD_PARAM"
    dims = {"x": (1, 40000, 40000, 3), "y": (1, 40000, 40000, 40000 * 40000)}
    described = {name: Descriptor("NHWC", "float", each) for name, each in dims.items()}
    large = Call(call.op, {"x": None}, {"y": None}, call.params, described)
    assert CApi(standin).call(large).status == "BAD_PARAM"


def test_strides_are_passed_on(standin: str) -> None:
    call = psamask()
    memory = np.arange(12, dtype=np.float32)
    strided = np.lib.stride_tricks.as_strided(memory, (1, 1, 2, 3), (48, 48, 24, 8), writeable=False)
    described = {**call.descriptors, "x": Descriptor("NHWC", "float", (1, 1, 2, 3), (12, 12, 6, 2))}
    assert CApi(standin).call(Call(call.op, {"x": strided}, call.outputs, call.params, described)).status == "BAD_PARAM"


def test_a_short_workspace_is_whole_and_reported_short(standin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call = masked_im2col(faults=("workspace:short",))
    assert CApi(standin).call(call).status == "SUCCESS"  # never compared: nothing is damaged
    monkeypatch.setenv("STANDIN_STRICT", "1")
    assert CApi(standin).call(call).status == "BAD_PARAM"


def test_a_null_pointer_for_the_workspace_size_that_is_accepted(
    standin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    careless = variant(
        tmp_path,
        standin,
        ("!data_col || !size ||", "!data_col ||"),
        ("    *size = bytes(feature) + bytes(data_col);", "    if (size) *size = 1;"),
    )
    assert CApi(careless).call(masked_im2col(faults=("null_workspace_size",))).status == "SUCCESS"
    monkeypatch.setenv("STANDIN_STRICT", "1")
    assert CApi(careless).call(masked_im2col()).status == "BAD_PARAM"  # it asks for less than it needs


def test_a_library_that_presumes_a_zeroed_workspace_is_found_out(standin: str, tmp_path: Path) -> None:
    change = ("memset(column, 0, width);", "memcpy(column, work->workspace, width);")
    implementation = CApi(variant(tmp_path, standin, change))
    call = masked_im2col()
    implementation.call(call)
    np.testing.assert_array_equal(call.outputs["data_col"], np.array([[np.nan, c] for c in (1, 2, 4, 5)]))


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        (Descriptor("NHWC", "complex_double", (1, 1, 2, 3)), "no dtype complex_double"),
        (Descriptor("NHWC", "float", (1, 1, 2, 2**63)), "takes int64_t, which can't hold all of"),
    ],
)
def test_what_the_interface_lacks_is_a_skip(described: Descriptor, reason: str, standin: str) -> None:
    with pytest.raises(CannotShow, match=reason):
        CApi(standin).call(psamask(descriptors={"x": described}))


def test_c6_dims_beyond_32_bits_take_the_setters_with_64_bits(standin: str, tmp_path: Path) -> None:
    dims = {"mask_h_idx": (2**31,), "mask_w_idx": (2**31,), "data_col": (4, 2**31)}
    described = {name: Descriptor("ARRAY", "float" if "col" in name else "int32", each) for name, each in dims.items()}
    call = masked_im2col(descriptors=described)
    large = replace(call, inputs={"feature": call.inputs["feature"], "mask_h_idx": None, "mask_w_idx": None})
    large = replace(large, outputs={"data_col": None})
    assert CApi(standin).call(large).status == "NOT_SUPPORTED"
    narrow = build(tmp_path, "libnarrow.so", SOURCES / "mluop.c", "-DSTANDIN_NARROW")
    older = CApi(f"library={narrow},{standin.partition(',')[2]}")
    with pytest.raises(CannotShow, match="takes int, which can't hold all of"):
        older.call(large)
    check_hand_values(older.call)


def test_c1_num_act_out_is_left_out_where_the_library_never_stores_it(standin: str) -> None:
    call = get_indice_pairs()
    assert CApi(standin).call(call).scalars == {"num_act_out": 4}
    submanifold = replace(call, params={**call.params, "sub_m": 1}, outputs={**call.outputs})
    rows = np.full((2, 4), 77, np.int32)
    submanifold = replace(
        submanifold,
        outputs={**call.outputs, "out_indices": rows},
        descriptors={**call.descriptors, "out_indices": Descriptor("ARRAY", "int32", (2, 4))},
    )
    assert CApi(standin).call(submanifold).scalars == {}
    assert rows.tolist() == [[0, 0, 0, 3], [0, 0, 0, 0]]


def test_c5_a_workspace_has_no_copy_on_the_host(standin: str, tmp_path: Path) -> None:
    size = ("*size = bytes(feature) + bytes(data_col);", "*size = 1 << 28;")
    implementation, call = CApi(variant(tmp_path, standin, size)), masked_im2col()
    tracemalloc.start()
    try:
        assert implementation.call(call).workspace_bytes == 1 << 28
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_the_handle_and_the_queue_are_destroyed_at_the_end(standin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    implementation = CApi(standin)
    called: list[str] = []
    call, queue = implementation.library.call, implementation.runtime._functions["queue_destroy"]

    def recorded(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        called.append(name)
        return function(*arguments)

    monkeypatch.setattr(implementation.library, "call", lambda name, *more: recorded(name, call, name, *more))
    destroy = {"queue_destroy": lambda *more: recorded("cnrtQueueDestroy", queue, *more)}
    monkeypatch.setattr(implementation.runtime, "_functions", {**implementation.runtime._functions, **destroy})
    implementation.close()
    assert called == ["mluOpDestroy", "cnrtQueueDestroy"]


def test_operators_without_a_signature_or_a_function_are_skips(standin: str, tmp_path: Path) -> None:
    with pytest.raises(CannotShow, match="no signature is known for operator abs"):
        CApi(standin).call(Call("abs", {}, {}, {}, {}))
    missing = ("mluOpPsamaskForward", "mluOpCreateSparseConvolutionDescriptor")
    implementation = CApi(variant(tmp_path, standin, *((name, f"other{name}") for name in missing)))
    for call, name in zip((psamask(), get_indice_pairs()), missing, strict=True):
        with pytest.raises(CannotShow, match=f"has no function {name}"):
            implementation.call(call)


def test_c4_counts_of_an_empty_call_stay_as_the_library_left_them(standin: str) -> None:
    call = get_indice_pairs()
    outputs = {
        "out_indices": np.zeros((0, 4), np.int32),
        "indice_pairs": np.zeros((3, 2, 0), np.int32),
        "indice_num": np.full(3, 77, np.int32),
    }
    inputs = {"indices": np.zeros((0, 4), np.int32)}
    described = {name: Descriptor("ARRAY", "int32", each.shape) for name, each in {**inputs, **outputs}.items()}
    outcome = CApi(standin).call(Call(call.op, inputs, outputs, call.params, described))
    assert (outcome.status, outcome.scalars) == ("SUCCESS", {"num_act_out": 0})
    assert outputs["indice_num"].tolist() == [77, 77, 77]


# ---- the stand-in's switches ----
