"""Writing a case file: the case is encoded and its size known before the first byte is written.

A .pb file is a list of pieces: header bytes that protobuf makes, then an array's own memory or its varints. A bytes
field of ours (mluops_pad) before a tensor moves its value_f payload to a multiple of 64 bytes. Tensors above the inline
limit go to external data, and as many of the largest others as a message of 2^31 - 1 bytes can't hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import xxhash
from numpy.typing import NDArray

from schemas.atomic_files import Writer, write_files
from schemas.casefiles.external_data import external_name
from schemas.dtypes import BY_ENUM, DType
from schemas.errors import InputError, SourceLocation
from schemas.protos import messages as proto
from schemas.prototext import writer as text
from schemas.tensor_descriptor import span
from schemas.wire import codec as wire
from schemas.wire import payloads
from schemas.wire import value_fields as values

ALIGNMENT: Final = 64
INLINE_LIMIT: Final = 64 << 20
BINARY: Final = ".pb"
TEXT: Final = ".prototxt"
SUFFIXES: Final = (BINARY, TEXT)
WRONG_SUFFIX: Final = f"a case file ends in {' or '.join(SUFFIXES)}"
DIGEST: Final = 16  # hex digits of the content's xxh3_128 in the name of external data
_PAD_HEAD: Final = wire.encode_tag(3001, wire.LEN)
_FIELDS: Final = {"input": 6, "output": 7}  # field numbers of Node

Array = NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class WrittenCase:
    """What write_case wrote: bytes of all files together, and the files, the case file last."""

    bytes: int
    files: tuple[Path, ...]


@dataclass(slots=True)
class EncodedTensor:
    """One tensor to be written: its header, its values flat (None: no values), and the payloads that go inline."""

    role: str
    index: int
    header: Any
    stored: Array
    inline: list[payloads.Payload]

    def move_out(self, stem: str) -> None:
        """Store the values in external data; its name gets its digest when the case is written."""
        self.inline = []
        self.header.path = external_name(stem, self.role, self.index, "0" * DIGEST)

    @property
    def is_external(self) -> bool:
        """Whether the values are written to external data."""
        return self.stored is not None and not self.inline

    @property
    def size(self) -> int:
        """Bytes of the values that go inline."""
        return sum(payload.size for payload in self.inline)


@dataclass(slots=True)
class EncodedCase:
    """A case to be written: the Node with its tensors' headers, and the tensors.

    Payloads of value_f of align_from bytes or more are aligned by our padding; None: no padding is written.
    """

    node: Any
    tensors: list[EncodedTensor]
    align_from: int | None = 0

    def check_size(self) -> None:
        """InputError where the message is longer than protobuf's limit."""
        size = _message_size(self)
        if size > wire.MAX_MESSAGE:
            raise InputError(f"{size} bytes: a message ends at {wire.MAX_MESSAGE}, larger values go to external data")

    def name_external(self, stem: str) -> Iterator[tuple[str, NDArray[Any]]]:
        """Give external data their names by content, and yield each name with its values."""
        for tensor in self.tensors:
            if tensor.is_external:
                assert tensor.stored is not None
                digest = xxhash.xxh3_128_hexdigest(tensor.stored.view(np.uint8).data)[:DIGEST]
                tensor.header.path = external_name(stem, tensor.role, tensor.index, digest)
                yield tensor.header.path, tensor.stored


def write_case(
    path: Path,
    node: Any,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    *,
    inline_limit: int = INLINE_LIMIT,
    more: Mapping[Path, Writer] | None = None,
) -> WrittenCase:
    """Write a case as .pb or .prototxt, by the path's suffix: whole or not at all, the same bytes for the same case.

    node carries everything but values: a header per tensor in input and output. An array has its header's shape (a
    complex_half one more axis of 2) and dtype; it replaces the header's own values, path and random_data. None: no
    values are written. Tensors of more than inline_limit bytes go to external data, raw files STEM.in0.DIGEST.bin,
    STEM.out0.DIGEST.bin ... beside the case file; more files
    are written with it. A text file leaves out what only mluops reads. ValueError where
    arrays and headers disagree, InputError where the node lacks something, UnavailableError where writing fails.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(WRONG_SUFFIX, SourceLocation(str(path)))
    case = _encode(node, inputs, outputs, inline_limit, path.stem)
    if path.suffix == TEXT:
        proto.set_meta(case.node, None)
    return write_encoded(path, case, more)


def write_encoded(path: Path, case: EncodedCase, more: Mapping[Path, Writer] | None = None) -> WrittenCase:
    """Write an encoded case, its external data and more files first; see write_case.

    The case file comes last, and external data are named by their content: until then an older case file of that name
    is whole, with the external data that it names.
    """
    missing = case.node.FindInitializationErrors()
    if missing:
        raise InputError(f"required {', '.join(missing)} missing", SourceLocation(str(path)))
    write = _write_text if path.suffix == TEXT else _write_binary
    files = list((more or {}).items())
    files += [(path.with_name(name), _image_writer(stored)) for name, stored in case.name_external(path.stem)]
    files.append((path, lambda file: write(file, case)))
    return WrittenCase(write_files(files), tuple(file for file, _ in files))


def case_size(
    node: Any, inputs: Sequence[Array], outputs: Sequence[Array], inline_limit: int = INLINE_LIMIT, stem: str = "case"
) -> tuple[int, int]:
    """Bytes of the .pb file and of its external data, exact, without encoding; the stem's length counts in paths."""
    case = _encode(node, inputs, outputs, inline_limit, stem)
    external = (tensor.stored for tensor in case.tensors if tensor.is_external)
    return _message_size(case), sum(stored.nbytes for stored in external if stored is not None)


