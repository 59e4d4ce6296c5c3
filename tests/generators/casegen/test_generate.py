"""Cases into files: read back with protobuf's own parser, values worked out by hand."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from generators.casegen.case_data import draw_inputs
from generators.casegen.completion import complete
from generators.casegen.generate import generate
from generators.casegen.node import set_criteria
from generators.casegen.size_estimate import planned_size
from generators.casegen.write_options import WriteOptions
from generators.contracts.binding import bind
from generators.contracts.case import Case, TensorPlan
from generators.contracts.faults import null_pointer
from generators.contracts.model import UNKNOWN, Contract, Parameter, TensorSpec
from generators.contracts.operator import Arrays, Operator
from generators.data.draw import Values
from generators.operator_registry import operator_named, operators
from generators.specs.expansion import expand_operator
from schemas.casefiles.reading import read_case
from schemas.criteria import Criterion
from schemas.errors import InputError, MluopsError
from schemas.protos import messages as proto

BIT_EXACT = (Criterion("diff3", 0.0, "category pure_io"),)
LIMIT = 1 << 20
HAND = Case(  # worked out by hand
    op="psamask_forward",
    suite="demo",
    name="hand",
    params={"psa_type": 0, "h_mask": 1, "w_mask": 3},
    inputs=(TensorPlan("x", "float", "NHWC", (1, 1, 2, 3), values=Values("sequence", (1, 1))),),
    outputs=(TensorPlan("y", "float", "NHWC", (1, 1, 2, 2)),),
    criteria={"y": BIT_EXACT},
    place="specs/psamask_forward.yaml:7",
)


def parsed(path: Path) -> Any:
    """The file as protobuf's own parser reads it."""
    return proto.Node.FromString(path.read_bytes())


@pytest.mark.parametrize(("psa_type", "expected"), [(0, [2, 3, 4, 5]), (1, [2, 4, 3, 5])])
def test_a_case_file_holds_inputs_baseline_and_all_that_is_known(
    tmp_path: Path, psa_type: int, expected: list[float]
) -> None:
    case = replace(HAND, params={**HAND.params, "psa_type": psa_type})
    entry = generate(case, WriteOptions(tmp_path, inline_limit=LIMIT))
    assert entry["files"] == ["psamask_forward/demo/hand.pb"]
    path = tmp_path / entry["files"][0]
    node = parsed(path)
    assert node.op_name == "psamask_forward"
    assert (list(node.input[0].value_f), list(node.output[0].value_f)) == ([1, 2, 3, 4, 5, 6], expected)
    assert (list(node.input[0].shape.dims), list(node.output[0].shape.dims)) == ([1, 1, 2, 3], [1, 1, 2, 2])
    assert (node.input[0].layout, node.input[0].dtype) == (2, 2)  # LAYOUT_NHWC, DTYPE_FLOAT
    param = node.psamask_forward_param
    assert (param.psa_type, param.h_mask, param.w_mask) == (psa_type, 1, 3)
    assert (list(node.test_param.error_func), list(node.test_param.error_threshold)) == ([8], [0.0])  # DIFF3
    assert (node.test_param.baseline_device, node.device) == (2, 2)  # GPU: the file carries it
    assert (node.theory_io_size, node.theory_compute_ops) == (4 * (6 + 4), 4)
    meta = proto.get_meta(node)
    assert meta is not None
    assert (meta.suite, meta.name, list(meta.expect), meta.seed) == ("demo", "hand", ["SUCCESS"], 1)
    assert meta.place == "psamask_forward.yaml:7"
    assert entry["bytes"] == path.stat().st_size
    digest = xxhash.xxh3_128_hexdigest(np.array(expected, np.float32).tobytes())
    assert [each["hash"] for each in entry["tensors"]][1] == digest
    assert [each.hash for each in meta.origins][1] == digest


