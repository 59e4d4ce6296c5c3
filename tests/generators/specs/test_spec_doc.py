"""docs/spec.md: its examples load, expand to the cases it names, and no word of the grammar is missing."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from generators.specs.models import Dist, Entry, SpecFile
from tests.conftest import PROJECT

TEXT = (PROJECT / "docs" / "spec.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_expands_to_the_cases_it_names(tmp_path: Path, number: int) -> None:
    example = EXAMPLES[number]
    if example.startswith("- name"):
        example = f"op: psamask_forward\nsuites:\n  s:\n{re.sub('^(?!#)', '    ', example, flags=re.MULTILINE)}"
    np.save(tmp_path / "masks.npy", np.zeros((2, 5, 7, 12), np.float32))
    for other in EXAMPLES:
        if other.startswith("# _"):
            (tmp_path / other.split()[1]).write_text(other, encoding="utf-8")
    if example.startswith("# _"):
        return  # included by another example
    path = tmp_path / "example.yaml"
    path.write_text(example, encoding="utf-8")
    names = [case.name for case in expand(load_spec(path))]
    assert names
    told = re.search(r"^# cases: (.*)$", example, flags=re.MULTILINE)
    assert told is None or names == told[1].split(", ")


def test_the_examples_are_found() -> None:
    assert len(EXAMPLES) == TEXT.count("```yaml") >= 8


@pytest.mark.parametrize("word", sorted(SpecFile.model_fields | Entry.model_fields | Dist.model_fields))
def test_every_word_of_the_grammar_is_explained(word: str) -> None:
    assert re.search(rf"`{word}\b", TEXT)
