"""What pydantic finds wrong with data, as messages for people: found this, expected that.

What is expected is read from the model's JSON Schema, which states the same constraints that the check has.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from generators.specs.yaml_loader import KeyPath, plain_scalar
from schemas.suggest import did_you_mean

Node = Mapping[str, Any]  # of a JSON Schema

_KEY: Final = "[key]"  # pydantic's last step of a location where a key itself is wrong
_UNQUOTE: Final = ": write it without quotes"
_WIDTH: Final = 60
_TYPES: Final = {
    "integer": "an integer", "number": "a number", "string": "text", "boolean": "true or false", "null": "null",
    "object": "a mapping",
}  # fmt: skip

_PLURALS: Final = {"a value": "values", "an integer": "integers", "a mapping": "mappings", "text": "texts"}


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong with data: where, whether with the key rather than its value, and what."""

    path: KeyPath
    at_key: bool
    message: str


def mistakes(model: type[BaseModel], data: Any) -> Iterator[Mistake]:
    """Everything that is wrong with data by a model, each once, in pydantic's order."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False)
        paths = [_in_data(each["loc"], data) for each in errors]
        seen = set()
        for each, path in zip(errors, paths, strict=True):
            at_key = each["type"] == "extra_forbidden" or each["loc"][-1:] == (_KEY,)
            of_union = len(path) < len(each["loc"]) and each["type"] != "missing"
            # Another member of the union fits the value so far, and something inside is wrong.
            if of_union and any(len(other) > len(path) and other[: len(path)] == path for other in paths):
                continue
            message = _message(each, path, model)
            told = (path, message.removesuffix(_UNQUOTE))  # each member of a union gives its own message
            if told not in seen:
                seen.add(told)
                yield Mistake(path, at_key, message)


def _in_data(location: tuple[str | int, ...], data: Any) -> KeyPath:
    """The key path of a location: without the steps that name members of unions, which don't stand in the data."""
    path: list[str | int] = []
    for step in location:
        listed = isinstance(data, list) and isinstance(step, int) and step < len(data)
        if listed or (isinstance(data, dict) and step in data):
            data = data[step]
            path.append(step)
    return tuple(path)


def _message(error: Any, path: KeyPath, model: type[BaseModel]) -> str:
    schema = _schema(model)
    kind, value = error["type"], error["input"]
    last = error["loc"][-1] if error["loc"] else ""  # empty where a validator refuses the whole
    if kind == "missing":
        return f"missing key {str(last)!r}"
    if kind == "extra_forbidden":
        parents = [member for node in _nodes(schema, path[:-1]) for member in _unfolded(schema, node)]
        known = {key: child for node in parents for key, child in node.get("properties", {}).items()}
        deeper = [f"{key}.{last}" for key, child in known.items() if _has_key(schema, child, str(last))]
        likely = deeper[0] if len(deeper) == 1 else str(last)
        return f"unknown key {str(last)!r}{did_you_mean(likely, {*known, *deeper})}"
    if kind in ("value_error", "assertion_error"):  # a validator's own words
        return str(error["msg"].partition(", ")[2])
    if last == _KEY:
        nodes = [_key_node(node) for node in _nodes(schema, path[:-1])]
    else:
        nodes = _fitting(schema, list(_nodes(schema, path)), value)
    nouns = [member for node in nodes for member in _members(schema, node) if "noun" in member]
    if nouns and not isinstance(value, (list, dict)):
        words = [word for word in nouns[0]["enum"] if isinstance(word, str)]
        hint = did_you_mean(value, words) if isinstance(value, str) else f": expected one of {', '.join(sorted(words))}"
        return f"unknown {nouns[0]['noun']} {shown(value)}{hint}"
    expected = " or ".join(dict.fromkeys(words_of(schema, node) for node in nodes)) or str(error["msg"])
    if kind == "finite_number":
        expected = expected.replace("a number", "a finite number")
    quoted = isinstance(value, str) and isinstance(plain_scalar(value), (int, float)) and kind != "literal_error"
    return f"found {shown(value)}, expected {expected}{_UNQUOTE if quoted else ''}"


# ---- the JSON Schema as words ----


@cache
def _schema(model: type[BaseModel]) -> Node:
    return model.model_json_schema()


