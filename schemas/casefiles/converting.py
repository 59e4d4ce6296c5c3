"""One case file written again in another form, .pb or .prototxt, inline or with side files: the message stays equal.

Every value field is written as it stands, whatever it means, unless a new inline limit moves the values.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from schemas.atomic_files import Writer
from schemas.casefiles.external_data import SideFile, side_file
from schemas.casefiles.reading import CaseFile
from schemas.casefiles.tensors import TensorRecord
from schemas.casefiles.writing import Layout, Plan, WrittenCase, write_layout
from schemas.errors import InputError, MluopsError
from schemas.protos import messages as proto
from schemas.wire import value_fields as values

Warn = Callable[[str], None]


@dataclass(slots=True)
class _Conversion:
    """What is gathered on the way: the files to copy, and whom to warn."""

    target: Path
    inline_limit: int | None
    warn: Warn
    copies: dict[Path, Writer] = field(default_factory=dict)

    def plan(self, record: TensorRecord, role: str, index: int, header: Any) -> Plan:
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
            self._take_along(record)
        return Plan(role, index, header, None, [values.kept(bulk) for bulk in record.bulks.values()])

    def _moved(self, record: TensorRecord, role: str, index: int, header: Any, limit: int) -> Plan | None:
        """The tensor with its values elsewhere; None where they stay."""
        stored = record.stored()
        inline = values.inlinable(record.dtype) and stored.nbytes <= limit
        if inline == (record.source != "path") or not stored.size:
            return None
        for name in (*values.BULK.values(), "path"):
            header.ClearField(name)
        lost = [name for name in record.sources[1:] if name != "random_data"]
        if lost:
            self.warn(f"{record.place}: {', '.join(lost)} beside {record.source}, which counts: dropped")
        plan = Plan(role, index, header, stored, [values.encode(stored, record.dtype)] if inline else [])
        if not inline:
            plan.move_aside(self.target.stem)
        return plan

    def _take_along(self, record: TensorRecord) -> None:
        """Copy the side file that a tensor names to where the new case file will look for it."""
        folder = self.target.parent
        if folder.resolve() == record.folder.resolve():
            return
        try:
            found = side_file(record.folder, record.header.path, record.place)
        except InputError as error:
            self.warn(f"{error}: no side file is copied")
            return
        target = folder / record.header.path
        self.copies[target.with_name(found.path.name)] = _copier(found)


def convert_case(
    case: CaseFile, target: Path, *, plain: bool = False, inline_limit: int | None = None, warn: Warn
) -> WrittenCase:
    """Write the case as target, .pb or .prototxt by its suffix; nothing is drawn.

    plain leaves out what only mluops reads. With inline_limit values of more bytes go to side files and those of fewer
    come into the case file; without it they stay where they are, and side files are copied along. warn is told what
    doesn't go over. InputError where the case can't take that form.
    """
    node = proto.Node()
    node.CopyFrom(case.node)
    if plain:
        proto.set_meta(node, None)
    if target.suffix == ".prototxt":
        _warn_of_unknown(node, case, warn)
    conversion = _Conversion(target, inline_limit, warn)
    plans = [
        conversion.plan(record, role, index, header)
        for role, records, headers in (("input", case.inputs, node.input), ("output", case.outputs, node.output))
        for index, (record, header) in enumerate(zip(records, headers, strict=True))
    ]
    layout = Layout(node, plans, padded=not plain)
    layout.check_size()
    return write_layout(target, layout, conversion.copies)


def _copier(found: SideFile) -> Writer:
    def write(file: BinaryIO) -> None:
        with found.path.open("rb") as source:
            shutil.copyfileobj(source, file, 1 << 20)

    return write


def _warn_of_unknown(node: Any, case: CaseFile, warn: Warn) -> None:
    numbers = sorted(set(_unknown(node)))
    if numbers:
        warn(f"{case.path}: unknown fields {', '.join(map(str, numbers))} are dropped, a text can't hold them")


def _unknown(message: Any) -> Iterator[int]:
    """The numbers of the unknown fields of a message and those below."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    put_aside: Any = UnknownFieldSet(message)
    yield from (each.field_number for each in put_aside)
    for known, value in message.ListFields():
        if known.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from _unknown(inner)
