"""Writing a case file: everything is laid out and its size known before the first byte is written.

A .pb file is a list of pieces: header bytes of protobuf's making, then an array's own memory or its varints. Each
value_f payload starts at a multiple of 64 bytes, by a bytes field of ours (mluops_pad) before its tensor. Tensors above
the inline limit, and as many of the largest others as a message of 2^31 - 1 bytes can't hold, go to raw side files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from schemas.atomic_files import Writer, write_files
from schemas.dtypes import BY_ENUM, DType
from schemas.errors import InputError, SourceLocation
from schemas.protos import messages as proto
from schemas.prototext import writer as text
from schemas.tensor_descriptor import span
from schemas.wire import codec as wire
from schemas.wire import value_fields as values

ALIGNMENT: Final = 64
INLINE_LIMIT: Final = 64 << 20
_PAD_HEAD: Final = wire.encode_tag(3001, wire.LEN)
_ROLES: Final = {"input": (6, "in"), "output": (7, "out")}  # field number of Node, letters of a side file's name

Array = NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class WrittenCase:
    """What write_case wrote: bytes of all files together, and the files, the case file last."""

    bytes: int
    files: tuple[Path, ...]


@dataclass(slots=True)
class Plan:
    """One tensor to be written: its header, its stored values flat (None: none), and what of them goes inline."""

    role: str
    index: int
    header: Any
    stored: Array
    inline: list[values.Payload]

    def side_name(self, stem: str) -> str:
        """The name of its side file."""
        return f"{stem}.{_ROLES[self.role][1]}{self.index}.bin"

    def move_aside(self, stem: str) -> None:
        """Let the values go to a side file."""
        self.inline = []
        self.header.path = self.side_name(stem)

    @property
    def size(self) -> int:
        """Bytes of the values that go inline."""
        return sum(payload.size for payload in self.inline)


@dataclass(slots=True)
class Layout:
    """A case laid out: the Node with its tensors' headers as they will be written, the tensors, and whether payloads
    are aligned by our padding."""

    node: Any
    tensors: list[Plan]
    padded: bool = True

    def check_size(self) -> None:
        """InputError where the message is longer than protobuf's limit."""
        size = _message_size(self)
        if size > wire.MAX_MESSAGE:
            raise InputError(f"{size} bytes: a message ends at {wire.MAX_MESSAGE}, larger values go to side files")

    def sides(self, stem: str) -> dict[str, NDArray[Any]]:
        """Side file name -> the values that go there."""
        return {
            plan.side_name(stem): plan.stored for plan in self.tensors if plan.stored is not None and not plan.inline
        }


def write_case(
    path: Path, node: Any, inputs: Sequence[Array], outputs: Sequence[Array], *, inline_limit: int = INLINE_LIMIT
) -> WrittenCase:
    """Write a case as .pb or .prototxt, by the path's suffix: whole or not at all, the same bytes for the same case.

    node carries everything but values: a header per tensor in input and output. An array has its header's shape (a
    complex_half one more axis of 2) and dtype; with it the header's own values, path and random_data go. None: no
    values are written. Tensors of more than inline_limit bytes go to raw files STEM.in0.bin, STEM.out0.bin ... beside
    it. A text file leaves out what only mluops reads. ValueError where arrays and headers disagree, InputError where
    the node lacks something, UnavailableError where the disk refuses.
    """
    if path.suffix not in (".pb", ".prototxt"):
        raise InputError("a case file ends in .pb or .prototxt", SourceLocation(str(path)))
    layout = _lay_out(node, inputs, outputs, inline_limit, path.stem)
    if path.suffix == ".prototxt":
        proto.set_meta(layout.node, None)
    return write_layout(path, layout)


def write_layout(path: Path, layout: Layout, more: Mapping[Path, Writer] | None = None) -> WrittenCase:
    """Write a case that is laid out, its side files and more files first; see write_case."""
    missing = layout.node.FindInitializationErrors()
    if missing:
        raise InputError(f"required {', '.join(missing)} missing", SourceLocation(str(path)))
    write = _write_text if path.suffix == ".prototxt" else _write_binary
    files = list((more or {}).items())
    files += [(path.with_name(name), _image_writer(each)) for name, each in layout.sides(path.stem).items()]
    files.append((path, lambda file: write(file, layout)))
    return WrittenCase(write_files(files), tuple(file for file, _ in files))


def case_size(
    node: Any, inputs: Sequence[Array], outputs: Sequence[Array], inline_limit: int = INLINE_LIMIT, stem: str = "case"
) -> tuple[int, int]:
    """Bytes of the .pb file and of its side files, exact, without encoding; the stem's length counts in their paths."""
    layout = _lay_out(node, inputs, outputs, inline_limit, stem)
    return _message_size(layout), sum(stored.nbytes for stored in layout.sides(stem).values())