def _members(schema: Node, node: Node) -> Iterator[Node]:
    """The node, or the members of the union that it is, with references followed."""
    if "$ref" in node:
        target = schema["$defs"][node["$ref"].rpartition("/")[2]]
        yield from _members(schema, {**target, **{key: value for key, value in node.items() if key != "$ref"}})
    elif "word" in node or not ("anyOf" in node or "oneOf" in node):
        yield node
    else:
        for member in node.get("anyOf", node.get("oneOf", ())):
            yield from _members(schema, member)


def _nodes(schema: Node, path: KeyPath) -> Iterator[Node]:
    """The nodes that describe what stands at a key path; several where unions lie on the way."""
    found = [schema]
    for step in path:
        found = [
            child for node in found for member in _unfolded(schema, node) for child in _children(member, step)
        ]  # fmt: skip
    yield from found


def _fitting(schema: Node, nodes: list[Node], value: Any) -> list[Node]:
    """Those of several nodes that want a list if the value is one, and so on; all if there are none."""
    kind = "array" if isinstance(value, list) else "object" if isinstance(value, dict) else ""
    fitting = [node for node in nodes if any(each.get("type") == kind for each in _unfolded(schema, node))]
    return fitting or nodes


def _unfolded(schema: Node, node: Node) -> Iterator[Node]:
    """As _members, also of a union that has a word of its own."""
    yield from _members(schema, {key: value for key, value in node.items() if key != "word"})


def _has_key(schema: Node, node: Node, key: str) -> bool:
    """Whether a mapping that a node describes has such a key."""
    return any(key in member.get("properties", ()) for member in _unfolded(schema, node))


def _children(node: Node, step: str | int) -> Iterator[Node]:
    if isinstance(step, int):
        if "items" in node:
            yield node["items"]
    elif step in node.get("properties", ()):
        yield node["properties"][step]
    elif isinstance(node.get("additionalProperties"), dict):
        yield node["additionalProperties"]
    else:
        yield from node.get("patternProperties", {}).values()


def _key_node(node: Node) -> Node:
    """What describes the keys of a mapping."""
    if "propertyNames" in node:
        names: Node = node["propertyNames"]
        return names
    return {"type": "string"}


def words_of(schema: Node, node: Node) -> str:
    """What a node of a JSON Schema expects, in words: `an integer of 0 or more, or an expression`."""
    words: list[str] = []
    for member in _members(schema, node):
        if "word" in member:
            words.append(member["word"])
        elif "enum" in member or "const" in member:
            values = ", ".join(map(str, member.get("enum", [member.get("const")])))
            words.append(f"a {member['noun']} ({values})" if "noun" in member else f"one of {values}")
        elif member.get("type") == "array":
            words.append(_list(schema, member, words))
        else:
            kind = member.get("type", "")
            words.append(_TYPES.get(kind, "something else") + _range(member))
    return _either(list(dict.fromkeys(words)))


def _either(words: Sequence[str]) -> str:
    *first, last = words
    if not first:
        return last
    return f"{', '.join(first)}, {'' if ', or ' in last else 'or '}{last}"


def _list(schema: Node, node: Node, before: Sequence[str]) -> str:
    """A list in words; before are the words of the members that stand before it in its union."""
    items = node.get("items")
    item = words_of(schema, items) if items else "a value"
    if before and item == _either(before):
        return "a list of them"
    if node.get("minItems") == 1:
        return f"a list of at least one {item.removeprefix('a ')}"
    return f"a list of {_PLURALS[item]}" if item in _PLURALS else f"a list, each {item}"


def _range(node: Node) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    if high is None and "exclusiveMaximum" in node:
        high = node["exclusiveMaximum"] - 1
    if low is None and "exclusiveMinimum" in node:
        above = f" above {_number(node['exclusiveMinimum'])}"
        return above if high is None else f"{above}, at most {_number(high)}"
    if low is None and high is None:
        return ""
    return f" of {_number(low)} or more" if high is None else f" from {_number(low)} to {_number(high)}"


def _number(value: Any) -> str:
    if isinstance(value, int) and value >= 2**32 and value & (value + 1) == 0:
        return f"2^{value.bit_length()} - 1"
    return f"{value:g}" if isinstance(value, float) else str(value)


# ---- what was found ----


class _Short(reprlib.Repr):
    """Bounded representations: the work does not grow with the value."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist = 3, 12
        self.maxstring = self.maxother = self.maxlong = 2 * _WIDTH

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, dict):
            return "a mapping" if level == self.maxlevel else "{...}"
        return super().repr1(x, level)


def shown(value: Any) -> str:
    """A value as it stands in a YAML file, shortened, for "found ..."."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = _Short().repr(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
