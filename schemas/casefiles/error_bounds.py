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

    Nothing is stored where all bounds are 0 everywhere: which outputs are copies is the contract's. Beside a bound that
    is stored, one that is 0 everywhere has an entry without values. The node must have metadata.
    """
    meta = proto.get_meta(node)
    assert meta is not None
    del meta.error_bounds[:]
    beside: dict[Path, Writer] = {}
    nonzero = {output for output, bound in bounds.items() if bound.any()}
    for number, (output, bound) in enumerate(bounds.items() if nonzero else ()):
        entry = meta.error_bounds.add(output=output)
        if output not in nonzero:
            entry.values = b""
            continue
        image = np.ascontiguousarray(bound, _STORED)
        if image.nbytes <= inline_limit:
            entry.values = image.tobytes()
            continue
        digest = xxhash.xxh3_64_hexdigest(image.reshape(-1).view(np.uint8).data)
        entry.path = f"{path.stem[:150]}.bound{number}.{digest}.bin"
        beside[path.with_name(entry.path)] = _image_writer(image)
    return beside


def _image_writer(image: NDArray[Any]) -> Writer:
    return lambda file: file.write(image.reshape(-1).view(np.uint8).data)


def stored_bounds(file: CaseFile, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """The error bounds that a case file stores, float32, by the output's id; shapes are those of the outputs.

    An array of shape () holds for every element. Empty where the file stores none, and where one of them can't be read:
    they can be computed again.
    """
    entries = file.meta.error_bounds if file.meta is not None else ()
    try:
        return {entry.output: _stored(file, entry, shapes[entry.output]) for entry in entries}
    except (MluopsError, KeyError, ValueError):  # moved without its external data, or changed by others
        return {}


def _stored(file: CaseFile, entry: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    if entry.HasField("values"):
        values = np.frombuffer(entry.values or bytes(_STORED.itemsize), _STORED)
        return values.reshape(shape if values.size == math.prod(shape) else ())
    size = math.prod(shape) * _STORED.itemsize
    image = find_external(file.path.parent, entry.path, SourceLocation(str(file.path)))
    image.check_size(size)
    return image.image(size).view(_STORED).reshape(shape)
