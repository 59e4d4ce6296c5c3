from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from generators.operator_registry import operator_named
from generators.specs.case_builder import CaseBuilder
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from mluops_cli.search.fuzz.drawing import SUITE, draw_call
from mluops_cli.search.fuzz.factors import domain_of
from mluops_cli.search.spec_saving import SavedEntry, SpecSaver
from schemas.errors import InputError


@pytest.mark.parametrize("op", ["get_indice_pairs", "masked_im2col_forward", "roi_crop_backward"])
def test_a_saved_entry_is_the_same_case(tmp_path: Path, op: str) -> None:
    calls = [draw_call(domain_of(op), 1, number, 1 << 20) for number in range(60)]
    entries = [call.plain().entry if number % 2 else call.entry for number, call in enumerate(calls) if call]
    builder = CaseBuilder(operator_named(op).contract, Path(), 1)
    legal = []
    for entry in entries:
        try:
            legal.append((entry, builder.case(entry, SUITE, entry["name"], "")))
        except Exception:  # values that the dtype can't hold
            continue
    path = tmp_path / "found.yaml"
    SpecSaver(path, [op]).save([SavedEntry(op, SUITE, entry, ("why: [it] failed\nhere",)) for entry, _ in legal])
    read = list(expand(load_spec(path)))
    assert len(read) > 40
    assert [replace(case, place="") for case in read] == [case for _, case in legal]


def test_several_operators_make_a_folder_of_specs(tmp_path: Path) -> None:
    saver = SpecSaver(tmp_path / "found", ["a", "b"])
    saver.save([SavedEntry("b", "fuzz", {"name": "x"})])
    assert [path.name for path in (tmp_path / "found").iterdir()] == ["b.yaml"]
    with pytest.raises(InputError, match="2 operators need a folder"):
        SpecSaver(tmp_path / "found.yaml", ["a", "b"])
    with pytest.raises(InputError, match="this is a folder"):
        SpecSaver(tmp_path, ["a"])


def test_specs_of_others_are_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("op: a\n")
    with pytest.raises(InputError, match="not made by fuzz"):
        SpecSaver(path, ["a"])
