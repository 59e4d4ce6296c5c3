"""The hash of a case: what --resume knows a changed case file by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import xxhash

_BLOCK: Final = 1 << 17  # bytes read at once; more gain nothing
_ENCODER: Final = json.JSONEncoder(sort_keys=True)


def hash_case(files: Sequence[str], manifest_meta: Mapping[str, Any] | None = None) -> str:
    """Return the xxh3 hash (hexadecimal) of a case file, its external data, and what the manifest says of it.

    files are the case file and its external data, in the order of the tensors. Files are read with a few GB/s. The
    hash is empty where one can't be read.
    """
    found = xxhash.xxh3_64(_ENCODER.encode(manifest_meta).encode())
    try:
        for path in files:
            with open(path, "rb", buffering=0) as file:
                while block := file.read(_BLOCK):
                    found.update(block)
            found.update(b"\0")  # bytes that move from one file to the next are a change
    except OSError:
        return ""
    return found.hexdigest()