def test_two_times_the_same_case_gives_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        generate(HAND, WriteOptions(tmp_path / folder, "both", LIMIT))
    for name in ("hand.pb", "hand.prototxt"):
        first, second = (tmp_path / folder / "psamask_forward/demo" / name for folder in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()


def test_data_depends_on_seed_case_and_tensor_alone() -> None:
    plan = TensorPlan("x", "float", "NHWC", (1, 1, 2, 3), values=Values("uniform", (-1, 1)))
    case = replace(HAND, inputs=(plan,))
    operator = operator_named("psamask_forward")

    def drawn(case: Case) -> list[float]:
        array = draw_inputs(case, operator)["x"]
        assert array is not None
        values: list[float] = array.ravel().tolist()
        return values

    assert drawn(case) == drawn(replace(case, place="elsewhere:1", tags=("t",)))
    assert drawn(case) != drawn(replace(case, seed=2))
    assert drawn(case) != drawn(replace(case, name="other"))


def test_an_invalid_case_has_inputs_and_no_baseline(tmp_path: Path) -> None:
    case = replace(
        HAND, expect=("BAD_PARAM", "NOT_SUPPORTED"), faults=(null_pointer("y"),), params={**HAND.params, "psa_type": 2}
    )
    generate(case, WriteOptions(tmp_path, inline_limit=LIMIT))
    node = parsed(tmp_path / "psamask_forward/demo/hand.pb")
    assert len(node.input[0].value_f) == 6
    assert len(node.output[0].value_f) == 0
    assert not node.HasField("device")
    meta = proto.get_meta(node)
    assert meta is not None
    assert (list(meta.expect), list(meta.faults)) == (["BAD_PARAM", "NOT_SUPPORTED"], ["null_pointer:y"])
    assert list(meta.omitted) == ["y"]


def test_a_large_tensor_has_no_data(tmp_path: Path) -> None:
    plan = TensorPlan("x", "float", "NHWC", (1, 1, 2, 2**30))
    entry = generate(replace(HAND, inputs=(plan,), expect=("BAD_PARAM",)), WriteOptions(tmp_path, inline_limit=LIMIT))
    assert entry["bytes"] < 1000
    meta = proto.get_meta(parsed(tmp_path / entry["files"][0]))
    assert meta is not None
    assert list(meta.omitted) == ["x"]


def test_an_asserted_shape_that_the_baseline_contradicts_is_refused_with_the_specs_place(tmp_path: Path) -> None:
    wrong = replace(HAND, outputs=(TensorPlan("y", "float", "NHWC", (1, 1, 2, 3)),))
    with pytest.raises(InputError, match=r"specs/psamask_forward.yaml:7: .*y has shape \[1, 1, 2, 3\].*\[1, 1, 2, 2\]"):
        generate(wrong, WriteOptions(tmp_path, inline_limit=LIMIT))
    assert list(tmp_path.rglob("*")) == []


def test_an_input_without_values_is_refused(tmp_path: Path) -> None:
    bare = replace(HAND, inputs=(replace(HAND.inputs[0], values=None),))
    with pytest.raises(InputError, match=r"psamask_forward\.yaml:7: input x has no values"):
        generate(bare, WriteOptions(tmp_path, inline_limit=LIMIT))


def test_tensors_above_the_inline_limit_go_to_external_data(tmp_path: Path) -> None:
    entry = generate(HAND, WriteOptions(tmp_path, inline_limit=16))
    folder = tmp_path / "psamask_forward/demo"
    (external,) = folder.glob("hand.in0.*.bin")
    assert len(list(folder.iterdir())) == 2
    np.testing.assert_array_equal(np.fromfile(external, "<f4"), [1, 2, 3, 4, 5, 6])
    node = parsed(folder / "hand.pb")
    assert (node.input[0].path, len(node.input[0].value_f)) == (external.name, 0)
    assert list(node.output[0].value_f) == [2, 3, 4, 5]
    assert entry["bytes"] == sum(path.stat().st_size for path in folder.iterdir())


def test_the_planned_size_of_a_float_case_is_that_of_its_file(tmp_path: Path) -> None:
    plan = TensorPlan("x", "float", "NHWC", (2, 9, 9, 25), values=Values("uniform", (-1, 1)))
    case = replace(
        HAND,
        params={"psa_type": 0, "h_mask": 5, "w_mask": 5},
        inputs=(plan,),
        outputs=(TensorPlan("y", "float", "NHWC", (2, 9, 9, 81)),),
    )
    for limit in (LIMIT, 100):
        options = WriteOptions(tmp_path, inline_limit=limit)
        written = generate(case, options)["bytes"]
        assert abs(planned_size(case, options) - written) < 0.02 * written


def test_criteria_that_differ_between_outputs_stand_per_output() -> None:
    node = proto.Node(op_name="voxel_pooling_forward")
    node.output.add(id="a")
    node.output.add(id="b")
    loose = (Criterion("diff1", 3e-3), Criterion("diff2", 3e-3), Criterion("diff3_1", 1.0))
    set_criteria(node, [loose, (Criterion("diff2", 0.0),)])
    assert list(node.evaluation_criterion) == [6, 7]  # DIFF1, DIFF2; diff3_1 has no number
    assert not node.HasField("test_param")
    thresholds = [list(output.thresholds.evaluation_threshold) for output in node.output]
    assert thresholds == [[3e-3, 3e-3], [float("inf"), 0.0]]


class Doubling(Operator):
    """A third party's operator: its output's length is known from the data alone."""

    contract = Contract(
        op="doubling",
        category="pure_io",
        inputs=(TensorSpec("x", ("float",), "ARRAY", "N"),),
        outputs=(TensorSpec("y", ("float",), "ARRAY", "M", criteria=BIT_EXACT),),
        parameters=(Parameter("factor", minimum=1), Parameter("pads", length=2), Parameter("M", output=("y", 0))),
    )

    def reference(self, inputs: Arrays, env: Any) -> Arrays:
        positive = inputs["x"][inputs["x"] > 0]
        return {env.get("output", "y"): positive * np.float32(env["factor"])}


@pytest.fixture
def doubling() -> Iterator[Case]:
    operators()["doubling"] = Doubling()
    values = Values("sequence", (-1, 1))
    yield Case(
        op="doubling",
        suite="demo",
        name="third",
        params={"factor": 2, "pads": (3, 4)},
        inputs=(TensorPlan("x", "float", "ARRAY", (4,), values=values),),  # -1 0 1 2
        outputs=(TensorPlan("y", "float", "ARRAY", (UNKNOWN,)),),
        criteria={"y": BIT_EXACT},
    )
    del operators()["doubling"]


def test_sizes_that_only_the_data_tell_come_from_the_baseline(tmp_path: Path, doubling: Case) -> None:
    generate(doubling, WriteOptions(tmp_path, inline_limit=LIMIT))
    node = parsed(tmp_path / "doubling/demo/third.pb")
    assert (list(node.output[0].shape.dims), list(node.output[0].value_f)) == ([2], [2.0, 4.0])


def test_parameters_of_an_operator_that_the_interface_lacks_come_back(tmp_path: Path, doubling: Case) -> None:
    generate(doubling, WriteOptions(tmp_path, inline_limit=LIMIT))
    with read_case(tmp_path / "doubling/demo/third.pb") as file:
        assert bind(file, operators()["doubling"]).params == {"factor": 2, "pads": (3, 4)}


def test_a_reference_kernel_with_other_outputs_is_our_failure(tmp_path: Path, doubling: Case) -> None:
    wrong = replace(doubling, params={**doubling.params, "output": "z"})
    with pytest.raises(MluopsError, match=r"returns \['z'\], its contract says \['y'\]") as caught:
        generate(wrong, WriteOptions(tmp_path, inline_limit=LIMIT))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("drawn", "found"),
    [
        (np.zeros(4), "float64 of shape [4]"),
        (np.zeros((2, 2), np.float32), "float32 of shape [2, 2]"),
        (np.zeros(3, np.float32), "float32 of shape [3]"),
    ],
)
def test_b4_what_a_recipe_gives_is_checked(
    tmp_path: Path, doubling: Case, monkeypatch: pytest.MonkeyPatch, drawn: Any, found: str
) -> None:
    monkeypatch.setattr(Doubling, "draw", lambda *arguments: drawn)
    plan = replace(doubling.inputs[0], values=Values("recipe", ("sites",)))
    text = f"recipe 'sites' of doubling gives {found} for x, expected float32 of shape [4]"
    with pytest.raises(MluopsError, match=re.escape(text)) as caught:
        generate(replace(doubling, inputs=(plan,)), WriteOptions(tmp_path))
    assert caught.value.exit_code == 3
    assert list(tmp_path.iterdir()) == []