def _lay_out(node: Any, inputs: Sequence[Array], outputs: Sequence[Array], inline_limit: int, stem: str) -> Layout:
    written = proto.Node()
    written.CopyFrom(node)
    written.ClearExtension(proto.extension("mluops_pad"))
    tensors: list[Plan] = []
    for role, arrays in (("input", inputs), ("output", outputs)):
        headers = getattr(written, role)
        if len(headers) != len(arrays):
            raise ValueError(f"{len(arrays)} {role} arrays for {len(headers)} {role} tensors")
        for index, (header, array) in enumerate(zip(headers, arrays, strict=True)):
            tensors.append(_plan(role, index, header, array))
    for plan in tensors:
        if plan.stored is not None and (not plan.inline or plan.stored.nbytes > inline_limit):
            plan.move_aside(stem)
    layout = Layout(written, tensors)
    inline = sorted((plan for plan in tensors if plan.inline), key=lambda plan: plan.size)
    while _message_size(layout) > wire.MAX_MESSAGE:
        if not inline:
            raise InputError(f"the case takes more than {wire.MAX_MESSAGE} bytes even without its values")
        inline.pop().move_aside(stem)
    return layout


def _plan(role: str, index: int, header: Any, array: Array) -> Plan:
    for name in values.BULK.values():
        header.ClearField(name)
    enum = proto.enum_names("DataType")[header.dtype]
    if enum not in BY_ENUM:
        raise InputError(f'tensor "{header.id}": dtype {enum} is none a tensor can have')
    dtype = BY_ENUM[enum]
    if array is None:
        return Plan(role, index, header, None, [])
    header.ClearField("path")
    header.ClearField("random_data")
    stored = _stored(header, dtype, array)
    if not stored.size:
        return Plan(role, index, header, None, [])
    inline: list[values.Payload] = [values.encode(stored, dtype)] if values.inlinable(dtype) else []
    return Plan(role, index, header, stored, inline)


def _stored(header: Any, dtype: DType, array: NDArray[Any]) -> NDArray[Any]:
    """The values flat, contiguous and little-endian, as they lie in memory: a copy only where the array isn't so."""
    storage = dtype.storage or values.part_dtype(dtype)[0].storage
    if storage is None:
        raise InputError(f'tensor "{header.id}": values of {dtype.name} can\'t be written')
    shape, strides = tuple(header.shape.dims), tuple(header.shape.dim_stride)
    expected = values.array_shape(dtype, shape)
    if array.shape != expected:
        raise ValueError(f'tensor "{header.id}": the array has shape {array.shape}, its header {expected}')
    if array.dtype.newbyteorder("<") != storage.newbyteorder("<"):
        raise ValueError(f'tensor "{header.id}": the array holds {array.dtype}, its header says {dtype.name}')
    if not strides:
        return np.ascontiguousarray(array, storage).reshape(-1)
    spread = np.zeros(span(shape, strides) * (2 if expected != shape else 1), storage)
    if array.size:
        values.shaped(spread, dtype, shape, strides)[...] = array
    return spread


def _without_tensors(layout: Layout) -> Any:
    rest = proto.Node()
    rest.CopyFrom(layout.node)
    rest.ClearField("input")
    rest.ClearField("output")
    return rest


# ---- binary ----


def _pieces(layout: Layout) -> Iterator[tuple[bytes, values.Payload | None]]:
    """The message in order: bytes, then a payload that follows them."""
    head = proto.serialize(_without_tensors(layout))
    yield head, None
    at = len(head)
    for plan in layout.tensors:
        body = proto.serialize(plan.header)
        payloads = plan.inline
        size = len(body) + sum(len(payload.head) + payload.size for payload in payloads)
        head = wire.encode_tag(_ROLES[plan.role][0], wire.LEN) + wire.encode_varint(size) + body
        if layout.padded and payloads and payloads[0].name == "value_f":
            head = _padding(at + len(head) + len(payloads[0].head)) + head
        if not payloads:
            yield head, None
            at += len(head)
        for payload in payloads:
            head += payload.head
            yield head, payload
            at += len(head) + payload.size
            head = b""


def _padding(at: int) -> bytes:
    """A pad field that moves an offset to the next multiple of the alignment; nothing where it is one."""
    short = -at % ALIGNMENT
    if not short:
        return b""
    least = len(_PAD_HEAD) + 1
    fill = (short - least) % ALIGNMENT
    return _PAD_HEAD + wire.encode_varint(fill) + bytes(fill)


def _message_size(layout: Layout) -> int:
    return sum(len(head) + (payload.size if payload else 0) for head, payload in _pieces(layout))


def _write_binary(file: BinaryIO, layout: Layout) -> None:
    for head, payload in _pieces(layout):
        file.write(head)
        if payload is not None:
            for chunk in payload.chunks():
                file.write(chunk)


# ---- text ----


def _write_text(file: BinaryIO, layout: Layout) -> None:
    rest = _without_tensors(layout)
    file.write(proto.print_text(rest).encode())
    for plan in layout.tensors:
        file.write(f"{plan.role} {{\n{proto.print_text(plan.header, indent=2)}".encode())
        for payload in plan.inline:
            for chunk in text.lines(payload, indent="  "):
                file.write(chunk)
        file.write(b"}\n")


def _image_writer(stored: NDArray[Any]) -> Writer:
    return lambda file: file.write(stored.view(np.uint8).data)
