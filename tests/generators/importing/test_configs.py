"""JSON configs: every key, overriding, dtype lists, files, random shapes; what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.importing.configs import MARK_SHARE, read_config
from generators.importing.draft import CaseDraft
from schemas.errors import InputError

TENSOR = {"shape": [2, 3], "dtype": "float32", "layout": "ARRAY"}
ENTRY = {"inputs": [TENSOR], "outputs": [TENSOR]}


def config(folder: Path, **keys: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({"op_name": "div", "manual_data": [ENTRY]} | keys), encoding="utf-8")
    return path


def drafts(folder: Path, **keys: Any) -> list[CaseDraft]:
    return read_config(config(folder, **keys))[0]


def only(folder: Path, **keys: Any) -> CaseDraft:
    (draft,) = drafts(folder, **keys)
    return draft


def test_a_plain_entry(tmp_path: Path) -> None:
    draft = only(tmp_path, evaluation_criterion=["diff1", "DIFF3_2"], evaluation_threshold=[3e-3, 0])
    assert (draft.op, draft.place, draft.params, draft.tags) == ("div", "config.json: manual_data[0]", {}, ())
    (tensor,) = draft.inputs
    assert (tensor.shape, tensor.dtype, tensor.layout, tensor.dist) == ((2, 3), "float", "ARRAY", {})
    assert draft.criteria == [{"diff1": 0.003, "diff3_2": 0.0}]


@pytest.mark.parametrize(
    ("given", "dist"),
    [
        ({"uniform": [-1, 1]}, {"uniform": [-1, 1]}),
        ({"uniform": [0, 0]}, {"constant": 0}),
        ({"uniform": [5, -5.5]}, {"uniform": [-5.5, 5]}),
        ({"gaussian": [0.5, 2]}, {"normal": [0.5, 2]}),
        ({"gaussian": [3, 0]}, {"constant": 3}),
    ],
)
def test_distributions_of_the_config_the_entry_and_the_tensor(tmp_path: Path, given: Any, dist: Any) -> None:
    other = {"uniform": [7, 8]}
    assert only(tmp_path, random_distribution=given).inputs[0].dist == dist
    entry = ENTRY | {"random_distribution": given}
    assert only(tmp_path, random_distribution=other, manual_data=[entry]).inputs[0].dist == dist
    entry = {"inputs": [TENSOR | {"random_distribution": given}], "outputs": [], "random_distribution": other}
    assert only(tmp_path, manual_data=[entry]).inputs[0].dist == dist


def test_inverted_bounds_are_told(tmp_path: Path) -> None:
    _, notes = read_config(config(tmp_path, random_distribution={"uniform": [2, 1]}))
    assert dict(notes) == {"bounds [2, 1] are inverted, read as swapped": 1}


def test_nan_inf_large_and_strides(tmp_path: Path) -> None:
    tensor = TENSOR | {"contain_nan": True, "contain_inf": False, "strides": [6, 2], "large_tensor": True}
    draft = only(tmp_path, contain_inf=True, manual_data=[{"inputs": [tensor, TENSOR], "outputs": []}])
    assert draft.inputs[0].dist == {"nan": MARK_SHARE}
    assert draft.inputs[1].dist == {"inf": MARK_SHARE}
    assert draft.inputs[0].strides == (6, 2)
    assert draft.tags == ("large",)


def test_parameters_local_ones_win(tmp_path: Path) -> None:
    entry = ENTRY | {"op_params": {"num": 2}, "proto_params": {"write_data": True, "mode": 1, "num": 3}}
    draft = only(tmp_path, op_params={"num": 1, "other": 5}, manual_data=[entry])
    assert draft.params == {"mode": 1, "num": 2}


@pytest.mark.parametrize(
    ("data_type", "own", "expected"),
    [
        ({"input_dtype": ["float16"], "output_dtype": ["int32"]}, None, [("half", "int32")]),
        ({"input_dtype": ["float16"]}, "float64", [("double", "double")]),
        ({"input_dtype": [["float16"], ["float32"]], "output_dtype": [["int8"], ["int16"]]}, None,
         [("half", "int8"), ("float", "int16")]),
        ({}, ["float16", "bfloat16"], [("half", "half"), ("bfloat16", "bfloat16")]),
        ({}, "complex64", [("complex_float", "complex_float")]),
        ({}, None, [(None, None)]),
    ],
)  # fmt: skip
def test_dtypes_and_lists_of_them(tmp_path: Path, data_type: Any, own: Any, expected: Any) -> None:
    tensor = {key: value for key, value in TENSOR.items() if key != "dtype"} | ({} if own is None else {"dtype": own})
    found = drafts(tmp_path, data_type=data_type, manual_data=[{"inputs": [tensor], "outputs": [tensor]}])
    assert [(each.inputs[0].dtype, each.outputs[0].dtype) for each in found] == expected


def test_values_from_files_relative_to_the_config(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "sub" / "a.npy", values)
    values.tofile(tmp_path / "b.bin")
    (tmp_path / "c.txt").write_text("0 1 2\n3, 4 5\n")
    for name in ("sub/a.npy", "b.bin", "c.txt"):
        stored = (
            only(tmp_path, manual_data=[{"inputs": [TENSOR | {"file_name": name}], "outputs": []}]).inputs[0].stored
        )
        assert stored is not None
        assert np.array_equal(stored, values)
    (tmp_path / "c.txt").write_text("0 1 2\n")
    for name in ("none.bin", "c.txt"):
        with pytest.raises(InputError, match=f"file_name .*{name}"):
            drafts(tmp_path, manual_data=[{"inputs": [TENSOR | {"file_name": name}], "outputs": []}])


def test_unknown_keys_are_named_and_known_ones_without_effect_too(tmp_path: Path) -> None:
    tensor = TENSOR | {"shap": 1, "onchip_dtype": "float32"}
    entry = {"inputs": [tensor], "outputs": [tensor], "proto_params": {"write_data": True}, "what": 1}
    _, notes = read_config(config(tmp_path, manual_data=[entry], requre_value=True, device="gpu"))
    told = sorted(notes)
    assert [each for each in told if each.startswith("unknown")] == [
        "unknown key 'requre_value' of the config",
        "unknown key 'shap' of inputs: did you mean 'shape'?",
        "unknown key 'shap' of outputs: did you mean 'shape'?",
        "unknown key 'what' in manual_data",
    ]
    assert {each.split()[0] for each in told if "no effect" in each} == {"device", "onchip_dtype", "write_data"}


def test_dynamic_thresholds_are_told(tmp_path: Path) -> None:
    path = config(tmp_path, if_dynamic_threshold=True, evaluation_criterion=["diff1"], evaluation_threshold=[1])
    (draft,), notes = read_config(path)
    assert draft.criteria == []
    assert any("dynamic thresholds" in each for each in notes)


def test_random_entries_draw_their_open_sizes(tmp_path: Path) -> None:
    tensor = {"shape": [2, [3, 9], 4], "dtype": "float32"}
    entry = {"count": 20, "inputs": [tensor], "outputs": [{"shape": {"rank": [1, 3], "dims": [5, 6]}}]}
    found = drafts(tmp_path, manual_data=[], random_data=[entry])
    assert len(found) == 20
    assert {each.inputs[0].shape[0] for each in found} == {2}
    assert {each.inputs[0].shape[1] for each in found} <= set(range(3, 10))
    assert len({each.inputs[0].shape for each in found}) > 1
    assert {len(each.outputs[0].shape) for each in found} == {1, 2, 3}
    assert {size for each in found for size in each.outputs[0].shape} == {5, 6}
    again = drafts(tmp_path, manual_data=[], random_data=[entry])
    assert [each.key() for each in again] == [each.key() for each in found]


def test_random_shapes_of_a_known_operator_are_legal(tmp_path: Path) -> None:
    entry = {
        "count": 10,
        "inputs": [{"shape": [[1, 4], [2, 6], [2, 6], [1, 9]]}, {"shape": [[1, 12], [1, 3], [1, 3], 2]}],
        "outputs": [{"shape": [[1, 12], [1, 3], [1, 3], [1, 9]]}],
    }
    for draft in drafts(tmp_path, op_name="roi_crop_forward", manual_data=[], random_data=[entry]):
        (b, _, _, c), (n, h, w, two) = (tensor.shape for tensor in draft.inputs)
        assert (n % b, two) == (0, 2)
        assert draft.outputs[0].shape == (n, h, w, c)


def test_cartesian_products(tmp_path: Path) -> None:
    entry = {"cartesian": True, "inputs": [{"shape": [[1, 2], 7]}, {"shape": [[3, 4, 5]]}], "outputs": []}
    found = drafts(tmp_path, manual_data=[], random_data=entry)
    assert [(each.inputs[0].shape, each.inputs[1].shape) for each in found] == [
        ((first, 7), (second,)) for first in (1, 2) for second in (3, 4, 5)
    ]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"op_name": 3}, "no op_name"),
        ({"manual_data": [3]}, "manual_data[0] is 3, expected an object"),
        ({"manual_data": [{"inputs": 3}]}, "inputs is 3, expected a list"),
        ({"manual_data": [{"inputs": [{}]}]}, "a tensor has no shape"),
        ({"manual_data": [{"inputs": [{"shape": [-1]}]}]}, "sizes of 0 or more"),
        ({"manual_data": [{"inputs": [{"shape": [1.5]}]}]}, "sizes of 0 or more"),
        ({"manual_data": [{"inputs": [TENSOR | {"dtype": "float31"}]}]}, "unknown dtype 'float31'"),
        ({"manual_data": [{"inputs": [TENSOR | {"layout": "NHWX"}]}]}, "unknown layout 'NHWX': did you mean"),
        ({"random_distribution": {"sample": [1, 2]}}, "unknown random_distribution 'sample'"),
        ({"random_distribution": {"uniform": [1]}}, "expected two numbers"),
        ({"random_distribution": {"uniform": [1, 2], "gaussian": [0, 1]}}, "expected one distribution"),
        ({"evaluation_criterion": ["diff1"]}, "1 evaluation_criterion, but 0 evaluation_threshold"),
        ({"evaluation_criterion": ["dif1"], "evaluation_threshold": [0]}, "unknown criterion 'dif1': did you mean"),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, keys: Any, told: str) -> None:
    with pytest.raises(InputError) as caught:
        drafts(tmp_path, **keys)
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "config.json"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{\n 'a'", "config.json:2:2: "),
        ("[]", "the config is []"),
        ('{"op_name": "div", "op_name": "add"}', "the key 'op_name' stands twice"),
        ('{"op_name": "div"}', "no cases: expected manual_data"),
        ("[" * 100_000, "no JSON config"),
        ("\ufeff{}", "no op_name"),
    ],
)
def test_files_that_are_no_configs(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_config(tmp_path / "config.json")
    assert told in str(caught.value)