def test_write_options_are_a_value_that_workers_can_be_sent(tmp_path: Path) -> None:
    options = WriteOptions(tmp_path, "both", seed=3)
    assert pickle.loads(pickle.dumps(options)) == options
    assert hash(options) == hash(WriteOptions(tmp_path, "both", seed=3))
    assert options.suffixes == (".pb", ".prototxt")
    with pytest.raises(FrozenInstanceError):
        options.seed = 4  # type: ignore[misc]


# ---- existing files ----

FOREIGN = """# a comment
op_name: "psamask_forward"
input { id: "input" shape { dims: [1, 1, 2, 3] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT value_f: [1, 2, 3, 4, 5, 6] }
output { id: "output" shape { dims: [1, 1, 2, 2] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT }
psamask_forward_param { h_mask: 1 w_mask: 3 psa_type: 1 }
"""
CRITERIA = "test_param { error_func: DIFF1 error_threshold: 0.5 baseline_device: CPU }"


def completed(folder: Path, text: str, meta: Mapping[str, Any] | None = None) -> Any:
    source = folder / "file.prototxt"
    source.write_text(text)
    entry = complete(source, "below/file", meta, WriteOptions(folder / "out", inline_limit=LIMIT))
    return parsed(folder / "out" / entry["files"][0])


