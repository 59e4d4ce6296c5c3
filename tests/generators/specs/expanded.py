"""Entries of a spec, expanded into cases or refused: for the tests of specs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from generators.contracts.case import Case
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from schemas.errors import InputError

SMALL = "sizes: {N: 2, H: 5, W: 7}, params: {psa_type: collect, h_mask: 3, w_mask: 4}"


def cases(folder: Path, entries: str, op: str = "psamask_forward", head: str = "", **options: Any) -> list[Case]:
    """The cases of entries in suite s; the first entry is in line 4, or further down below a head."""
    path = folder / "a.yaml"
    path.write_text(f"op: {op}\n{head}suites:\n  s:\n{entries}\n", encoding="utf-8")
    return list(expand(load_spec(path), **options))


def refusal(folder: Path, entries: str, op: str = "psamask_forward", head: str = "") -> list[str]:
    with pytest.raises(InputError) as caught:
        cases(folder, entries, op, head)
    return str(caught.value).replace(f"{folder}{os.sep}", "").splitlines()


def names(folder: Path, text: str) -> list[str]:
    return [case.name for case in cases(folder, f"    - {{name: a, {SMALL}, {text}}}")]
