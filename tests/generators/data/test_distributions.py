"""The `dist` of a spec: what makes no sense or doesn't fit the dtype is refused, and expressions are computed."""

from __future__ import annotations

from typing import Any

import pytest

from generators.data.distributions import parse_values
from generators.data.draw import draw
from schemas.errors import InputError


def drawn(dist: dict[str, Any], dims: tuple[int, ...], dtype: str = "float") -> Any:
    return draw(parse_values(dist, {}, dtype), dims, dtype, (1, "op/suite/case", "x"))


@pytest.mark.parametrize(
    ("dist", "dtype", "dims", "message"),
    [
        ({"uniform": [0, 1e6]}, "half", (1,), "uniform: 1000000.0 is outside half's range"),
        ({"uniform": [-1, 1]}, "uint8", (1,), "uniform: -1 is outside uint8's range"),
        ({"uniform": [1, 1]}, "float", (1,), "needs low < high"),
        ({"uniform": ["H", 1]}, "float", (1,), "'H' reads H"),
        ({"uniform": ["1/2", 1]}, "float", (1,), "Div is not allowed"),
        ({"integers": [0, 300]}, "uint8", (1,), "integers: 300 is outside uint8's range"),
        ({"integers": [0, 5000]}, "half", (1,), "half holds whole numbers only up to 2048"),
        ({"integers": [0, 1.5]}, "int32", (1,), "integers needs whole numbers, found 1.5"),
        ({"integers": [2, 1]}, "int32", (1,), "needs low <= high"),
        ({"normal": [0, -1]}, "float", (1,), "standard deviation of 0 or more"),
        ({"choice": []}, "float", (1,), "at least one"),
        ({"constant": "9**1000"}, "float", (1,), "constant: '9**1000' is beyond 128 bits"),
        ({"sequence": [0.5, "9**1000"]}, "float", (2,), "is beyond 128 bits"),
        ({"sequence": [float("inf"), 1]}, "int32", (2,), "sequence needs finite numbers"),
        ({"constant": 0.5}, "int8", (1,), "needs whole numbers"),
        ({"sequence": [0, 1]}, "int8", (129,), "sequence: 128 is outside int8's range"),
        ({"sequence": [0, 1]}, "uint8", (257,), "outside uint8's range"),
        ({"unique": [0, 9]}, "int32", (11,), "11 unique values are wanted, the range holds 10"),
        ({"unique": [[0, 1], [0, 1]]}, "int32", (5, 2), "5 unique rows are wanted, the range holds 4"),
        ({"unique": [[0, 1], [0, 1]]}, "int32", (3, 3), "rows of 2"),
        ({"uniform": [0, 1], "nan": 0.6, "inf": 0.6}, "float", (9,), "more than all elements"),
        ({"integers": [0, 1], "nan": 0.5}, "int32", (9,), "int32 has no nan"),
        ({"uniform": [0, 1], "special": ["largest"] * 4}, "float", (3,), "3 elements don't hold"),
        ({"uniform": [0, 1], "special": ["bigest"]}, "float", (3,), "unknown special value 'bigest': did you mean"),
        ({"uniform": [0, 1], "special": ["0x1ffff"]}, "half", (3,), "more bits than half"),
        ({"integers": [0, 1], "special": ["subnormal"]}, "int8", (3,), "int8 has no subnormal"),
        ({"unifrom": [0, 1]}, "float", (3,), "unknown key 'unifrom' in dist: did you mean 'uniform'?"),
        ({"uniform": [0, 1], "normal": [0, 1]}, "float", (3,), "found uniform and normal in one dist"),
        ({"nan": 0.5}, "float", (3,), "no kind of values"),
        ({"uniform": [0, 1]}, "int31", (3,), "no values can be drawn for dtype int31"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(dist: dict[str, Any], dtype: str, dims: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError) as caught:
        drawn(dist, dims, dtype)
    assert message in caught.value.message


def test_a_dist_of_a_dtype_that_none_can_be_drawn_for_is_refused_when_it_is_read() -> None:
    """A spec with such an input expanded, and gen failed."""
    with pytest.raises(InputError, match="no values can be drawn for dtype complex_float"):
        parse_values({"uniform": [0, 1]}, {}, "complex_float")


def test_bounds_may_be_expressions_over_sizes_and_params() -> None:
    values = parse_values({"integers": ["-kernel_h", "H + kernel_h"]}, {"kernel_h": 3, "H": 10}, "int32")
    assert values.args == (-3, 13)
    assert parse_values({"nan": 0.5}, {"H": 4}, "float", {"uniform": [0, "2*H"]}).args == (0, 8)


@pytest.mark.parametrize(
    ("dist", "dtype", "message"),
    [
        ({"sequence": [70000, -1]}, "half", "sequence: 70000 is outside half's range [-65504.0, 65504.0]"),
        ({"sequence": [65000, 100]}, "half", "sequence: 65900 is outside half's range"),
        ({"uniform": [0, 70000]}, "half", "uniform: 70000 is outside half's range"),
        ({"constant": 70000}, "half", "constant: 70000 is outside half's range"),
        ({"choice": [1, 70000]}, "half", "choice: 70000 is outside half's range"),
        ({"normal": [0, 70000]}, "half", "normal: 70000 is outside half's range"),
        (
            {"normal": [0, 30000]},
            "half",
            "normal: 6 standard deviations around the mean, [-180000, 180000], leave half's",
        ),
        ({"normal": [100, 10]}, "int8", "normal: 6 standard deviations around the mean, [40, 160], leave int8's range"),
        ({"special": [70000], "constant": 0}, "half", "special value 70000 is outside half's range"),
    ],
)
def test_a7_e6_numbers_beyond_the_dtypes_range_are_refused(dist: dict[str, Any], dtype: str, message: str) -> None:
    """FOUND A7, E6: a sequence gave Inf, a normal distribution was cut off at the limits."""
    with pytest.raises(InputError) as caught:
        drawn(dist, (10,), dtype)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("text", ["min([])", "max([])", "prod([10**1200, 10**1200])", "prod(3)", "(-1)**0.5"])
def test_b6_an_expression_without_a_value_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^constant"):
        parse_values({"constant": text}, {}, "float")
