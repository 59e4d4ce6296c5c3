"""Case files: read_case maps one and reads its headers, write_case streams one.

protobuf never parses the values, only the rest of the message, the headers. A text file is parsed and serialized first,
then read the same way.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from schemas.casefiles.enum_numbering import CURRENT, OLD, Numbering, numbering_of, translated
from schemas.casefiles.headers import split_headers
from schemas.casefiles.tensors import TensorRecord, make_record
from schemas.casefiles.writing import BINARY, SUFFIXES, WRONG_SUFFIX, WrittenCase, case_size, write_case
from schemas.errors import InputError, SourceLocation, UnavailableError, located
from schemas.path_names import check_case_name, check_name
from schemas.protos import messages as proto
from schemas.prototext.parser import parse_case_text
from schemas.wire import codec as wire

__all__ = ["SHORT", "SUFFIXES", "CaseFile", "WrittenCase", "case_size", "read_case", "write_case"]

SHORT: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # what a process or machine runs out of
MAPPED_FROM: Final = 1 << 16  # bytes of a file; a smaller one is read: that is quicker and holds no open file
MOST_TEXT: Final = 16 * wire.MAX_MESSAGE  # bytes of a text file, which are read into memory
_OP: Final = re.compile(r"\w[\w.+-]*")


class CaseFile:
    """One case file, read: its Node with the tensors' headers, and a record per tensor.

    node holds no values; unknown fields stay on it. Arrays of the records stay valid after close; the file is closed
    when the last of them is gone.
    """

    def __init__(
        self,
        path: Path,
        node: Any,
        inputs: list[TensorRecord],
        outputs: list[TensorRecord],
        buffer: Any,
        headers: bytes,
    ) -> None:
        self.path = path
        self.node = node
        self.inputs = inputs
        self.outputs = outputs
        self._buffer = buffer
        self._headers = headers  # of a binary file that was read in the current numbering, else empty

    @property
    def op(self) -> str:
        """The operator's name."""
        name: str = self.node.op_name
        return name

    @property
    def meta(self) -> Any | None:
        """The metadata of mluops: a CaseMeta message, None in files of others."""
        return proto.get_meta(self.node)

    def take_metadata(self, fields: Mapping[str, Any] | None) -> None:
        """Give a file without metadata of its own what a manifest says of it: fields of CaseMeta; None: nothing."""
        if fields is not None and self.meta is None:
            proto.set_meta(self.node, proto.CaseMeta(**fields))

    @cached_property
    def numbering(self) -> Numbering:
        """The enum numbering of the file; reads all values of a binary file that has no metadata of mluops."""
        if not self._headers or self.meta is not None:
            return Numbering(CURRENT)
        return numbering_of(self._headers, self.node, (*self.inputs, *self.outputs))

    @property
    def params_field(self) -> str:
        """The field of the operator's parameters: the ..._param that is set, that of the operator's name first."""
        present = [field.name for field, _ in self.node.ListFields() if _holds_parameters(field.name)]
        own = f"{self.op}_param"
        return own if own in present else next(iter(present), "")

    def params_message(self) -> Any | None:
        """The message of the operator's parameters; None where none is set."""
        return getattr(self.node, self.params_field) if self.params_field else None

    def close(self) -> None:
        """Close the file; the records can't be read any more."""
        for record in (*self.inputs, *self.outputs):
            for bulk in record.bulks.values():
                bulk.buffer = None
        if isinstance(self._buffer, mmap.mmap):
            with contextlib.suppress(BufferError):  # arrays still use it: it is closed with the last of them
                self._buffer.close()
        self._buffer = None

    def __enter__(self) -> CaseFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _holds_parameters(field: str) -> bool:
    return field.endswith("_param") and field not in ("test_param", "handle_param")


