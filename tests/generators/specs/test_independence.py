"""D1: a case depends on its own entry, the seed and the version alone, not on what is expanded before or beside it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from generators.contracts.case import Case
from generators.operator_registry import operators
from generators.specs.expansion import expand
from generators.specs.loader import Spec, load_spec, spec_files

OPS = sorted(operators())


def spec_of(op: str) -> Spec:
    (path,) = spec_files(op)
    return load_spec(path)


def by_id(cases: Sequence[Case]) -> dict[str, Case]:
    found = {case.id: case for case in cases}
    assert len(found) == len(cases)
    return found


@pytest.mark.parametrize("op", OPS)
def test_d1_every_bundled_case_is_the_same_alone_by_suite_and_shuffled(op: str) -> None:
    spec = spec_of(op)
    alone = by_id([
        case
        for suite, entries in spec.suites.items()
        for entry in entries
        for case in expand(replace(spec, suites={suite: [entry]}))
    ])  # fmt: skip
    by_suite = by_id([case for suite in spec.suites for case in expand(spec, {suite})])
    assert by_suite == alone
    rng = random.Random(7)
    for _ in range(3):
        suites = rng.sample(sorted(spec.suites), len(spec.suites))
        shuffled = {suite: rng.sample(spec.suites[suite], len(spec.suites[suite])) for suite in suites}
        assert by_id(list(expand(replace(spec, suites=shuffled)))) == alone


def test_d1_defaults_follow_the_sizes_of_their_own_entry(tmp_path: Path) -> None:
    """The default range of the indices is that of each entry's image: [-2, H + 1] and [-2, W + 1]."""
    path = tmp_path / "a.yaml"
    params = "params: {kernel_h: 3, kernel_w: 3, pad_h: 1, pad_w: 1}"
    path.write_text(
        "op: masked_im2col_forward\nsuites:\n  s:\n"
        + "".join(
            f"    - {{name: {name}, sizes: {{C: 2, H: {size}, W: {size + 1}, M: 5}}, {params}}}\n"
            for name, size in (("small", 4), ("large", 400))
        )
    )
    found = {
        case.name: [plan.values and plan.values.args for plan in case.inputs[1:]] for case in expand(load_spec(path))
    }
    assert found == {"small": [(-2, 5), (-2, 6)], "large": [(-2, 401), (-2, 402)]}