def test_an_existing_file_keeps_ids_and_inputs_and_gets_a_baseline(tmp_path: Path) -> None:
    node = completed(tmp_path, FOREIGN + CRITERIA)
    assert (node.input[0].id, node.output[0].id) == ("input", "output")
    assert (list(node.input[0].value_f), list(node.output[0].value_f)) == ([1, 2, 3, 4, 5, 6], [2, 4, 3, 5])
    assert (node.device, node.test_param.baseline_device) == (2, 2)
    assert (list(node.test_param.error_func), list(node.test_param.error_threshold)) == ([6], [0.5])
    meta = proto.get_meta(node)
    assert meta is not None
    assert (meta.suite, meta.name) == ("external", "below/file")
    assert (tmp_path / "out/psamask_forward/external/below/file.pb").is_file()


def test_criteria_are_the_contracts_where_the_file_has_none(tmp_path: Path) -> None:
    node = completed(tmp_path, FOREIGN)
    assert (list(node.test_param.error_func), list(node.test_param.error_threshold)) == ([8], [0.0])


def test_a_baseline_that_the_file_carries_is_kept_and_one_to_be_computed_is_not(tmp_path: Path) -> None:
    stored = FOREIGN.replace("[1, 1, 2, 2] }", "[1, 1, 2, 2] } value_f: [9, 9, 9, 9]")
    assert list(completed(tmp_path, stored + "device: GPU").output[0].value_f) == [9, 9, 9, 9]
    assert list(completed(tmp_path, stored + "device: CPU").output[0].value_f) == [2, 4, 3, 5]


def test_random_data_becomes_values(tmp_path: Path) -> None:
    random = "random_data { seed: 1 lower_bound: 5 upper_bound: 6 distribution: UNIFORM }"
    node = completed(tmp_path, FOREIGN.replace("value_f: [1, 2, 3, 4, 5, 6]", random))
    assert not node.input[0].HasField("random_data")
    assert len(node.input[0].value_f) == 6
    assert all(5 <= value < 6 for value in node.input[0].value_f)
    assert list(node.output[0].value_f) == [node.input[0].value_f[index] for index in (1, 3, 2, 4)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("psamask_forward\"\n", "psamask_forwrad\"\n", "file.prototxt: no baseline can be made: unknown operator"),
        ("value_f: [1, 2, 3, 4, 5, 6]", "value_f: [1, 2, 3]", r'file.prototxt.*input\[0\].*3 values, expected 6'),
        ("psa_type: 1", "psa_type: 7", "file.prototxt: no legal case of psamask_forward: psa_type is 7"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_case_of_ours_is_refused_and_nothing_written(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in FOREIGN
    with pytest.raises(InputError, match=message):
        completed(tmp_path, FOREIGN.replace(old, new))
    assert not (tmp_path / "out").exists()


def test_a_text_file_keeps_what_its_manifest_says_of_it(tmp_path: Path) -> None:
    manifest_meta = {"suite": "invalid", "name": "odd", "expect": ["BAD_PARAM"], "faults": [], "omitted": []}
    node = completed(tmp_path, FOREIGN.replace("psa_type: 1", "psa_type: 7"), manifest_meta)
    meta = proto.get_meta(node)
    assert meta is not None
    assert (meta.suite, meta.name, list(meta.expect)) == ("invalid", "odd", ["BAD_PARAM"])
    assert len(node.output[0].value_f) == 0


def test_g12_an_invalid_case_whose_sizes_disagree_gets_plain_values() -> None:
    """FOUND G12: the recipe `points` made 7 points for a tensor of 6."""
    (case,) = (case for case in expand_operator("voxel_pooling_forward") if case.name == "points_6_scalar_7")
    inputs = draw_inputs(case, operator_named(case.op))
    geom = inputs["geom_xyz"]
    assert geom is not None
    assert (geom.shape, geom.dtype) == ((2, 6, 3), np.int32)
