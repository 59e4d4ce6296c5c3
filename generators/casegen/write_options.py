"""How case files are written: one value that every step of `mluops gen` gets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemas.casefiles.enum_numbering import CURRENT
from schemas.casefiles.writing import BINARY, INLINE_LIMIT, SUFFIXES, TEXT

FORMATS: Final = {"pb": (BINARY,), "prototxt": (TEXT,), "both": SUFFIXES}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options that decide where and how cases are written; plain values, so that workers can be sent them.

    out is the folder. format is a key of FORMATS. Tensors of more than inline_limit bytes go to external data files.
    seed keys the random data of specs. jobs is the number of worker processes. dynamic_thresholds: tolerances come from
    the reference kernel's own error. enum_numbering is that of existing .pb files
    that are read. bounds: error bounds are stored with baselines.
    """

    out: Path
    format: str = "pb"
    inline_limit: int = INLINE_LIMIT
    seed: int = 1
    jobs: int = 1
    dynamic_thresholds: bool = False
    enum_numbering: str = CURRENT
    bounds: bool = True

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of the case files that are written."""
        return FORMATS[self.format]
