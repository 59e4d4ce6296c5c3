"""Dims in symbols: shapes of cases written by hand, and the words that a reader would give them."""

from __future__ import annotations

from generators.importing.size_names import Observed, name_sizes


def observed(*shapes: tuple[int, ...], layout: str = "ARRAY", is_input: bool = True) -> Observed:
    return Observed(shapes, layout, is_input)


def test_dims_that_vary_together_are_one_size_and_equal_ones_constants() -> None:
    found = name_sizes(
        {
            "centers": observed((16, 128, 3), (2, 16, 3)),
            "points": observed((16, 512, 3), (2, 32, 3)),
            "idx": observed((16, 128, 128), (2, 16, 8), is_input=False),
        },
        {"nsample": (128, 8)},
    )
    assert found.shapes == {"centers": "B N 3", "points": "B M 3", "idx": "B N nsample"}
    assert found.sizes == {"B": (16, 2), "N": (128, 16), "M": (512, 32)}
    assert (found.dims, found.guessed) == ({"nsample"}, False)


def test_a_dim_of_the_same_values_twice_in_a_tensor_is_two_sizes() -> None:
    image = observed((2, 8, 8, 4), (3, 9, 9, 4), layout="NHWC")
    weight = observed((8,), (9,))
    assert name_sizes({"image": image, "weight": weight}, {}).shapes == {"image": "N H W 4", "weight": "H"}


def test_with_one_set_of_shapes_the_last_small_dims_of_inputs_are_constants() -> None:
    found = name_sizes(
        {
            "points": observed((1, 100, 3)),
            "boxes": observed((1, 20, 7)),
            "index": observed((1, 100), is_input=False),
        },
        {},
    )
    assert found.shapes == {"points": "B N 3", "boxes": "B M 7", "index": "B N"}
    assert found.guessed


def test_with_one_set_of_shapes_dims_of_a_layout_and_of_outputs_are_sizes() -> None:
    image = observed((4, 10, 10, 5), layout="NHWC")
    assert name_sizes({"x": image, "y": observed((6, 3), is_input=False)}, {}).shapes == {"x": "N H W C", "y": "M K"}


def test_a_constant_dim_of_an_output_is_the_parameter_that_has_its_value() -> None:
    tensors = {"x": observed((5, 7), (6, 7)), "y": observed((5, 7, 1), (6, 7, 1), is_input=False)}
    assert name_sizes(tensors, {"bins": (7, 7), "mode": (1, 1)}).shapes == {"x": "B 7", "y": "B 7 1"}
    tensors["y"] = observed((5, 4, 4), (6, 4, 4), is_input=False)
    named = name_sizes(tensors, {"mode": (1, 1), "height": (4, 4), "width": (4, 4)})
    assert named.shapes == {"x": "B 7", "y": "B height width"}


def test_a_size_is_not_called_as_a_parameter_is() -> None:
    assert name_sizes({"x": observed((5,), (6,)), "y": observed((5,), (6,), is_input=False)}, {"N": (1, 2)}).shapes == {
        "x": "M",
        "y": "M",
    }


def test_scalars_and_dims_of_zero() -> None:
    found = name_sizes({"x": observed((4, 0), (4, 0)), "y": observed((), (), is_input=False)}, {})
    assert found.shapes == {"x": "N M", "y": ""}
