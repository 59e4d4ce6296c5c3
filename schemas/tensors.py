"""One tensor of a case file: what it is, where its values lie, and its values as an array."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas import proto, values
from schemas.descriptor import Descriptor
from schemas.dtypes import BY_ENUM, DType
from schemas.errors import InputError, Place, located

ABSENT: Final = "NULL"  # an id that contains it stands for no tensor at all
LARGEST: Final = 2**63 - 1  # elements


@dataclass(frozen=True, slots=True, eq=False)
class TensorRecord:
    """One tensor of a case file as it stands there.

    header is its Tensor message without bulk values; strides count elements, None when dense. source names what the
    values come from, the first non-empty of value_h, value_f, value_i, value_l, value_ui, value_ul, path and
    random_data, or None.
    """

    id: str
    dtype: DType
    layout: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    header: Any
    source: str | None
    place: Place
    folder: Path
    bulk: values.Bulk | None = None

    @property
    def descriptor(self) -> Descriptor:
        """What the operator is told of this tensor."""
        return Descriptor(self.layout, self.dtype.name, self.shape, self.strides)

    @property
    def elements(self) -> int:
        """Number of elements, exact at any size; 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def span(self) -> int:
        """Number of elements that are stored: those of a strided tensor include the gaps."""
        return span(self.shape, self.strides)

    @property
    def absent(self) -> bool:
        """Whether this stands for a null descriptor and pointer."""
        return ABSENT in self.id

    @property
    def has_values(self) -> bool:
        """Whether the file carries values (random_data only tells how to draw some)."""
        return self.source not in (None, "random_data")

    @property
    def random(self) -> Any | None:
        """The RandomData message, None where there is none."""
        return self.header.random_data if self.header.HasField("random_data") else None

    @property
    def judged(self) -> bool:
        """Whether this output counts: threshold_use = 0 leaves it out."""
        return not (self.header.HasField("threshold_use") and self.header.threshold_use == 0)

    def value_count(self) -> int | None:
        """How many elements the stored values make up, by the file's own count; None without stored values."""
        if self.bulk is not None:
            with located(self.place):
                entries = self.bulk.count()
            per_element = values.part_dtype(self.dtype)[1]
            return entries // per_element if entries % per_element == 0 else entries
        if self.source == "path":
            return int(side_file(self.folder, self.header.path, self.place).stat().st_size // self.dtype.width)
        return None

    def stored(self) -> NDArray[Any]:
        """The stored values, flat and unchecked against the shape, in the dtype's storage, read-only.

        A packed value_f of float is a view of the file's map, a side file is mapped; complex_half gives pairs of half.
        InputError where there are no values or they can't be read as the dtype.
        """
        with located(self.place):
            if self.bulk is not None:
                part, _ = values.part_dtype(self.dtype)
                return values.decode(self.bulk, part, self.bulk.count())
            if self.source == "path":
                return self._side_values(None)
            drawn = ", they are to be drawn (random_data)" if self.source else ""
            raise InputError(f"no values are stored{drawn}")

    def array(self) -> NDArray[Any]:
        """The values in the tensor's shape and its dtype's storage, read-only; see stored.

        complex_half has one more axis, re and im. A strided tensor is a strided view of its span. InputError where the
        number of values and of elements differ.
        """
        with located(self.place):
            part, per_element = values.part_dtype(self.dtype)
            expected = self.span
            if self.source == "path":
                flat = self._side_values(expected)
            elif self.bulk is not None:
                entries = self.bulk.count()
                if entries != expected * per_element:
                    pairs = " (re and im apart)" if per_element == 2 else ""
                    raise InputError(
                        f"{self.bulk.name} holds {entries} values{pairs}, "
                        f"expected {expected * per_element} for shape {list(self.shape)}"
                    )
                flat = values.decode(self.bulk, part, entries)
            elif expected == 0:
                flat = np.empty(0, part.storage)
            else:
                flat = self.stored()
            return self._shaped(flat)

    def _shaped(self, flat: NDArray[Any]) -> NDArray[Any]:
        storage = self.dtype.storage
        tail: tuple[int, ...] = ()
        if storage is None and self.dtype.name in values.PARTS:
            tail = (2,)
        elif storage is not None and flat.dtype != storage:
            flat = flat.view(storage)
        if self.strides is None or not self.elements:
            try:
                shaped = flat.reshape(self.shape + tail)
            except ValueError as error:  # more axes than NumPy has, or no elements times too many
                raise InputError(f"shape {list(self.shape)} can't be held in memory: {error}") from None
        else:
            items = flat.reshape((-1, *tail))
            steps = tuple(stride * items.strides[0] for stride in self.strides)
            shaped = np.lib.stride_tricks.as_strided(
                items, self.shape + tail, steps + items.strides[1:], writeable=False
            )
        shaped.flags.writeable = False
        return shaped

    def _side_values(self, expected: int | None) -> NDArray[Any]:
        part, per_element = values.part_dtype(self.dtype)
        if part.storage is None:
            raise InputError(f"values of {self.dtype.name} can't be read, only its shape and type are known")
        path = side_file(self.folder, self.header.path, self.place)
        size, width = path.stat().st_size, part.storage.itemsize * per_element
        if (size != expected * width) if expected is not None else size % width:
            need = (
                f"{expected * width} for shape {list(self.shape)}" if expected is not None else f"a multiple of {width}"
            )
            raise InputError(f"side file {path} has {size} bytes, expected {need} of {self.dtype.name}")
        if size == 0:
            return np.empty(0, part.storage)
        mapped: NDArray[Any] = np.memmap(path, part.storage, "r").view(np.ndarray)
        return mapped


def span(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> int:
    """Number of elements a tensor covers in memory: 1 + sum((d-1)*s), its elements when dense, 0 when it has none."""
    if strides is None or 0 in shape:
        return math.prod(shape)
    return 1 + sum((dim - 1) * stride for dim, stride in zip(shape, strides, strict=True))


def side_file(folder: Path, name: str, place: Place) -> Path:
    """The side file that a tensor's path names; InputError where it is missing or leads outside the folder."""
    if PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive or PureWindowsPath(name).root:
        raise InputError(f"path {name!r} is absolute, expected one below the case file's folder", place)
    path = folder / name
    try:
        outside = ".." in PureWindowsPath(name).parts or not path.resolve().is_relative_to(folder.resolve())
        if outside:
            raise InputError(f"path {name!r} leads outside the case file's folder {folder}", place)
        if not path.is_file():
            found = "is no file" if path.exists() else "does not exist"
            raise InputError(f"side file {path} {found}", place)
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name, a name too long, a loop of links
        raise InputError(f"path {name!r} can't be opened: {error}", place) from None
    return path


def make_record(
    header: Any, bulks: Mapping[str, values.Bulk], role: str, index: int, file: str, folder: Path
) -> TensorRecord:
    """The record of a tensor header and the bulk fields found beside it; InputError where the header makes no sense."""
    name: str = header.id
    place = Place(file, key=f'{role}[{index}] "{name}"')
    dtype = BY_ENUM.get(proto.enum_names("DataType")[header.dtype])
    if dtype is None:
        raise InputError(f"dtype {proto.enum_names('DataType')[header.dtype]} is none a tensor can have", place)
    layout = proto.enum_names("TensorLayout")[header.layout].removeprefix("LAYOUT_")
    shape, steps = tuple(header.shape.dims), tuple(header.shape.dim_stride)
    if any(dim < 0 for dim in shape):
        raise InputError(f"shape {list(shape)} has a negative dim", place)
    if math.prod(shape) > LARGEST:
        raise InputError(f"shape {list(shape)} has {math.prod(shape)} elements, more than 2^63 - 1", place)
    strides = _strides(shape, steps, place) if steps else None
    source: str | None = next((bulk for bulk in values.BULK.values() if bulk in bulks), None)
    found = bulks[source] if source else None
    if source is None and header.path:
        source = "path"
    elif source is None and header.HasField("random_data"):
        source = "random_data"
    return TensorRecord(name, dtype, layout, shape, strides, header, source, place, folder, found)


def _strides(shape: tuple[int, ...], strides: tuple[int, ...], place: Place) -> tuple[int, ...] | None:
    if len(strides) != len(shape):
        raise InputError(f"{len(strides)} strides {list(strides)} for {len(shape)} dims {list(shape)}", place)
    if any(stride < 0 for stride in strides):
        raise InputError(f"dim_stride {list(strides)} has a negative stride", place)
    if span(shape, strides) > LARGEST:
        raise InputError(f"shape {list(shape)} with strides {list(strides)} spans more than 2^63 - 1 elements", place)
    dense = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return None if list(strides) == dense else strides
