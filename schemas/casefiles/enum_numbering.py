"""Two enum numberings are in use: older generators number dtypes, layouts and criteria differently.

A binary file in their numbering parses too, but means something else. This module detects such a file and reads it.
Text files hold names, and files with metadata of mluops are current: both are certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from schemas.casefiles.external_data import find_external
from schemas.dtypes import BY_ENUM
from schemas.errors import InputError
from schemas.protos import messages as proto
from schemas.wire import codec as wire
from schemas.wire import value_fields as values

if TYPE_CHECKING:
    from schemas.casefiles.tensors import TensorRecord

CURRENT: Final = "current"
OLD: Final = "old"
NUMBERINGS: Final = (CURRENT, OLD)

MOVED: Final[Mapping[str, Mapping[str, int]]] = {
    "DataType": {
        "DTYPE_INVALID": 0, "DTYPE_DOUBLE": 3, "DTYPE_INT8": 4, "DTYPE_INT16": 5, "DTYPE_INT64": 7, "DTYPE_UINT8": 8,
        "DTYPE_UINT16": 9, "DTYPE_UINT32": 10, "DTYPE_UINT64": 11, "DTYPE_COMPLEX_HALF": 13, "DTYPE_COMPLEX_FLOAT": 14,
    },
    "TensorLayout": {
        "LAYOUT_NCHW": 0, "LAYOUT_NHWC": 1, "LAYOUT_HWCN": 2, "LAYOUT_NDHWC": 3, "LAYOUT_ARRAY": 4, "LAYOUT_NCDHW": 5,
        "LAYOUT_NC": 8, "LAYOUT_NLC": 9,
    },
    "EvaluationCriterion": {"DIFF1": 1, "DIFF2": 2, "DIFF3": 3, "DIFF3_2": 4, "DIFF4": 5},
}  # fmt: skip
"""The names that older generators number differently, with the older numbers; other names have one number."""

THRESHOLD_IMAG: Final = (23, 4832)  # the field of Node that holds evaluation_threshold_imag: older, current
_RANKS: Final = {
    "NCHW": 4, "NHWC": 4, "HWCN": 4, "NDHWC": 5, "NCDHW": 5, "TNC": 3, "NTC": 3, "NC": 2, "NLC": 3, "NCL": 3,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Numbering:
    """The numbering a file was written in, as far as its bytes show: current, old, or ambiguous; and the reasons."""

    word: str
    reasons: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One sentence for a person, empty where the numbering is the current one."""
        if self.word == OLD:
            return f"its bytes are of the older enum numbering ({'; '.join(self.reasons)}): --generation old reads it"
        if self.word == CURRENT:
            return ""
        why = f" ({'; '.join(self.reasons)})" if self.reasons else ", nothing in it tells which"
        return f"ambiguous: it may be of the current or of the older enum numbering{why}; --generation says which"


@cache
def old_names(enum: str) -> dict[int, str]:
    """Number -> name of an enum in the older numbering."""
    moved = MOVED[enum]
    kept = {
        number: name
        for number, name in proto.enum_names(enum).items()
        if name not in moved and number not in moved.values()
    }
    return kept | {number: name for name, number in moved.items()}


# ---- reading the older numbering ----


def translated(headers: bytes) -> bytes:
    """The bytes of a Node of the older numbering in the current one; InputError for a number that it doesn't have."""
    return _translated(headers, proto.Node.DESCRIPTOR, "")


def _translated(data: bytes, descriptor: Any, where: str) -> bytes:
    out = bytearray()
    for field in wire.fields(data, 0, len(data)):
        known = descriptor.fields_by_number.get(field.number)
        raw = data[field.start : field.end]
        if descriptor.name == "Node" and field.number == THRESHOLD_IMAG[0]:
            out += wire.encode_tag(THRESHOLD_IMAG[1], field.kind)
            out += data[field.begin + len(wire.encode_tag(field.number, field.kind)) : field.end]
        elif known is None or (known.enum_type is None and known.message_type is None):
            out += data[field.begin : field.end]
        elif known.enum_type is not None and known.enum_type.name in MOVED and field.kind in (wire.VARINT, wire.LEN):
            name = f"{where}{known.name}"
            numbers = b"".join(_new_number(known.enum_type.name, number, name) for number in _varints(raw))
            out += wire.encode_tag(field.number, field.kind)
            out += numbers if field.kind == wire.VARINT else wire.encode_varint(len(numbers)) + numbers
        elif known.message_type is not None and field.kind == wire.LEN:
            inner = _translated(raw, known.message_type, f"{where}{known.name}.")
            out += wire.encode_tag(field.number, wire.LEN) + wire.encode_varint(len(inner)) + inner
        else:
            out += data[field.begin : field.end]
    return bytes(out)