def read_case(path: Path, enum_numbering: str = CURRENT) -> CaseFile:
    """Read a .pb or .prototxt case file: headers now, values when a record's array() asks for them.

    enum_numbering old reads the enum numbers of a binary file as older generators wrote them. InputError where the file
    is missing, not a case file, cut off, lacks a required field, or holds an unknown enum number or a name that can't
    be part of a path; UnavailableError where this process can't open any file now.
    """
    file = str(path)
    if path.suffix not in SUFFIXES:
        raise InputError(WRONG_SUFFIX, SourceLocation(file))
    binary = path.suffix == BINARY
    try:
        buffer = _open(path) if binary else _parse(path)
    except OSError as error:
        if error.errno in SHORT:  # the file isn't to blame
            raise UnavailableError(f"{path}: can't read the case file: {error.strerror}") from error
        reason = "it is a folder" if path.is_dir() else error.strerror or str(error)
        raise InputError(f"can't read the case file: {reason}", SourceLocation(file)) from None
    with located(SourceLocation(file)):
        if len(buffer) > wire.MAX_MESSAGE:
            raise InputError(f"{len(buffer)} bytes: a protobuf message ends at {wire.MAX_MESSAGE}")
        buffer, headers, bulks = split_headers(buffer)
        older = binary and enum_numbering == OLD
        node = _checked_node(translated(headers)) if older else _current_node(headers, binary)
        _check_names(node)
        folder = path.parent
        records: dict[str, list[TensorRecord]] = {}
        for role, header_list in (("input", node.input), ("output", node.output)):
            records[role] = [
                make_record(header, found, role, index, file, folder)
                for index, (header, found) in enumerate(zip(header_list, bulks[role], strict=True))
            ]
    evidence = headers if binary and not older else b""
    return CaseFile(path, node, records["input"], records["output"], buffer, evidence)


def _check_names(node: Any) -> None:
    """InputError where a name that becomes part of ids and paths can't be one."""
    if _OP.fullmatch(node.op_name) is None:
        raise InputError(f"op_name is {node.op_name[:60]!r}, expected a word of letters, digits, _ . + -")
    check_name(node.op_name, "op_name")
    meta = proto.get_meta(node)
    if meta is not None and (meta.suite or meta.name):
        check_case_name(meta.suite or "suite", meta.name or "name")


def _current_node(headers: bytes, binary: bool) -> Any:
    """The Node of these bytes in the current numbering; an InputError says so where the older one makes sense."""
    try:
        return _checked_node(headers)
    except InputError as error:
        if not (binary and _is_old(headers)):
            raise
        hint = "the older enum numbering has all its numbers: --generation old reads it"
        raise InputError(f"{error.message}; {hint}", error.place) from None


def _is_old(headers: bytes) -> bool:
    try:
        _checked_node(translated(headers))
    except InputError:
        return False
    return True


def _open(path: Path) -> Any:
    with path.open("rb", buffering=0) as file:
        head = file.read(MAPPED_FROM)
        if not head:
            raise InputError("the file is empty", SourceLocation(str(path)))
        return head if len(head) < MAPPED_FROM else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _parse(path: Path) -> bytes:
    size = path.stat().st_size
    if size > MOST_TEXT:
        raise InputError(f"{size} bytes: the text of a message ends at {MOST_TEXT}", SourceLocation(str(path)))
    try:
        raw = path.read_bytes()
    except MemoryError:
        raise UnavailableError(f"{path}: {size} bytes of text, more than this process has memory for") from None
    if not raw.strip():
        raise InputError("the file is empty", SourceLocation(str(path)))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"byte {error.start} is not UTF-8", SourceLocation(str(path), line)) from None
    node = parse_case_text(text, str(path))
    try:
        return proto.serialize(node)
    except Exception as error:  # protobuf's runtimes name it differently
        raise InputError(
            f"longer than the {wire.MAX_MESSAGE} bytes of a message: {error}", SourceLocation(str(path))
        ) from None


def _checked_node(headers: bytes) -> Any:
    """The Node of these bytes; InputError where it lacks a required field or an enum number or a text is unknown."""
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    node = proto.Node()
    try:
        node.MergeFromString(headers)
    except (DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a case file: {error}") from None
    _check_known(node, "", UnknownFieldSet)
    missing = node.FindInitializationErrors()
    if missing:
        raise InputError(f"not a whole case file: required {', '.join(missing)} missing")
    return node


def _check_known(message: Any, where: str, unknown_fields: Callable[[Any], Any]) -> None:
    """InputError for unknown enum numbers, which protobuf keeps as unknown fields, and for texts that aren't UTF-8."""
    for unknown in unknown_fields(message):
        field = message.DESCRIPTOR.fields_by_number.get(unknown.field_number)
        if field is not None and field.enum_type is not None and unknown.wire_type == wire.VARINT:
            raise InputError(f"{where}{field.name}: {field.enum_type.name} has no number {unknown.data}")
    for field, value in message.ListFields():
        if isinstance(value, (int, float, str)):
            continue
        if field.message_type is None:
            if field.type == field.TYPE_STRING and isinstance(value, bytes):
                raise InputError(f"{where}{field.name}: {value!r} is not UTF-8")
        elif hasattr(value, "ListFields"):
            _check_known(value, f"{where}{field.name}.", unknown_fields)
        else:
            for index, item in enumerate(value):
                _check_known(item, f"{where}{field.name}[{index}].", unknown_fields)