def _encode(node: Any, inputs: Sequence[Array], outputs: Sequence[Array], inline_limit: int, stem: str) -> EncodedCase:
    written = proto.Node()
    written.CopyFrom(node)
    written.ClearExtension(proto.extension("mluops_pad"))
    tensors: list[EncodedTensor] = []
    for role, arrays in (("input", inputs), ("output", outputs)):
        headers = getattr(written, role)
        if len(headers) != len(arrays):
            raise ValueError(f"{len(arrays)} {role} arrays for {len(headers)} {role} tensors")
        for index, (header, array) in enumerate(zip(headers, arrays, strict=True)):
            tensors.append(_encode_tensor(role, index, header, array))
    for tensor in tensors:
        if tensor.stored is not None and (not tensor.inline or tensor.stored.nbytes > inline_limit):
            tensor.move_out(stem)
    case = EncodedCase(written, tensors)
    inline = sorted((tensor for tensor in tensors if tensor.inline), key=lambda tensor: tensor.size)
    while _message_size(case) > wire.MAX_MESSAGE:
        if not inline:
            raise InputError(f"the case takes more than {wire.MAX_MESSAGE} bytes even without its values")
        inline.pop().move_out(stem)
    return case


def _encode_tensor(role: str, index: int, header: Any, array: Array) -> EncodedTensor:
    for name in values.BULK.values():
        header.ClearField(name)
    enum = proto.enum_names("DataType")[header.dtype]
    if enum not in BY_ENUM:
        raise InputError(f'tensor "{header.id}": {enum} is not the dtype of a tensor')
    dtype = BY_ENUM[enum]
    if array is None:
        return EncodedTensor(role, index, header, None, [])
    header.ClearField("path")
    header.ClearField("random_data")
    stored = _stored(header, dtype, array)
    if not stored.size:
        return EncodedTensor(role, index, header, None, [])
    inline: list[payloads.Payload] = [payloads.encode(stored, dtype)] if payloads.inlinable(dtype) else []
    return EncodedTensor(role, index, header, stored, inline)


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


def _without_tensors(case: EncodedCase) -> Any:
    rest = proto.Node()
    rest.CopyFrom(case.node)
    rest.ClearField("input")
    rest.ClearField("output")
    return rest


# ---- binary ----


def _pieces(case: EncodedCase) -> Iterator[tuple[bytes, payloads.Payload | None]]:
    """The message in order: bytes, then a payload that follows them."""
    head = proto.serialize(_without_tensors(case))
    yield head, None
    at = len(head)
    for tensor in case.tensors:
        body = proto.serialize(tensor.header)
        size = len(body) + sum(len(payload.head) + payload.size for payload in tensor.inline)
        head = wire.encode_tag(_FIELDS[tensor.role], wire.LEN) + wire.encode_varint(size) + body
        if tensor.inline and _is_aligned(tensor.inline[0], case.align_from):
            head = _padding(at + len(head) + len(tensor.inline[0].head)) + head
        if not tensor.inline:
            yield head, None
            at += len(head)
        for payload in tensor.inline:
            head += payload.head
            yield head, payload
            at += len(head) + payload.size
            head = b""


def _is_aligned(payload: payloads.Payload, align_from: int | None) -> bool:
    return align_from is not None and payload.name == "value_f" and payload.size >= align_from


def _padding(at: int) -> bytes:
    """A pad field that moves an offset to the next multiple of the alignment; empty where it is one."""
    short = -at % ALIGNMENT
    if not short:
        return b""
    least = len(_PAD_HEAD) + 1
    fill = (short - least) % ALIGNMENT
    return _PAD_HEAD + wire.encode_varint(fill) + bytes(fill)


def _message_size(case: EncodedCase) -> int:
    return sum(len(head) + (payload.size if payload else 0) for head, payload in _pieces(case))


def _write_binary(file: BinaryIO, case: EncodedCase) -> None:
    for head, payload in _pieces(case):
        file.write(head)
        if payload is not None:
            for chunk in payload.chunks():
                file.write(chunk)


# ---- text ----


def _write_text(file: BinaryIO, case: EncodedCase) -> None:
    rest = _without_tensors(case)
    file.write(proto.print_text(rest).encode())
    for tensor in case.tensors:
        file.write(f"{tensor.role} {{\n{proto.print_text(tensor.header, indent=2)}".encode())
        dtype = BY_ENUM.get(proto.enum_names("DataType")[tensor.header.dtype])
        for payload in payloads.exact_in_text(tensor.inline, dtype):
            for chunk in text.lines(payload, indent="  "):
                file.write(chunk)
        file.write(b"}\n")


# ---- external data ----


def _image_writer(stored: NDArray[Any]) -> Writer:
    return lambda file: file.write(stored.view(np.uint8).data)
