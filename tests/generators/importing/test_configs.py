"""JSON configs: every key, overriding, dtype lists, files, random shapes; what is refused."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.importing.configs import MARKED_FRACTION, read_config
from generators.importing.draft import CaseDraft
from schemas.errors import InputError

TENSOR = {"shape": [2, 3], "dtype": "float32", "layout": "ARRAY"}
CARTESIAN = {"cartesian": True, "inputs": [{"shape": [list(range(100))] * 3}], "outputs": []}
ENTRY = {"inputs": [TENSOR], "outputs": [TENSOR]}


def config(folder: Path, **keys: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({"op_name": "div", "manual_data": [ENTRY]} | keys), encoding="utf-8")
    return path


def drafts(folder: Path, **keys: Any) -> list[CaseDraft]:
    """The cases of a config; its first error is raised."""
    imported = read_config(config(folder, **keys))
    if imported.errors:
        raise imported.errors[0]
    return imported.drafts


def notes_of(path: Path) -> Counter[str]:
    imported = read_config(path)
    assert imported.errors == []
    return imported.notes


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
    notes = notes_of(config(tmp_path, random_distribution={"uniform": [2, 1]}))
    assert dict(notes) == {"bounds [2, 1] are inverted, read as swapped": 1}


def test_nan_inf_large_and_strides(tmp_path: Path) -> None:
    tensor = TENSOR | {"contain_nan": True, "contain_inf": False, "strides": [6, 2], "large_tensor": True}
    draft = only(tmp_path, contain_inf=True, manual_data=[{"inputs": [tensor, TENSOR], "outputs": []}])
    assert draft.inputs[0].dist == {"nan": MARKED_FRACTION}
    assert draft.inputs[1].dist == {"inf": MARKED_FRACTION}
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
    notes = notes_of(config(tmp_path, manual_data=[entry], requre_value=True, device="gpu"))
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
    (draft,), notes = read_config(path).drafts, notes_of(path)
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
        ({"manual_data": [3]}, "manual_data[0]: found 3, expected an object"),
        ({"manual_data": [{"inputs": 3}]}, "manual_data[0].inputs: found 3, expected a list"),
        ({"manual_data": [{"inputs": [{}]}]}, "manual_data[0].inputs[0]: missing key 'shape'"),
        (
            {"manual_data": [{"inputs": [{"shape": [-1]}]}]},
            "inputs[0].shape[0]: found -1, expected an integer from 0 to",
        ),
        (
            {"manual_data": [{"inputs": [{"shape": [1.5]}]}]},
            "inputs[0].shape[0]: found 1.5, expected an integer from 0 to",
        ),
        ({"manual_data": [{"inputs": [TENSOR | {"dtype": "float31"}]}]}, "unknown dtype 'float31'"),
        ({"manual_data": [{"inputs": [TENSOR | {"layout": "NHWX"}]}]}, "unknown layout 'NHWX': did you mean"),
        (
            {"random_distribution": {"sample": [1, 2]}},
            "random_distribution.sample: unknown key 'sample': expected one of gaussian, normal, uniform",
        ),
        ({"random_distribution": {"uniform": [1]}}, "expected two numbers"),
        (
            {"random_distribution": {"uniform": [1, 2], "gaussian": [0, 1]}},
            "found gaussian and uniform, expected one of uniform, gaussian, normal",
        ),
        ({"evaluation_criterion": ["diff1"]}, "1 evaluation_criterion, but 0 evaluation_threshold"),
        ({"evaluation_criterion": ["dif1"], "evaluation_threshold": [0]}, "unknown criterion 'dif1': did you mean"),
        # B5
        ({"random_data": [ENTRY | {"seed": "abc"}]}, "random_data[0].seed: found 'abc', expected an integer from 0 to"),
        (
            {"random_data": [ENTRY | {"count": 10**9}]},
            "random_data[0].count: found 1000000000, expected an integer from",
        ),
        ({"random_data": [ENTRY | {"count": True}]}, "random_data[0].count: found true, expected an integer from"),
        ({"random_data": [CARTESIAN]}, "random_data[0]: the sizes make 1000000 cases, expected 200000 at most"),
        ({"random_data": [{"inputs": [{"shape": {"rank": [1, 10**9]}}]}]}, "shape.rank[1]: found 1000000000, expected"),
        ({"random_data": [{"inputs": [{"shape": [[9, 1]]}]}]}, "a size is [9, 1], expected one or [low, high]"),
        ({"manual_data": [{"inputs": [{"shape": [[1, 9]]}]}]}, "a shape leaves sizes open"),
        # D25
        *[
            ({"evaluation_criterion": ["diff1"], "evaluation_threshold": [threshold]}, f"evaluation_threshold{told}")
            for threshold, told in [
                (-1, "[0]: found -1, expected a number of 0 or more"),
                (math.nan, "[0]: found nan, expected a finite"),
                (math.inf, "[0]: found inf, expected a finite number"),
                ("0,003", "[0]: found '0,003', expected a num"),
                (None, "[0]: found nothing, expected a number"),
                ([0.003], "[0]: found [0.003], expected a number"),
                (True, "[0]: found true, expected a number"),
                (10**400, "[0]: found 1"),
            ]
        ],
        ({"evaluation_criterion": ["diff1"], "evaluation_threshold": 0.003}, "found 0.003, expected a list, each a"),
        (
            {"random_distribution": {"uniform": [math.nan, 1]}},
            "random_distribution.uniform[0]: found nan, expected a f",
        ),
        (
            {"random_distribution": {"uniform": ["0", 1]}},
            "random_distribution.uniform[0]: found '0', expected a number",
        ),
        ({"manual_data": [{"inputs": [TENSOR | {"strides": [1]}]}]}, "1 strides [1] for 2 dims [2, 3]"),
        ({"manual_data": [{"inputs": [TENSOR | {"strides": [-1, 1]}]}]}, "inputs[0].strides[0]: found -1, expected"),
        ({"manual_data": [{"inputs": [{"shape": [2**63]}]}]}, "expected an integer from 0 to 2^63 - 1"),
        # E7
        *[
            ({"manual_data": [ENTRY | {key: "False"}]}, f"manual_data[0].{key}: found 'False', expected true or false")
            for key in ("contain_nan", "contain_inf", "large_tensor", "if_dynamic_threshold", "cartesian")
        ],
        (
            {"manual_data": [ENTRY | {"proto_params": {"large_tensor": "no"}}]},
            "large_tensor is 'no', expected true or f",
        ),
        # A6
        (
            {"op_name": "../../escaped"},
            "op_name: operator '../../escaped' can't be part of a path: it holds a separator",
        ),
        ({"op_name": "x" * 300}, "it has 300 bytes, at most 200 are allowed"),
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
        ("[]", "found [], expected a config"),
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


def test_d25_a_wrong_entry_costs_no_other_and_a_wrong_global_key_is_one_error(tmp_path: Path) -> None:
    wrong = ENTRY | {"evaluation_threshold": [-1, None]}
    imported = read_config(config(tmp_path, manual_data=[ENTRY, wrong, ENTRY], contain_nan=1, random=[3]))
    assert [draft.place for draft in imported.drafts] == ["config.json: manual_data[0]", "config.json: manual_data[2]"]
    lines = "\n".join(map(str, imported.errors)).replace(f"{tmp_path}{os.sep}", "").splitlines()
    assert lines == [
        "config.json: manual_data[1].evaluation_threshold[0]: found -1, expected a number of 0 or more",
        "config.json: manual_data[1].evaluation_threshold[1]: found nothing, expected a number of 0 or more",
        "config.json: random[0]: found 3, expected an object",
    ]
    imported = read_config(config(tmp_path, manual_data=[ENTRY, ENTRY], seed=-1))
    assert imported.drafts == []
    assert [str(error).partition("config.json: ")[2].partition(":")[0] for error in imported.errors] == ["seed"]
    text = ENTRY | {"contain_nan": "False"}
    imported = read_config(config(tmp_path, manual_data=[ENTRY, text, ENTRY], seed=-1))  # beside a mistake of its own
    assert [str(error).partition("config.json: ")[2].partition(":")[0] for error in imported.errors] == [
        "seed", "manual_data[1].contain_nan",
    ]  # fmt: skip


def test_b5_random_shapes_follow_the_parameters(tmp_path: Path) -> None:
    """The channels of psamask are h_mask*w_mask, those of the output H*W: with them left open, drawn or not."""
    entry = {
        "count": 5,
        "inputs": [{"shape": [[1, 3], [2, 9], [2, 9], [1, 99]]}],
        "outputs": [{"shape": [[1, 3], [2, 9], [2, 9], [1, 99]]}],
        "op_params": {"psa_type": 0, "h_mask": 3, "w_mask": 5},
    }
    for draft in drafts(tmp_path, op_name="psamask_forward", manual_data=[], random_data=[entry]):
        (n, h, w, c), out = draft.inputs[0].shape, draft.outputs[0].shape
        assert (c, out) == (15, (n, h, w, h * w))
    del entry["op_params"]
    with pytest.raises(InputError, match=r"random_data\[0\]: the shapes of psamask_forward can't be computed from its"):
        drafts(tmp_path, op_name="psamask_forward", manual_data=[], random_data=[entry])


def test_d24_a_criterion_given_twice_takes_the_stricter_threshold(tmp_path: Path) -> None:
    path = config(
        tmp_path, evaluation_criterion=["diff1", "DIFF2", "mape"], evaluation_threshold=[0.5, 0.25, 0.125]
    )  # mape is diff1 under its old name
    assert read_config(path).drafts[0].criteria == [{"diff1": 0.125, "diff2": 0.25}]
    assert dict(notes_of(path)) == {"criterion diff1 has several thresholds: the strictest, 0.125, is taken": 1}


def test_e7_what_is_not_converted_is_reported(tmp_path: Path) -> None:
    tensor = TENSOR | {"file_name": "baseline.npy"}
    entry = {"inputs": [TENSOR], "outputs": [tensor], "proto_params": {"large_tensor": True, "num": 2.0}}
    path = config(tmp_path, manual_data=[entry])
    (draft,) = read_config(path).drafts
    assert (draft.tags, draft.params) == (("large",), {"num": 2})
    assert dict(notes_of(path)) == {"file_name of an output is not read: baselines are computed": 1}


@pytest.mark.parametrize("value", [True, False, 1, 0])
def test_e7_numbers_are_flags_too(tmp_path: Path, value: Any) -> None:
    assert only(tmp_path, contain_nan=value).inputs[0].dist == ({"nan": MARKED_FRACTION} if value else {})


@pytest.mark.parametrize(
    ("dtype", "values", "told"),
    [
        ("float16", [1, 70000, 2, 3, 4, 5], "a value is beyond the largest of half"),
        ("int8", [1, 300, 2, 3, 4, 5], "a value doesn't fit int8"),
        ("complex32", [1, 2, 3, 4, 5, 6], "values of dtype complex_half can't be read"),
    ],
)
def test_e6_values_of_a_file_that_the_dtype_cannot_hold(
    tmp_path: Path, dtype: str, values: list[int], told: str
) -> None:
    (tmp_path / "a.txt").write_text(" ".join(map(str, values)))
    entry = {"inputs": [TENSOR | {"dtype": dtype, "file_name": "a.txt"}], "outputs": []}
    with pytest.raises(InputError, match=f"file_name .*a.txt: {told}"):
        drafts(tmp_path, manual_data=[entry])


def test_f12_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.bin")
    with pytest.raises(InputError, match=r"a.bin: it is no regular file"):
        drafts(tmp_path, manual_data=[{"inputs": [TENSOR | {"file_name": "a.bin"}], "outputs": []}])
