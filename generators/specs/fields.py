"""The types of the values in a spec file, as pydantic constraints: the check, the JSON Schema and the messages follow.

Two keywords of the JSON Schema are our own: `word` is what a message calls an expected value, `noun` what it calls one
of several known words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from generators.error_bounds.precision import PRECISIONS
from schemas.criteria import CRITERIA
from schemas.dtypes import DTYPE_NAMES, LAYOUTS
from schemas.path_names import LONGEST_NAME
from schemas.seeds import SEEDS
from schemas.status import PREFIX, STATUS_NUMBERS

NAME: Final = re.compile(rf"[a-z0-9][a-z0-9_.-]{{0,{LONGEST_NAME - 1}}}")
NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9_.-]+")
"""What a name can't hold, for names that are made of other texts."""
MOST_CASES: Final = 200_000
"""Cases that one command may select, and one sample may draw."""
_STATUSES: Final = (*STATUS_NUMBERS.values(), *(f"{PREFIX}{name}" for name in STATUS_NUMBERS))


class Model(BaseModel):
    """A mapping of the spec: unknown keys are errors, and no value is converted to another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


def word(text: str, **constraints: Any) -> Any:
    """Constraints, and what a message calls a value that satisfies them."""
    return Field(json_schema_extra={"word": text}, **constraints)


if TYPE_CHECKING:
    DTypeName: TypeAlias = str
    Layout: TypeAlias = str
    CriterionName: TypeAlias = str
    Accumulate: TypeAlias = str
    Status: TypeAlias = str | int
else:  # Literals of the tables that state these words
    DTypeName = Annotated[Literal[DTYPE_NAMES], Field(json_schema_extra={"noun": "dtype"})]
    Layout = Annotated[Literal[LAYOUTS], Field(json_schema_extra={"noun": "layout"})]
    CriterionName = Annotated[Literal[CRITERIA], Field(json_schema_extra={"noun": "criterion"})]
    Accumulate = Annotated[Literal[tuple(PRECISIONS)], Field(json_schema_extra={"noun": "accumulation dtype"})]
    _StatusName = Annotated[Literal[tuple(STATUS_NUMBERS)], Field(json_schema_extra={"noun": "status"})]
    Status = _StatusName | Annotated[Literal[_STATUSES], word("its number")]

Name = Annotated[
    str,
    word(
        f"a name of a-z 0-9 _ . -, starting with a letter or digit, {LONGEST_NAME} at most", pattern=f"^{NAME.pattern}$"
    ),
]
Text = Annotated[str, word("text")]
# A number in quotes is no expression and no word: it is written without quotes.
Expression = Annotated[str, word("an expression", pattern=r"[A-Za-z_(]|[0-9]\s*[-+*/%<>=!]")]
WORD: Final = re.compile("[A-Za-z_]")
Choice = Annotated[str, word("a word of the parameter's choices", pattern=WORD.pattern)]

Number = Annotated[float, word("a number")]
Parameter = int | Number | bool | Choice | list[int | Number | bool | Choice]
Size = Annotated[int, Field(ge=0)] | Expression
Shape = list[Size]
Strides = list[Annotated[int, Field(ge=0)]]
Threshold = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Bound = float | Expression
Pair = Annotated[list[Bound], word("[number, number]", min_length=2, max_length=2)]
Bounds = list[Bound]
Special = list[float | Annotated[str, word("a word such as -subnormal, or a bit pattern 0x...")]]
Rows = Annotated[list[Pair], word("a list of two to four pairs [low, high]", min_length=2, max_length=4)]
Expect = Status | Annotated[list[Status], Field(min_length=1)]
Workspace = Annotated[Literal["null", "short"] | None, word("null or short")]
Count = Annotated[int, Field(ge=1, le=MOST_CASES)]
Seed = Annotated[int, Field(ge=0, lt=SEEDS)]

_ListedAxis = Annotated[list[Any], Field(min_length=1)]
_NamedAxis = Annotated[str, word("a range such as 1..64..8, or the name of a list")]
Axis = _ListedAxis | _NamedAxis
Cover = Annotated[int, Field(ge=2, le=3)]


def _shape_of_unique(value: Any) -> str:
    """Whether `unique` holds one pair or a list of pairs."""
    return "pairs" if isinstance(value, list) and value and isinstance(value[0], list) else "one pair"


Unique = Annotated[
    Annotated[Pair, Tag("one pair")] | Annotated[list[Pair], Field(min_length=1), Tag("pairs")],
    Discriminator(_shape_of_unique),
]


class _Multiples(Model):
    align: int = Field(default=1, ge=1, description="only multiples of this are sampled")


_Integers = Annotated[list[int], word("[low, high] of integers", min_length=2, max_length=2)]


class EvenlyDrawn(_Multiples):
    """Multiples of align in [low, high], each equally likely."""

    range: _Integers


class LogarithmicallyDrawn(_Multiples):
    """Multiples of align in [low, high], every doubling equally likely."""

    log: _Integers


def _kind_of_draw(value: Any) -> str:
    """Which way of drawing values a key of `over` holds."""
    if isinstance(value, Mapping):
        return "a logarithmic draw" if "log" in value else "an even draw"
    return "a list" if isinstance(value, list) else "a name"


Drawn = Annotated[
    Annotated[EvenlyDrawn, Tag("an even draw"), word("{range: [low, high], align: n}")]
    | Annotated[LogarithmicallyDrawn, Tag("a logarithmic draw"), word("{log: [low, high], align: n}")]
    | Annotated[_ListedAxis, Tag("a list")]
    | Annotated[_NamedAxis, Tag("a name")],
    Discriminator(_kind_of_draw),
]
