"""The hash of a case, by which --resume knows a changed case file, and of a selection of cases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import xxhash

from generators.casegen.manifest import feed_files

if TYPE_CHECKING:
    from mluops_cli.core.discovery import PlannedCase

_ENCODER: Final = json.JSONEncoder(sort_keys=True)


def hash_case(files: Sequence[str], manifest_meta: Mapping[str, Any] | None = None) -> str:
    """Return the xxh3 hash (hexadecimal) of a case file, its external data, and what the manifest says of it.

    files are the case file and its external data, in the order of the tensors. Files are read with a few GB/s. The
    hash is empty where one can't be read.
    """
    found = xxhash.xxh3_64(_ENCODER.encode(manifest_meta).encode())
    try:
        feed_files(found, files)
    except OSError:
        return ""
    return found.hexdigest()


def describe_selection(cases: Iterable[PlannedCase]) -> dict[str, Any]:
    """Return the number of cases and the hash of their ids and files, in any order: every shard of a run has the same.

    All files are read.
    """
    hashes = sorted((case.id, hash_case(case.hashed_files, case.manifest_meta)) for case in cases)
    return {"cases": len(hashes), "hash": xxhash.xxh3_64_hexdigest(json.dumps(hashes).encode())}
