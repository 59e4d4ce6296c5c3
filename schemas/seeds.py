"""The seeds of random data: a case file holds one as a uint64."""

from __future__ import annotations

from typing import Final

SEEDS: Final = 2**64
"""How many seeds there are, from 0 on."""
