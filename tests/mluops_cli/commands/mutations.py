"""Mutants of case files: what hands, editors, other tools and bad disks make of them, by a random number generator."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from schemas.protos import messages as proto

# Small sizes, and those that no memory holds: a mutant that asks for gigabytes tests the machine.
SIZES: Final = (-1, 0, 1, 2, 5, 17, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1)
NUMBERS: Final = (*SIZES, -(2**63), 2**64, 0.5, 1e-30, 1e39, 1e309, -0.0)
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE]-?\d+)?")
_NAME: Final = re.compile(r"\b(?:DTYPE|LAYOUT|DIFF|UNIFORM|GAUSSIAN|CPU|GPU)\w*")
_NAMES: Final = ("DTYPE_INT32", "DTYPE_HALF", "DTYPE_INVALID", "DTYPE_FLOAT31", "LAYOUT_NCHW", "LAYOUT_ARRAY", "DIFF4")
_NO_UTF8: Final = (b"\xff", b"\xc3(", b"\xed\xa0\x80")


def mutated_text(content: bytes, rng: random.Random) -> bytes:
    """A text file with one or two mutations."""
    for _ in range(rng.choice((1, 1, 2))):
        if content:
            content = rng.choice(_TEXT)(content, rng)
    return content


def mutated_binary(content: bytes, rng: random.Random) -> bytes:
    """A binary file with one or two mutations of its message, or one of its bytes."""
    if rng.random() < 0.15:
        return rng.choice(_BYTES)(content, rng)
    node = proto.Node.FromString(content)
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice(_MESSAGE)(node, rng)
    return proto.serialize(node) + (rng.choice(_ADDED) if rng.random() < 0.1 else b"")


# ---- bytes ----


def _flip(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _double(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + content[at : at + rng.randint(1, 30)] + content[at:]


_BYTES: Final = (_flip, _truncate, _double)
# Unknown fields of the message: numbers, texts, groups; a wrong wire type; an enum number that there is not.
_ADDED: Final = (b"\xa0\x9c\x01\x05", b"\xa2\x9c\x01\x02ab", b"\x33\x08\x01\x34", b"\x28\x05", b"\x18\x63", b"\x00")


# ---- lines ----


def _lines(change: Callable[[list[bytes], int, random.Random], None]) -> Callable[[bytes, random.Random], bytes]:
    def mutate(content: bytes, rng: random.Random) -> bytes:
        lines = content.splitlines(keepends=True)
        change(lines, rng.randrange(len(lines)), rng)
        return b"".join(lines)

    return mutate


def _delete(lines: list[bytes], at: int, rng: random.Random) -> None:
    del lines[at : at + rng.choice((1, 1, 1, 4))]


def _copy(lines: list[bytes], at: int, rng: random.Random) -> None:
    lines[at:at] = lines[at : at + rng.choice((1, 1, 1, 9))]


def _insert(lines: list[bytes], at: int, rng: random.Random) -> None:
    added = ("}", "{", "dims: 3", "unknown: 1", 'path: "../x"', 'id: "NULL"', "value_f: nan", "layout: 5", "\x00", '"')
    lines.insert(at, f"  {rng.choice(added)}\n".encode())


def _no_utf8(lines: list[bytes], at: int, rng: random.Random) -> None:
    lines.insert(at, b'  id: "' + rng.choice(_NO_UTF8) + b'"\n')


def _words(pattern: re.Pattern[str], new: Sequence[object]) -> Callable[[bytes, random.Random], bytes]:
    """Replace one of the words that match."""

    def mutate(content: bytes, rng: random.Random) -> bytes:
        text = content.decode("utf-8", "surrogateescape")
        found = list(pattern.finditer(text))
        if found:
            word = rng.choice(found)
            text = f"{text[: word.start()]}{rng.choice(new)}{text[word.end() :]}"
        return text.encode("utf-8", "surrogateescape")

    return mutate


_TEXT: Final = (
    *_BYTES, _lines(_delete), _lines(_delete), _lines(_copy), _lines(_insert), _lines(_no_utf8),
    *[_words(_NUMBER, SIZES)] * 6, *[_words(_NUMBER, (*NUMBERS, "nan", "-inf", "0x10", "1_0", "07"))] * 2,
    *[_words(_NAME, _NAMES)] * 4, _words(_NAME, (99, -1)),
    _words(re.compile(r"[{}]"), ("", "}", "{")), _words(re.compile(r"\w+:"), ("x:",)),
)  # fmt: skip


# ---- the message ----


def _messages(node: Any) -> list[Any]:
    """The message and all messages in it."""
    found = [node]
    for field, value in node.ListFields():
        if field.message_type is not None and not field.is_extension:
            for each in value if hasattr(value, "add") else [value]:
                found += _messages(each)
    return found


def _clear(node: Any, rng: random.Random) -> None:
    message = rng.choice(_messages(node))
    fields = [field for field, _ in message.ListFields() if not field.is_extension]
    if fields:
        message.ClearField(rng.choice(fields).name)


def _number(node: Any, rng: random.Random) -> None:
    """Another number where one is, or where the message has a field for one."""
    message = rng.choice(_messages(node))
    numbers = [field for field in message.DESCRIPTOR.fields if field.message_type is None]
    field = rng.choice(numbers)
    value: Any = rng.choice(("", "a", "NULL", "../x", "a" * 300, "\n")) if field.type in (9, 12) else _value(field, rng)
    try:
        _set(message, field, value, rng)
    except (ValueError, TypeError, OverflowError):
        return  # the field holds no such value


def _value(field: Any, rng: random.Random) -> Any:
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    return rng.choice((*NUMBERS, float("nan"), float("inf"), *SIZES)) if field.type in (1, 2) else rng.choice(SIZES)


def _set(message: Any, field: Any, value: Any, rng: random.Random) -> None:
    held = getattr(message, field.name)
    if not hasattr(held, "append"):
        setattr(message, field.name, value)
    elif len(held) and rng.random() < 0.7:
        held[rng.randrange(len(held))] = value
    else:
        held.append(value)


def _dim(node: Any, rng: random.Random) -> None:
    """Another dim of a tensor, one more, or one less."""
    tensors = [*node.input, *node.output]
    if tensors:
        dims = rng.choice(tensors).shape.dims
        if dims and rng.random() < 0.6:
            dims[rng.randrange(len(dims))] = rng.choice(SIZES)
        elif dims and rng.random() < 0.5:
            del dims[-1]
        else:
            dims.append(rng.choice(SIZES))


def _tensor(node: Any, rng: random.Random) -> None:
    """One tensor less, or one twice."""
    role = rng.choice((node.input, node.output))
    if len(role) and rng.random() < 0.5:
        del role[rng.randrange(len(role))]
    elif len(role):
        role.add().CopyFrom(rng.choice(list(role)))


def _values(node: Any, rng: random.Random) -> None:
    """A value less, or one more, of one of the fields that hold values."""
    held = [getattr(tensor, name) for tensor in (*node.input, *node.output) for name in ("value_f", "value_i")]
    filled = [each for each in held if len(each)]
    if filled:
        values = rng.choice(filled)
        values.pop() if rng.random() < 0.5 else values.append(rng.choice((0, 1, -1, 2**30)))


_MESSAGE: Final = (_clear, _number, _number, _dim, _dim, _tensor, _values)


def renamed(suffix: str, content: bytes, name: str) -> bytes:
    """A case file of ours under another name; one of others as it is."""
    node = proto.Node.FromString(content) if suffix == ".pb" else proto.parse_text(content.decode(), proto.Node(), "")
    meta = proto.get_meta(node)
    if meta is None:
        return content
    meta.name = name
    return proto.serialize(node) if suffix == ".pb" else proto.print_text(node).encode()
