"""One tensor of a case file: its description, the place of its values, and its values as an array."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas.casefiles.external_data import ExternalFile, find_external
from schemas.dtypes import BY_ENUM, DType
from schemas.errors import InputError, SourceLocation, located
from schemas.protos import messages as proto
from schemas.suggest import counted
from schemas.tensor_descriptor import Descriptor, span, sparse_strides
from schemas.wire import value_fields as values

ABSENT: Final = "NULL"  # a tensor whose id contains it has a null descriptor and a null pointer
LARGEST: Final = 2**63 - 1  # elements
MOST_DIMS: Final = 30  # of a tensor: the array of one may have two more (NumPy 1 has 32)


@dataclass(frozen=True, slots=True, eq=False)
class TensorRecord:
    """One tensor as its case file describes it.

    header is its Tensor message without bulk values; strides count elements, None when dense. source names what the
    values come from, the first non-empty of value_h, value_f, value_i, value_l, value_ui, value_ul, path and
    random_data, or None; bulks holds all value fields that are there.
    """

    id: str
    dtype: DType
    layout: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    header: Any
    source: str | None
    place: SourceLocation
    folder: Path
    bulks: Mapping[str, values.Bulk] = field(default_factory=dict)

    @property
    def bulk(self) -> values.Bulk | None:
        """The place of the values in the case file, None where they are somewhere else."""
        return self.bulks.get(self.source or "")

    @property
    def sources(self) -> tuple[str, ...]:
        """All sources of values that the file has, the one that counts first."""
        found = [name for name in values.BULK.values() if name in self.bulks]
        found += ["path"] if self.header.path else []
        return (*found, *(["random_data"] if self.random is not None else []))

    @property
    def descriptor(self) -> Descriptor:
        """The descriptor that the operator gets of this tensor."""
        return Descriptor(self.layout, self.dtype.name, self.shape, self.strides)

    @property
    def elements(self) -> int:
        """Number of elements, exact at any size; 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def span(self) -> int:
        """Number of stored elements: those of a strided tensor include the gaps."""
        return span(self.shape, self.strides)

    @property
    def absent(self) -> bool:
        """Whether this is a null descriptor and a null pointer."""
        return ABSENT in self.id

    @property
    def has_values(self) -> bool:
        """Whether the file carries values (random_data says only how to draw some)."""
        return self.source not in (None, "random_data")

    @property
    def random(self) -> Any | None:
        """The RandomData message, None where there is none."""
        return self.header.random_data if self.header.HasField("random_data") else None

    @property
    def judged(self) -> bool:
        """Whether this output is judged: threshold_use = 0 leaves it out."""
        return not (self.header.HasField("threshold_use") and self.header.threshold_use == 0)

    def value_count(self) -> int | None:
        """Number of elements of the stored values, by the file's own count; None without stored values.

        Those of a compressed file are counted until they are too many.
        """
        with located(self.place):
            if self.bulk is not None:
                entries = self.bulk.count()
                per_element = values.part_dtype(self.dtype)[1]
                return entries // per_element if entries % per_element == 0 else entries
            if self.source == "path":
                file = find_external(self.folder, self.header.path, self.place)
                return int(file.size(math.ceil(self.span * self.dtype.width)) // self.dtype.width)
        return None

    def check_count(self) -> None:
        """InputError where values are stored, but not as many as the tensor has elements."""
        with located(self.place):
            if self.bulk is not None:
                per_element = values.part_dtype(self.dtype)[1]
                entries, expected = self.bulk.count(), self.span * per_element
                if entries != expected:
                    halves = " (high and low halves apart)" if self.dtype.name == "int31" else " (re and im apart)"
                    found = f"{self.bulk.name} holds {counted(entries, 'value')}{halves if per_element == 2 else ''}"
                    raise InputError(f"{found}, expected {expected} for {self._shape_text()}")
            elif self.source == "path":
                self._external_file(self.span)

    def _shape_text(self) -> str:
        strides = "" if self.strides is None else f" with strides {list(self.strides)}"
        return f"shape {list(self.shape)}{strides}"

    def stored(self) -> NDArray[Any]:
        """The stored values, flat, not checked against the shape, in the storage of value_fields.part_dtype, read-only.

        A packed value_f of float is a view of the mapped file, external data are mapped. InputError where there are no
        values or they can't be read as the dtype.
        """
        with located(self.place):
            if self.bulk is not None:
                part, _ = values.part_dtype(self.dtype)
                return values.decode(self.bulk, part, self.bulk.count())
            if self.source == "path":
                return self._external_values(None)
            raise self._nothing_stored()

    def blocks(self) -> Iterator[NDArray[Any]]:
        """The values of stored, piece by piece in constant memory, without a cut-off last element of external data."""
        with located(self.place):
            part, _ = values.part_dtype(self.dtype)
            if self.bulk is not None:
                yield from values.decoded_blocks(self.bulk, part)
            elif self.source == "path":
                file = find_external(self.folder, self.header.path, self.place)
                storage = self._known_storage()
                for block in file.blocks():
                    yield block[: block.size // storage.itemsize * storage.itemsize].view(storage)
            else:
                raise self._nothing_stored()

    def _nothing_stored(self) -> InputError:
        drawn = ", they are to be drawn (random_data)" if self.source else ""
        return InputError(f"no values are stored{drawn}")

    def array(self) -> NDArray[Any]:
        """The values in the tensor's shape and its dtype's storage, read-only; see stored.

        complex_half has one more axis at the end, re and im, int31 one at the front, high and low halves. A strided
        tensor is a strided view of its span. InputError where the number of values and of elements differ.
        """
        with located(self.place):
            part, _ = values.part_dtype(self.dtype)
            expected = self.span
            if self.source == "path":
                flat = self._external_values(expected)
            elif self.bulk is not None:
                self.check_count()
                flat = values.decode(self.bulk, part, self.bulk.count())
            elif expected == 0:
                flat = np.empty(0, part.storage)
            else:
                raise self._nothing_stored()
            try:
                shaped = values.shaped(flat, self.dtype, self.shape, self.strides)
            except ValueError as error:  # more axes than NumPy has, or a size beyond its limit beside a 0
                raise InputError(f"shape {list(self.shape)} can't be held in memory: {error}") from None
            shaped.flags.writeable = False
            return shaped

    def _external_values(self, expected: int | None) -> NDArray[Any]:
        file, size = self._external_file(expected)
        return file.image(size).view(self._known_storage())

    def _external_file(self, expected: int | None) -> tuple[ExternalFile, int]:
        """The external data and their bytes; InputError where they aren't those of so many elements, None: any."""
        storage = self._known_storage()
        file = find_external(self.folder, self.header.path, self.place)
        width = storage.itemsize * values.part_dtype(self.dtype)[1]
        wanted = (self.span if expected is None else expected) * width
        size = file.size(wanted)
        if (size != wanted) if expected is not None else size % width:
            need = f"{wanted} for {self._shape_text()}" if expected is not None else f"a multiple of {width}"
            more = " or more" if file.compressed and size > wanted else ""
            raise InputError(
                f"external data {file.path} has {counted(size, 'byte')}{more}, expected {need} of {self.dtype.name}"
            )
        return file, size

    def _known_storage(self) -> np.dtype[Any]:
        storage = values.part_dtype(self.dtype)[0].storage
        if storage is None:
            raise InputError(f"values of {self.dtype.name} can't be read, only its shape and type are known")
        return storage


def make_record(
    header: Any, bulks: Mapping[str, values.Bulk], role: str, index: int, file: str, folder: Path
) -> TensorRecord:
    """The record of a tensor header and its value fields; InputError where the header contradicts itself."""
    name: str = header.id
    place = SourceLocation(file, key=f'{role}[{index}] "{name}"')
    dtype = BY_ENUM.get(proto.enum_names("DataType")[header.dtype])
    if dtype is None:
        raise InputError(f"{proto.enum_names('DataType')[header.dtype]} is not the dtype of a tensor", place)
    layout = proto.enum_names("TensorLayout")[header.layout].removeprefix("LAYOUT_")
    shape, steps = tuple(header.shape.dims), tuple(header.shape.dim_stride)
    if any(dim < 0 for dim in shape):
        raise InputError(f"shape {list(shape)} has a negative dim", place)
    if math.prod(shape) > LARGEST:
        raise InputError(f"shape {list(shape)} has {math.prod(shape)} elements, more than 2^63 - 1", place)
    vast = 0 in shape and math.prod(max(dim, 1) for dim in shape) > LARGEST // 16  # NumPy multiplies the other sizes
    if len(shape) > MOST_DIMS or vast:
        raise InputError(f"shape {list(shape)} can't be held in memory", place)
    strides = _strides(shape, steps, place) if steps else None
    source: str | None = next((bulk for bulk in values.BULK.values() if bulk in bulks), None)
    if source is None and header.path:
        source = "path"
    elif source is None and header.HasField("random_data"):
        source = "random_data"
    return TensorRecord(name, dtype, layout, shape, strides, header, source, place, folder, dict(bulks))


def _strides(shape: tuple[int, ...], strides: tuple[int, ...], place: SourceLocation) -> tuple[int, ...] | None:
    try:
        sparse = sparse_strides(shape, strides)
    except ValueError as error:
        raise InputError(str(error), place) from None
    if any(stride < 0 for stride in strides):
        raise InputError(f"dim_stride {list(strides)} has a negative stride", place)
    if span(shape, strides) > LARGEST:
        raise InputError(f"shape {list(shape)} with strides {list(strides)} spans more than 2^63 - 1 elements", place)
    return sparse
