"""The anchor of a case in a page: made of its id, so that a link to it holds in the report of the next run too."""

from __future__ import annotations

import re
from typing import Final

import xxhash

_OTHER: Final = re.compile(r"[^\w/.+-]+", re.ASCII)
_LONGEST: Final = 200  # characters


def anchor(case: str) -> str:
    """`case-` and the id; what no URL shows as it is becomes _, and a hash keeps such anchors apart."""
    text = _OTHER.sub("_", case)[:_LONGEST]
    if text == case:
        return f"case-{case}"
    return f"case-{text}~{xxhash.xxh3_64_hexdigest(case.encode('utf-8', 'backslashreplace'))[:8]}"