def _varints(raw: bytes) -> Iterator[int]:
    at = 0
    while at < len(raw):
        number, at = wire.read_varint(raw, at, len(raw))
        yield number


def _new_number(enum: str, number: int, where: str) -> bytes:
    name = old_names(enum).get(number)
    if name is None:
        raise InputError(f"{where}: {enum} has no number {number} in the older numbering")
    numbers = {name: each for each, name in proto.enum_names(enum).items()}
    return wire.encode_varint(numbers[name])


# ---- detecting the numbering ----


def numbering_of(headers: bytes, node: Any, records: Sequence[TensorRecord]) -> Numbering:
    """The numbering of a binary file that was read in the current one."""
    old = [*_old_fields(headers), *_old_criteria(node)]
    current = list(_current_numbers(node, records))
    for record in records:
        for word, reason in _tensor_evidence(record):
            (old if word == OLD else current).append(reason)
    if old and not current:
        return Numbering(OLD, tuple(dict.fromkeys(old)))
    if old:
        return Numbering("ambiguous", tuple(dict.fromkeys((*old, *(f"but {reason}" for reason in current)))))
    return Numbering(CURRENT if current or not records else "ambiguous")


def _old_fields(headers: bytes) -> Iterator[str]:
    for field in wire.fields(headers, 0, len(headers)):
        if field.number == THRESHOLD_IMAG[0] and field.kind == wire.FIXED64:
            yield "field 23 holds a number, where a message has to be"


def _criteria(node: Any) -> Iterable[str]:
    names = proto.enum_names("EvaluationCriterion")
    return (names[number] for number in (*node.test_param.error_func, *node.evaluation_criterion))


def _old_criteria(node: Any) -> Iterator[str]:
    moved = {number: name for name, number in MOVED["EvaluationCriterion"].items()}
    numbers = {name: number for number, name in proto.enum_names("EvaluationCriterion").items()}
    for name in dict.fromkeys(_criteria(node)):
        if numbers[name] in moved:
            yield f"criterion {name} has the older number of {moved[numbers[name]]}"


def _current_numbers(node: Any, records: Sequence[TensorRecord]) -> Iterator[str]:
    """Numbers that the older numbering doesn't have, or that are not the dtype of a tensor there."""
    for name in dict.fromkeys(_criteria(node)):
        if name in MOVED["EvaluationCriterion"]:
            yield f"criterion {name} has its current number"
    for record in records:
        for enum, number in (("DataType", record.header.dtype), ("TensorLayout", record.header.layout)):
            if old_names(enum).get(number) in (None, "DTYPE_INVALID"):
                yield f"{record.place.key}: {enum} {number} is not in the older numbering"


def _tensor_evidence(record: TensorRecord) -> Iterator[tuple[str, str]]:
    """The evidence of one tensor: (numbering, reason)."""
    dtype = BY_ENUM.get(old_names("DataType").get(record.header.dtype, ""))
    layout = old_names("TensorLayout").get(record.header.layout, "").removeprefix("LAYOUT_")
    if dtype is not None and dtype != record.dtype and record.has_values:
        now, then = _holds(record), _holds(replace(record, dtype=dtype))
        if now != then:
            fits = (record.dtype.name, dtype.name) if now else (dtype.name, record.dtype.name)
            yield CURRENT if now else OLD, f"{record.place.key}: its values are {fits[0]}, not {fits[1]}"
    if layout and layout != record.layout:
        rank = len(record.shape)
        now, then = (_RANKS.get(each, rank) == rank for each in (record.layout, layout))
        if now != then:
            fits = (record.layout, layout) if now else (layout, record.layout)
            yield CURRENT if now else OLD, f"{record.place.key}: {rank} dims are {fits[0]}, not {fits[1]}"


def _holds(record: TensorRecord) -> bool:
    """Whether the stored values have the number of the shape, and the kind and range of the dtype."""
    try:
        if record.source == "path":
            wanted = math.ceil(record.span * record.dtype.width)
            return find_external(record.folder, record.header.path, record.place).size(wanted) == wanted
        part, per_element = values.part_dtype(record.dtype)
        assert record.bulk is not None
        if record.bulk.count() != record.span * per_element:
            return False
        for _ in values.decoded_blocks(record.bulk, part):
            pass
    except InputError:
        return False
    return True
