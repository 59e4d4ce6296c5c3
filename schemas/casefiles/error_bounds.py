"""Error bounds in a case file: inline in the metadata, or as external data beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import xxhash
from numpy.typing import NDArray

from schemas.atomic_files import Writer
from schemas.casefiles.external_data import find_external
from schemas.casefiles.reading import CaseFile
from schemas.errors import MluopsError, SourceLocation
from schemas.protos import messages as proto

_STORED: Final = np.dtype("<f4")
Bounds = Mapping[str, NDArray[Any]]


def store_bounds(node: Any, bounds: Bounds, path: Path, inline_limit: int) -> dict[Path, Writer]:
    """Put error bounds, by the output's id, into a node's metadata; return the external data to write beside path.

    A bound that is 0 everywhere is not stored: which outputs are copies is the contract's. The node must have metadata.
    """
    meta = proto.get_meta(node)
    assert meta is not None
    del meta.error_bounds[:]
    beside: dict[Path, Writer] = {}
    for number, (output, bound) in enumerate(bounds.items()):
        if not bound.any():
            continue
        image = np.ascontiguousarray(bound, _STORED)
        entry = meta.error_bounds.add(output=output)
        if image.nbytes <= inline_limit:
            entry.values = image.tobytes()
            continue
        digest = xxhash.xxh3_64_hexdigest(image.reshape(-1).view(np.uint8).data)
        entry.path = f"{path.stem[:150]}.bound{number}.{digest}.bin"
        beside[path.with_name(entry.path)] = _image_writer(image)
    return beside


def _image_writer(image: NDArray[Any]) -> Writer:
    return lambda file: file.write(image.reshape(-1).view(np.uint8).data)


def stored_bound(file: CaseFile, output: str, shape: tuple[int, ...]) -> NDArray[Any] | None:
    """The error bound that a case file stores for an output, float32; None where it stores none of this shape."""
    entries = file.meta.error_bounds if file.meta is not None else ()
    for entry in entries:
        if entry.output != output:
            continue
        size = math.prod(shape) * _STORED.itemsize
        if entry.HasField("values"):
            return np.frombuffer(entry.values, _STORED).reshape(shape) if len(entry.values) == size else None
        try:
            image = find_external(file.path.parent, entry.path, SourceLocation(str(file.path)))
            image.check_size(size)
            return image.image(size).view(_STORED).reshape(shape)
        except MluopsError:  # moved without its external data: the bound can be computed again
            return None
    return None
