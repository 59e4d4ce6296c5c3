"""The leaves of a spec file: names, numbers and lists, each with its test, its words and its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic_core import PydanticCustomError, core_schema

from schemas.criteria import NAMES
from schemas.dtypes import DTYPES, LAYOUTS, dtype_named
from schemas.errors import InputError
from schemas.status import STATUS_NUMBERS, status_name
from schemas.suggest import did_you_mean

NAME_LENGTH: Final = 200  # so that the names of a case's files, the temporary ones too, stay below the usual 255
NAME: Final = re.compile(rf"[a-z0-9][a-z0-9_.-]{{0,{NAME_LENGTH - 1}}}")
SEED_LIMIT: Final = 2**64  # seeds are smaller: a case file holds them as uint64
CRITERIA: Final = tuple(dict.fromkeys((*NAMES.values(), "diff3_1")))
Schema = dict[str, Any]
Test = Callable[[Any], bool]


def shown(value: Any) -> str:
    """A value as it stands in a YAML file, shortened, for "found ..."."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True)
class _Leaf:
    """A value that is no mapping: what it must be, in words, as a test and as JSON Schema."""

    expected: str
    test: Test
    schema: Schema

    def message(self, value: Any) -> str:
        return f"found {shown(value)}, expected {self.expected}"

    def check(self, value: Any) -> Any:
        if not self.test(value):
            raise PydanticCustomError("leaf", "{text}", {"text": self.message(value)})
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Schema:
        return dict(self.schema)


class _Word(_Leaf):
    """One of the known words."""

    def __init__(self, what: str, known: Sequence[str], test: Test | None = None) -> None:
        super().__init__(what, test or known.__contains__, {"enum": list(known)})

    def message(self, value: Any) -> str:
        known = self.schema["enum"]
        hint = did_you_mean(value, known) if isinstance(value, str) else f": expected one of {', '.join(known)}"
        return f"unknown {self.expected} {shown(value)}{hint}"


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def _list_of(test: Test, value: Any, length: int | None = None) -> bool:
    return isinstance(value, list) and (length is None or len(value) == length) and all(map(test, value))


def _is_size(value: Any) -> bool:
    return (_is_integer(value) and value >= 0) or isinstance(value, str)


def _is_bound(value: Any) -> bool:
    return _is_number(value) or isinstance(value, str)


def _is_parameter(value: Any) -> bool:
    return _is_integer(value) or isinstance(value, str) or _list_of(_is_integer, value)


def _is_status(value: Any) -> bool:
    try:
        return _is_integer(value) or (isinstance(value, str) and bool(status_name(value)))
    except InputError:
        return False


def _is_unique(value: Any) -> bool:
    return _list_of(_is_bound, value, 2) or (bool(value) and _list_of(lambda pair: _list_of(_is_bound, pair, 2), value))


def _is_count(value: Any) -> bool:
    return _is_integer(value) and value >= 1


def _is_seed(value: Any) -> bool:
    return _is_integer(value) and 0 <= value < SEED_LIMIT


def _is_axis(value: Any) -> bool:
    return (isinstance(value, list) and bool(value)) or isinstance(value, str)


def _is_bounds(value: Any) -> bool:
    """{range: [low, high]} or {log: ...}, each with or without align."""
    if not isinstance(value, dict) or (value.keys() - {"align"}) not in ({"range"}, {"log"}):
        return False
    pair = value["range" if "range" in value else "log"]
    return _list_of(_is_integer, pair, 2) and _is_count(value.get("align", 1))


