"""The changed calls by which a diagnosis recognises a wrong kernel: values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from generators.contracts.hypotheses import Hypothesis, hypotheses
from generators.contracts.model import Contract, Coordinate, TensorSpec
from generators.contracts.relations import Relation
from generators.operator_registry import operators

F = np.float32
GRID = np.array([[[-1, 0.5], [0.25, 1]], [[0, -0.5], [1, -1]]], F)  # N=2, 2 points, (y, x)
IMAGE = np.array([1 + 2.0**-12, 2.0, -3.0, 1e-30], F).reshape(2, 2)


def contract(**more: Any) -> Contract:
    inputs = (TensorSpec("image", ("float",), "ARRAY", "N S"), TensorSpec("grid", ("float",), "ARRAY", "N P 2"))
    return Contract("op", "composite", inputs, (TensorSpec("out", ("float",), "ARRAY", "N P"),), **more)


def of(word: str, declared: Contract, **env: int) -> list[Hypothesis]:
    inputs = {"image": IMAGE, "grid": GRID}
    before = {name: array.copy() for name, array in inputs.items()}
    found = list(hypotheses(declared, inputs, {"kernel_h": 2, "kernel_w": 5, "pad_h": 0, "pad_w": 1}, dict(env)))
    assert all(np.array_equal(inputs[name], array) for name, array in before.items())
    return [each for each in found if each.word == word]


def test_what_is_not_declared_is_not_tried() -> None:
    found = {each.word for each in hypotheses(contract(), {"image": IMAGE, "grid": GRID}, {}, {})}
    assert found == {"rounded inputs"}  # dtypes are known of every operator
    assert list(hypotheses(contract(), {"image": IMAGE.astype(np.int32)}, {}, {})) == []


def test_columns_are_swapped() -> None:
    pair = (Coordinate("y", "grid", 0), Coordinate("x", "grid", 1))
    (one,) = of("swapped coordinates", contract(coordinates=pair))
    assert one.text == "coordinates y and x swapped"
    assert one.inputs["grid"].tolist() == [[[0.5, -1], [1, 0.25]], [[-0.5, 0], [-1, 1]]]
    assert one.inputs["image"] is IMAGE


def test_whole_inputs_and_parameters_are_swapped() -> None:
    pair = (
        Coordinate("h", "image", parameters=("kernel_h", "pad_h")),
        Coordinate("w", "other", parameters=("kernel_w", "pad_w")),
    )
    inputs = {"image": IMAGE, "other": -IMAGE}
    params = {"kernel_h": 2, "kernel_w": 5, "pad_h": 0, "pad_w": 1}
    found = list(hypotheses(contract(coordinates=pair), inputs, params, {}))
    swapped = [each for each in found if each.word.startswith("swapped")]
    assert np.array_equal(swapped[0].inputs["other"], IMAGE)
    assert [(each.text, each.params) for each in swapped[1:]] == [
        ("kernel_h and kernel_w swapped", {**params, "kernel_h": 5, "kernel_w": 2}),
        ("pad_h and pad_w swapped", {**params, "pad_h": 1, "pad_w": 0}),
        (
            "kernel_h and kernel_w, pad_h and pad_w swapped",
            {"kernel_h": 5, "kernel_w": 2, "pad_h": 1, "pad_w": 0},
        ),
    ]


@pytest.mark.parametrize("ends", ["centres", "edges"])
def test_the_other_ends(ends: Any) -> None:
    """With centres pixel (g + 1)(S - 1)/2, with edges ((g + 1) S - 1)/2."""
    pair = (Coordinate("y", "grid", 0, ends=ends, size="H"), Coordinate("x", "grid", 1, ends=ends, size="W"))
    (one,) = of("other corners", contract(coordinates=pair), H=5, W=3)
    g, moved = GRID.astype(np.float64), one.inputs["grid"]
    for axis, size in ((0, 5), (1, 3)):
        pixels = []
        for values, kind in ((moved[..., axis], ends), (g[..., axis], {"centres": "edges", "edges": "centres"}[ends])):
            pixels.append((values + 1) * (size - 1) / 2 if kind == "centres" else ((values + 1) * size - 1) / 2)
        assert np.allclose(pixels[0], pixels[1], rtol=0, atol=1e-12)
    assert one.text.endswith(f"(align_corners = {ends == 'edges'})")
    assert of("other corners", contract(coordinates=pair), H=1, W=3) == []


def test_roundings_are_those_of_the_dtypes() -> None:
    """1 + 2^-12 lies between 1 and the next tf32 number; 1e-30 is in the range of tf32, not in that of half."""
    found = {(each.text, each.variant): each.inputs["image"] for each in of("rounded inputs", contract())}
    assert [text for text, variant in found if variant == "half"] == [
        "image rounded to ",
        "grid rounded to ",
        "image and grid rounded to ",
    ]
    image = {
        variant: values.reshape(-1).tolist() for (text, variant), values in found.items() if text[:9] == "image rou"
    }
    assert image["half"] == [1, 2, -3, 0]
    assert image["tf32"][:3] == [1, 2, -3]
    assert abs(image["tf32"][3] / 1e-30 - 1) < 2.0**-11
    assert image["bfloat16"][:3] == [1, 2, -3]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1 + 2.0**-11, 1.0),  # ties to even
        (1 + 3 * 2.0**-11, 1 + 2.0**-9),
        (1 + 2.0**-11 + 2.0**-20, 1 + 2.0**-10),
        (2 - 2.0**-20, 2.0),
        (-(1 + 2.0**-10), -(1 + 2.0**-10)),
        (2.0**-149, 0.0),
    ],
)
def test_tf32(value: float, expected: float) -> None:
    values = {"image": np.array([value, np.inf, np.nan], F)}
    (found,) = [each for each in hypotheses(contract(), values, {}, {}) if each.variant == "tf32"]
    assert found.inputs["image"][0] == expected
    assert np.isinf(found.inputs["image"][1])
    assert np.isnan(found.inputs["image"][2])


def test_one_input_is_read_at_other_items() -> None:
    declared = contract(relations=(Relation("batch", "batch", size="N", axes={"image": 0, "out": 0}),))
    found = of("mixed batch", declared, N=2)
    assert [each.text for each in found] == [
        "item 0 of image in place of every item's own",
        "the item before of image in place of every item's own",
    ]
    assert np.array_equal(found[0].inputs["image"], IMAGE[[0, 0]])
    assert np.array_equal(found[1].inputs["image"], IMAGE[[1, 0]])
    assert of("mixed batch", declared, N=1) == []


def test_what_bundled_contracts_declare_exists() -> None:
    for op, operator in operators().items():
        declared = operator.contract
        names = {*declared.sizes, *(parameter.name for parameter in declared.parameters)}
        tensors = {tensor.name for tensor in declared.inputs}
        for each in declared.coordinates:
            assert {each.tensor} <= {"", *tensors}, op
            assert {*each.parameters, each.size} <= {"", *names}, op
        for total in declared.sums:
            assert total.terms in tensors
            assert total.output in {tensor.name for tensor in declared.outputs}
