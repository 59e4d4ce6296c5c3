"""One case file written again in another form, .pb or .prototxt, with its values inline or in external data.

The message stays equal: every value field is written as it is, whatever it means, unless a new inline limit moves the
values, external data have to take another name, or a text can't hold the bits of a NaN.
"""

from __future__ import annotations

import filecmp
import math
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import xxhash

from schemas.atomic_files import Writer
from schemas.casefiles.external_data import COMPRESSED, ExternalFile, external_name, find_external
from schemas.casefiles.reading import MAPPED_FROM, CaseFile
from schemas.casefiles.tensors import TensorRecord
from schemas.casefiles.writing import DIGEST, TEXT, EncodedCase, EncodedTensor, WrittenCase, write_encoded
from schemas.errors import InputError, MluopsError
from schemas.protos import messages as proto
from schemas.wire import payloads
from schemas.wire import value_fields as values

Warn = Callable[[str], None]
_CHUNK: Final = 1 << 20  # bytes copied at once


@dataclass(slots=True)
class _Conversion:
    """The options of one conversion, and the files to be copied beside the target."""

    target: Path
    inline_limit: int | None
    warn: Warn
    copies: dict[Path, Writer] = field(default_factory=dict)

    def encode(self, record: TensorRecord, role: str, index: int, header: Any) -> EncodedTensor:
        """How one tensor is written."""
        if self.inline_limit is not None and record.has_values:
            try:
                moved = self._moved(record, role, index, header, self.inline_limit)
            except MluopsError as error:
                self.warn(f"{error}: left as it is")
            else:
                if moved is not None:
                    return moved
        if header.path:
            self._copy_external(record, role, index, header)
        tensor = EncodedTensor(role, index, header, None, [payloads.kept(bulk) for bulk in record.bulks.values()])
        if self.target.suffix == TEXT and payloads.loses_bits(tensor.inline, record.dtype):
            self.warn(f"{record.place}: value_f holds NaNs whose bits a text can't hold: they become plain NaNs")
        return tensor

    def _moved(self, record: TensorRecord, role: str, index: int, header: Any, limit: int) -> EncodedTensor | None:
        """The tensor with its values in the other kind of place; None where they stay."""
        if record.source == "path":
            find_external(record.folder, header.path, record.place).check_size(_image_size(record))
        stored = record.stored()
        inline = payloads.inlinable(record.dtype) and stored.nbytes <= limit
        if inline == (record.source != "path") or not stored.size:
            return None
        for name in (*values.BULK.values(), "path"):
            header.ClearField(name)
        lost = [name for name in record.sources[1:] if name != "random_data"]
        if lost:
            self.warn(f"{record.place}: {', '.join(lost)} dropped, {record.source} has priority over it")
        tensor = EncodedTensor(role, index, header, stored, [payloads.encode(stored, record.dtype)] if inline else [])
        if not inline:
            tensor.move_out(self.target.stem)
        return tensor

    def _copy_external(self, record: TensorRecord, role: str, index: int, header: Any) -> None:
        """Copy a tensor's external data to where the target looks for them, under a new name where that is taken."""
        folder = self.target.parent
        if folder.resolve() == record.folder.resolve():
            return
        try:
            found = find_external(record.folder, header.path, record.place)
            found.check_size(_image_size(record))
        except InputError as error:
            self.warn(f"{error}: external data are not copied")
            return
        if not _is_free(folder / header.path, found):
            name = external_name(self.target.stem, role, index, _digest(found.path))
            self.warn(f"{record.place}: {folder / header.path} holds other data: external data are copied to {name}")
            header.path = name
        path = folder / header.path
        self.copies[path.with_name(path.name + COMPRESSED) if found.compressed else path] = _copier(found.path)


def convert_case(
    case: CaseFile, target: Path, *, plain: bool = False, inline_limit: int | None = None, warn: Warn
) -> WrittenCase:
    """Write the case as target, .pb or .prototxt by its suffix; nothing is drawn.

    plain leaves out what only mluops reads. With inline_limit values of more bytes go to external data and those of
    fewer come into the case file; without it they stay where they are, and external data are copied beside the target.
    warn gets what can't be converted, a sentence each. InputError where the case can't take that form.
    """
    node = proto.Node()
    node.CopyFrom(case.node)
    if plain:
        proto.set_meta(node, None)
    if target.suffix == TEXT:
        _warn_of_unknown(node, case, warn)
    conversion = _Conversion(target, inline_limit, warn)
    tensors = [
        conversion.encode(record, role, index, header)
        for role, records, headers in (("input", case.inputs, node.input), ("output", case.outputs, node.output))
        for index, (record, header) in enumerate(zip(records, headers, strict=True))
    ]
    encoded = EncodedCase(node, tensors, None if plain else MAPPED_FROM)
    encoded.check_size()
    return write_encoded(target, encoded, conversion.copies)


def _image_size(record: TensorRecord) -> int:
    """Bytes of the tensor's image in external data."""
    return math.ceil(record.span * record.dtype.width)


def _is_free(path: Path, found: ExternalFile) -> bool:
    """Whether external data can be copied to that path: nothing is there in either form, or the same already."""
    sibling = path.with_name(path.name + COMPRESSED)
    own, other = (sibling, path) if found.compressed else (path, sibling)
    if os.path.lexists(other):
        return False
    return not os.path.lexists(own) or (own.is_file() and filecmp.cmp(own, found.path, shallow=False))


def _digest(path: Path) -> str:
    hashed = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            hashed.update(block)
    return hashed.hexdigest()[:DIGEST]


def _copier(source: Path) -> Writer:
    def write(file: BinaryIO) -> None:
        with source.open("rb") as opened:
            shutil.copyfileobj(opened, file, _CHUNK)

    return write


def _warn_of_unknown(node: Any, case: CaseFile, warn: Warn) -> None:
    numbers = sorted(set(_unknown(node)))
    if numbers:
        warn(f"{case.path}: unknown fields {', '.join(map(str, numbers))} are dropped, a text can't hold them")


def _unknown(message: Any) -> Iterator[int]:
    """The numbers of the unknown fields of a message and of the messages in it."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    unknown: Any = UnknownFieldSet(message)
    yield from (each.field_number for each in unknown)
    for known, value in message.ListFields():
        if known.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from _unknown(inner)