_NUMBER: Final[Schema] = {"type": "number"}
_BOUND: Final[Schema] = {"type": ["number", "string"]}
_PAIR: Final[Schema] = {"type": "array", "items": _BOUND, "minItems": 2, "maxItems": 2}
_SIZE: Final[Schema] = {"type": ["integer", "string"], "minimum": 0}
_STATUS: Final[Schema] = {"enum": list(STATUS_NUMBERS)}
_AXIS: Final[Schema] = {"anyOf": [{"type": "array", "minItems": 1}, {"type": "string"}]}
_INTEGERS: Final[Schema] = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_DRAWN: Final[Schema] = {
    "type": "object",
    "properties": {"range": _INTEGERS, "log": _INTEGERS, "align": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
    "maxProperties": 2,
}

Name = Annotated[
    Any,
    _Leaf(
        f"a name of a-z 0-9 _ . -, starting with a letter or digit, {NAME_LENGTH} at most",
        _is_name,
        {"type": "string", "pattern": f"^{NAME.pattern}$"},
    ),
]
Tag = Annotated[Any, _Leaf("a word", lambda value: isinstance(value, str), {"type": "string"})]
Parameter = Annotated[
    Any,
    _Leaf(
        "an integer, a word of the parameter's choices, or a list of integers",
        _is_parameter,
        {"anyOf": [{"type": ["integer", "string"]}, {"type": "array", "items": {"type": "integer"}}]},
    ),
]
Size = Annotated[Any, _Leaf("an integer of 0 or more, or an expression", _is_size, _SIZE)]
Shape = Annotated[
    Any,
    _Leaf(
        "a list of dims: integers of 0 or more, or expressions",
        lambda value: _list_of(_is_size, value),
        {"type": "array", "items": _SIZE},
    ),
]
Strides = Annotated[
    Any,
    _Leaf(
        "a list of integers of 0 or more",
        lambda value: _list_of(lambda each: _is_integer(each) and each >= 0, value),
        {"type": "array", "items": {"type": "integer", "minimum": 0}},
    ),
]
Threshold = Annotated[
    Any,
    _Leaf(
        "a finite number of 0 or more",
        lambda value: _is_number(value) and 0 <= value < float("inf"),
        {**_NUMBER, "minimum": 0},
    ),
]
Share = Annotated[
    Any,
    _Leaf(
        "a share from 0 to 1",
        lambda value: _is_number(value) and 0 <= value <= 1,
        {**_NUMBER, "minimum": 0, "maximum": 1},
    ),
]
Pair = Annotated[Any, _Leaf("[number, number]", lambda value: _list_of(_is_bound, value, 2), _PAIR)]
Bound = Annotated[Any, _Leaf("a number or an expression", _is_bound, _BOUND)]
Bounds = Annotated[
    Any, _Leaf("a list of numbers", lambda value: _list_of(_is_bound, value), {"type": "array", "items": _BOUND})
]
Unique = Annotated[
    Any,
    _Leaf("[low, high], or a list of such pairs", _is_unique, {"anyOf": [_PAIR, {"type": "array", "items": _PAIR}]}),
]
Expect = Annotated[
    Any,
    _Leaf(
        f"a status or a list of them ({', '.join(STATUS_NUMBERS)})",
        lambda value: _is_status(value) or (bool(value) and _list_of(_is_status, value)),
        {"anyOf": [_STATUS, {"type": "array", "items": _STATUS, "minItems": 1}]},
    ),
]
DTypeName = Annotated[Any, _Word("dtype", tuple(DTYPES), lambda name: dtype_named(name) is not None)]
Layout = Annotated[Any, _Word("layout", LAYOUTS)]
Workspace = Annotated[
    Any, _Leaf("null or short", lambda value: value in (None, "null", "short"), {"enum": ["null", "short", None]})
]
CriterionName = Annotated[Any, _Word("criterion", CRITERIA)]
Count = Annotated[Any, _Leaf("an integer of 1 or more", _is_count, {"type": "integer", "minimum": 1})]
Seed = Annotated[
    Any,
    _Leaf("an integer from 0 to 2^64 - 1", _is_seed, {"type": "integer", "minimum": 0, "maximum": SEED_LIMIT - 1}),
]
Rows = Annotated[
    Any,
    _Leaf(
        "a list of two to four pairs [low, high]",
        lambda value: _list_of(lambda pair: _list_of(_is_bound, pair, 2), value) and 2 <= len(value) <= 4,
        {"type": "array", "items": _PAIR, "minItems": 2, "maxItems": 4},
    ),
]
Axis = Annotated[
    Any, _Leaf("a list of at least one value, a range such as 1..64..8, or the name of a list", _is_axis, _AXIS)
]
Drawn = Annotated[
    Any,
    _Leaf(
        "{range: [low, high], align: n}, {log: [low, high], align: n}, a list, a range such as 1..64..8, or the name "
        "of a list",
        lambda value: _is_axis(value) or _is_bounds(value),
        {"anyOf": [_AXIS, *({**_DRAWN, "required": [kind]} for kind in ("range", "log"))]},
    ),
]
