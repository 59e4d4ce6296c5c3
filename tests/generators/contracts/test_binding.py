"""Binding a case file to its operator: by position, defaults filled in, bad files refused with the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.contracts.binding import bind
from generators.contracts.bound_case import BoundCase, stored_bytes
from generators.operator_registry import operators
from schemas.casefiles.reading import read_case
from schemas.criteria import Criterion
from schemas.errors import InputError
from schemas.protos import messages as proto

IM2COL = """
op_name: "masked_im2col_forward"
input { id: "input1" shape { dims: 1 dims: 1 dims: 2 dims: 2 } layout: LAYOUT_NCHW dtype: DTYPE_FLOAT
        value_f: [1, 2, 3, 4] }
input { id: "input2" shape { dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 value_i: [0, 1] }
input { id: "input3" shape { dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 value_i: [1, 0] }
output { id: "out" shape { dims: 9 dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT }
"""


def bound(folder: Path, text: str, meta: dict[str, Any] | None = None) -> BoundCase:
    path = folder / "some.prototxt"
    path.write_text(text)
    file = read_case(path)
    if meta is not None:
        proto.set_meta(file.node, proto.CaseMeta(**meta))
    return bind(file, operators().get(file.op))


def test_tensors_get_the_contracts_names_by_position(tmp_path: Path) -> None:
    found = bound(tmp_path, IM2COL)
    assert [(name, record.id) for name, record in found.inputs.items()] == [
        ("feature", "input1"),
        ("mask_h_idx", "input2"),
        ("mask_w_idx", "input3"),
    ]
    assert list(found.outputs) == ["data_col"]
    assert found.id == "masked_im2col_forward/external/some"
    descriptor = found.descriptors["feature"]
    assert descriptor is not None
    assert (descriptor.layout, descriptor.dtype, descriptor.dims) == ("NCHW", "float", (1, 1, 2, 2))


def test_absent_parameters_have_the_interfaces_defaults(tmp_path: Path) -> None:
    assert bound(tmp_path, IM2COL).params == {"kernel_h": 3, "kernel_w": 3, "pad_h": 1, "pad_w": 1}
    given = bound(tmp_path, IM2COL.replace("9 dims: 2", "3 dims: 2") + "masked_im2col_forward_param { kernel_h: 1 }")
    assert given.params == {"kernel_h": 1, "kernel_w": 3, "pad_h": 1, "pad_w": 1}


def test_a_required_parameter_message_that_is_missing_is_refused(tmp_path: Path) -> None:
    text = """op_name: "psamask_forward"
    input { id: "x" shape { dims: [1, 1, 1, 1] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT value_f: 1 }
    output { id: "y" shape { dims: [1, 1, 1, 1] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT }"""
    with pytest.raises(InputError, match=r"psamask_forward_param is missing.*h_mask"):
        bound(tmp_path, text)


def test_inputs_are_the_stored_values_and_read_only(tmp_path: Path) -> None:
    arrays = bound(tmp_path, IM2COL).input_arrays()
    feature = arrays["feature"]
    assert feature is not None
    np.testing.assert_array_equal(feature, np.array([[[[1, 2], [3, 4]]]], np.float32))
    assert all(array is not None and not array.flags.writeable for array in arrays.values())


def test_random_data_is_drawn_inside_its_bounds_and_differs_between_tensors_of_one_seed(tmp_path: Path) -> None:
    random = "random_data { seed: 23 lower_bound: 2 upper_bound: 3 distribution: UNIFORM }"
    text = f"""op_name: "add"
    input {{ id: "a" shape {{ dims: 500 }} layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT {random} }}
    input {{ id: "b" shape {{ dims: 500 }} layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT {random} }}
    output {{ id: "c" shape {{ dims: 500 }} layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT }}"""
    arrays = bound(tmp_path, text).input_arrays()
    a, b = arrays["a"], arrays["b"]
    assert a is not None
    assert b is not None
    assert ((a >= 2) & (a < 3) & (b >= 2) & (b < 3)).all()
    assert (a != b).mean() > 0.9
    again = bound(tmp_path, text).input_arrays()["a"]
    assert again is not None
    np.testing.assert_array_equal(a, again)
    assert not a.flags.writeable


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('input { id: "input3"', 'output { id: "input3"', "2 inputs, expected 3: feature, mask_h_idx, mask_w_idx"),
        ("value_f: [1, 2, 3, 4]", "", r'input\[0\] "input1".*neither values nor random_data'),
        ("dims: 9 dims: 2", "dims: 8 dims: 2", "data_col dim 0 is 8, expected .*= 9"),
        ("dims: 9 dims: 2", "dims: 9 dims: 3", "data_col dim 1 is 3"),
        ("LAYOUT_NCHW", "LAYOUT_NHWC", "feature has layout NHWC, expected NCHW"),
        ("dims: 1 dims: 1 dims: 2 dims: 2", "dims: 1 dims: 2 dims: 2", "feature has 3 dims"),
        ('id: "out"', 'id: "out_NULL"', "data_col has no descriptor"),
    ],
)
def test_a_file_that_breaks_the_contract_is_refused_naming_file_and_rule(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in IM2COL
    with pytest.raises(InputError, match=message) as caught:
        bound(tmp_path, IM2COL.replace(old, new))
    assert "some.prototxt" in str(caught.value)


def test_a_value_count_that_disagrees_with_the_shape_is_refused(tmp_path: Path) -> None:
    found = bound(tmp_path, IM2COL.replace("[1, 2, 3, 4]", "[1, 2, 3]"))
    with pytest.raises(InputError, match="3 values, expected 4"):
        found.input_arrays()


def test_a_case_of_ours_that_expects_an_error_may_break_the_contract(tmp_path: Path) -> None:
    meta = {"suite": "invalid", "name": "odd", "expect": ["BAD_PARAM"], "tags": ["t"], "seed": 7}
    found = bound(tmp_path, IM2COL.replace("dims: 9 dims: 2", "dims: 8 dims: 2"), meta)
    assert found.id == "masked_im2col_forward/invalid/odd"
    assert (found.expect, found.tags, found.seed, found.valid) == (("BAD_PARAM",), ("t",), 7, False)


def test_faults_take_descriptors_and_data_away(tmp_path: Path) -> None:
    faults = ["null_descriptor:data_col", "null_pointer:feature"]
    meta = {"suite": "invalid", "name": "n", "expect": ["BAD_PARAM"], "faults": faults, "omitted": ["mask_h_idx"]}
    found = bound(tmp_path, IM2COL.replace("value_f: [1, 2, 3, 4]", ""), meta)
    assert found.descriptors["data_col"] is None
    assert found.descriptors["feature"] is not None
    arrays = found.input_arrays()
    assert arrays["feature"] is None
    assert arrays["mask_h_idx"] is None
    assert arrays["mask_w_idx"] is not None


def test_criteria_are_the_files_or_else_the_contracts(tmp_path: Path) -> None:
    assert bound(tmp_path, IM2COL).criteria == {"data_col": (Criterion("diff3", 0.0, "category pure_io"),)}
    given = bound(tmp_path, IM2COL + "test_param { error_func: DIFF1 error_threshold: 0.25 }")
    assert [(each.name, each.threshold) for each in given.criteria["data_col"]] == [("diff1", 0.25)]
    unused = bound(tmp_path, IM2COL.replace('output { id: "out"', 'output { threshold_use: 0 id: "out"'))
    assert unused.criteria == {"data_col": ()}


def test_a_stored_baseline_counts_when_the_file_says_it_carries_one(tmp_path: Path) -> None:
    stored = IM2COL.replace("dims: 9 dims: 2", "dims: 9 dims: 2").replace(
        "DTYPE_FLOAT }\n", f"DTYPE_FLOAT value_f: {list(range(18))} }}\n"
    )
    assert not bound(tmp_path, stored).carries_baseline  # device CPU: compute it
    assert bound(tmp_path, stored + "device: GPU").carries_baseline
    assert not bound(tmp_path, IM2COL + "device: GPU").carries_baseline


ABS = """op_name: "some_op"
input { id: "a" shape { dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, 2] }
output { id: "b" shape { dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, 2] }
nms_param { run_mode: 0 iou_threshold: 0.5 mode: NMS_BATCH_AND_CLASS } """


NO_TENSOR = 'output { id: "NULL" shape { dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT }'


def test_without_a_contract_tensors_are_named_by_their_ids(tmp_path: Path) -> None:
    found = bound(tmp_path, ABS)
    assert (list(found.inputs), list(found.outputs)) == (["a"], ["b"])
    assert found.carries_baseline
    assert found.params["iou_threshold"] == 0.5
    assert found.params["mode"] == 3


def test_tensors_of_one_id_are_told_apart(tmp_path: Path) -> None:
    other = ABS.splitlines()[1].replace("[1, 2]", "[3, 4]")
    found = bound(tmp_path, f"{ABS}{other}")
    assert (list(found.inputs), list(found.outputs)) == (["a", "a~2"], ["b"])


def test_an_output_called_like_an_input_keeps_its_name(tmp_path: Path) -> None:
    """Inputs and outputs are dicts of their own; only among all tensors it is the second of that name."""
    found = bound(tmp_path, ABS.replace('"a"', '"b"').replace("dims: 2 }", "dims: 1 dims: 2 }", 1))
    assert (list(found.inputs), list(found.outputs), list(found.criteria)) == (["b"], ["b"], ["b"])
    dims = {name: descriptor.dims for name, descriptor in found.descriptors.items() if descriptor is not None}
    assert dims == {"b": (1, 2), "b~2": (2,)}
    assert {name: record.shape for name, record in found.records.items()} == dims
    assert stored_bytes(found) == 4 * (2 + 2)


def test_an_absent_output_needs_no_baseline(tmp_path: Path) -> None:
    assert bound(tmp_path, ABS + NO_TENSOR).carries_baseline
    assert not bound(tmp_path, ABS + NO_TENSOR.replace("NULL", "c")).carries_baseline


def test_a_file_without_outputs_is_no_case(tmp_path: Path) -> None:
    """PITFALLS B73."""
    with pytest.raises(InputError, match="some_op has no outputs, expected at least one"):
        bound(tmp_path, "".join(line for line in ABS.splitlines() if not line.startswith("output")))


def test_a_tensor_called_null_is_absent(tmp_path: Path) -> None:
    found = bound(tmp_path, ABS.replace('id: "a"', 'id: "NULL"').replace("value_f: [1, 2] }\noutput", "}\noutput"))
    assert found.descriptors == {"NULL": None, "b": found.outputs["b"].descriptor}
    assert found.input_arrays() == {"NULL": None}


def test_stored_bytes_counts_what_a_complete_file_holds(tmp_path: Path) -> None:
    assert stored_bytes(bound(tmp_path, IM2COL)) == 4 * (4 + 2 + 2 + 18)


def test_a10_random_data_depends_on_the_files_content_alone(tmp_path: Path) -> None:
    """FOUND A10: the data depended on the case id, and the id on the argument of the command."""
    random = "random_data { seed: 23 lower_bound: 2 upper_bound: 3 distribution: UNIFORM }"
    text = IM2COL.replace("value_f: [1, 2, 3, 4]", random)
    path = tmp_path / "below" / "some.prototxt"
    path.parent.mkdir()
    path.write_text(text)
    operator = operators()["masked_im2col_forward"]

    def drawn(path: Path, name: str = "", numbering: str = "current") -> Any:
        with read_case(path, numbering) as file:
            return bind(file, operator, name).input_arrays()["feature"]

    binary = tmp_path / "other.pb"
    binary.write_bytes(proto.serialize(proto.parse_text(text.replace('"out"', '"else"'), proto.Node(), "a")))
    expected = drawn(path)
    for found in (drawn(path, "below/some"), drawn(path, "other/name"), drawn(binary)):
        np.testing.assert_array_equal(found, expected)
    for old, new in (
        ("seed: 23", "seed: 24"),
        ("value_i: [0, 1]", "value_i: [0, 0]"),
        ("dims: 2 dims: 2", "dims: 1 dims: 4"),
    ):
        path.write_text(text.replace(old, new))
        differs = drawn(path).reshape(-1).tolist() != expected.reshape(-1).tolist()
        assert differs == (old != "value_i: [0, 1]")
