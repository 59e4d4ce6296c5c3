"""docs/operators/*.md: fresh, one per operator, and true to the contract."""

from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

from generators.contracts.model import Contract, Env, Parameter, Rule, TensorSpec
from generators.contracts.operator import Array, Arrays, Operator
from generators.contracts.relations import Relation
from generators.operator_registry import operators
from mluops_cli.inspection.operator_pages import operator_page
from schemas.criteria import Criterion
from tests.conftest import PROJECT

FOLDER = PROJECT / "docs" / "operators"
BUNDLED = sorted(path.stem for path in (PROJECT / "cases").glob("[!_]*.yaml"))  # _*.yaml are included by others
_CRITERIA = (Criterion("diff1", 3e-3, "by hand"),)


@pytest.mark.checkout
@pytest.mark.parametrize("op", BUNDLED)
def test_a_page_is_fresh(op: str) -> None:
    assert (FOLDER / f"{op}.md").read_text(encoding="utf-8") == operator_page(operators()[op]), "run: make docs"


@pytest.mark.checkout
def test_every_operator_has_a_page_and_no_page_is_left_over() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.md")) == BUNDLED


class Halve(Operator):
    """y is half of x."""

    contract = Contract(
        op="halve",
        category="composite",
        inputs=(TensorSpec("x", ("half", "float"), "NHWC", "N h+1", values={"integers": [0, "N - 1"]}, finite=True),),
        outputs=(TensorSpec("y", ("half",), "ARRAY", "M", same_dtype_as="x", criteria=_CRITERIA, fill=-1),),
        parameters=(
            Parameter("h", minimum=1, maximum=9, default="N", text="height"),
            Parameter("mode", choices={"up": 0, "down": 4}, statuses=()),
            Parameter("pads", minimum=0, length=2),
        ),
        rules=(Rule("h is even", "h % 2 == 0", ("BAD_PARAM", "NOT_SUPPORTED")),),
        zero_elements={"N": "SUCCESS"},
        workspace=True,
    )

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        return {"y": inputs["x"] / 2}

    def draw(self, tensor: str, recipe: str, env: Env, rng: np.random.Generator, arrays: Arrays) -> Array | None:
        """The recipe `ones`."""
        return None

    def theory_ops(self, env: Env, inputs: Arrays, outputs: Arrays) -> float:
        """One per element."""
        return 1.0


def test_a_page_says_what_the_contract_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tmp_path / "halve.yaml"
    entry = "sizes: {N: 2, M: 1}, params: {mode: up, pads: [0, 0]}"
    spec.write_text(
        f"op: halve\nsuites:\n  few:\n    - {{name: a, {entry}}}\n"
        f"    - {{name: b, {entry}, null_handle: true, expect: BAD_PARAM}}\n"
    )
    monkeypatch.setattr(Halve, "cases", spec)
    monkeypatch.setitem(operators(), "halve", Halve())
    lines = operator_page(Halve()).splitlines()
    for line in (
        "# halve",
        "y is half of x.",
        "Category composite.",
        "| `x` | input | half, float | NHWC | `[N, h+1]` | `integers: [0, N - 1]` |",
        "| `y` | output | as `x` | ARRAY | `[M]` |  |",
        "Sizes (`sizes` in a spec) `N`, `M`. Not given by any input: `M`. No NaN and Inf in `x`.",
        "The recipe `ones`.",
        "| `h` | 1 to 9 | `N` | BAD_PARAM (design) | height |",
        "| `mode` | 0 (the word `up`), 4 (the word `down`) |  | refused in a spec |  |",
        "| `pads` | 2 integers, each 0 or more |  | BAD_PARAM (design) |  |",
        "| h is even | `h % 2 == 0` | BAD_PARAM or NOT_SUPPORTED | design |",
        "| N = 0 | | SUCCESS | design |",
        "Workspace: a null one: BAD_PARAM (design); one too short: BAD_PARAM (ours).",
        "| `y` | diff1 <= 0.003 (by hand) | elementwise | set to -1 before the call |",
        "Theoretical work of one call. Operations: One per element. Bytes: all inputs and outputs, once each.",
        "| few | 2 | 1 |",
    ):
        assert line in lines


def test_a_page_says_how_a_count_is_returned_and_what_an_unknown_size_is() -> None:
    page = operator_page(operators()["get_indice_pairs"])
    assert (
        "Given by the values of the inputs: `A`. In the rules such a size is -1 where a spec doesn't give it." in page
    )
    assert (
        "| `num_act_out` | dim 0 of `out_indices`, which the data decide; no argument: an implementation returns "
        in page
    )
    assert "such a size" not in operator_page(operators()["psamask_forward"])


def test_every_kind_of_relation_has_words() -> None:
    kinds = get_args(get_type_hints(Relation)["kind"])
    declared = {each.kind for operator in operators().values() for each in operator.contract.relations}
    assert declared == set(kinds)
    for op in BUNDLED:
        page, contract = operator_page(operators()[op]), operators()[op].contract
        for relation in contract.relations:
            (row,) = [line for line in page.splitlines() if line.startswith(f"| {relation.name} | ")]
            called, expected = row.strip("| ").split(" | ")[1:]
            assert called.strip()
            assert expected.strip()
            for name in (*relation.axes, *relation.columns, *relation.constants, *filter(None, [relation.linear])):
                assert f"`{name}`" in row or contract.tensors[name].compare == "rulebook"


@pytest.mark.parametrize(("op", "relation", "called", "expected"), [
    ("psamask_forward", "batch", "one item of `N` alone, with its part of `x` (up to 4 are tried)",
     "`y` as the case has it for that item"),
    ("psamask_forward", "adjoint", "`psamask_backward` with a random z in place of `y`",
     "back(z) such that sum `y` z = sum `x` back(z)"),
    ("roi_crop_backward", "permutation of rois",
     "`grad_output`, `grid` with the items of `N` in another order, each within its group (there are `B`)",
     "`grad_input` as in the case"),
    ("voxel_pooling_forward", "outside", "`-1` everywhere in `geom_xyz`", "`output_features` +0, `pos_memo` -1"),
    ("voxel_pooling_forward", "scaling", "16 times `input_features`",
     "`output_features` 16 times that of the case, `pos_memo` as in the case"),
    ("get_indice_pairs", "permutation of images", "other numbers in column 0 of `indices`",
     "the same pairs of sites, with these numbers"),
])  # fmt: skip
def test_relations_in_words(op: str, relation: str, called: str, expected: str) -> None:
    assert f"| {relation} | {called} | {expected} |" in operator_page(operators()[op]).splitlines()


def test_an_operator_without_relations_has_no_table_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "halve.yaml").write_text("op: halve\nsuites: {}\n")
    monkeypatch.setattr(Halve, "cases", tmp_path / "halve.yaml")
    monkeypatch.setitem(operators(), "halve", Halve())
    assert "relation" not in operator_page(Halve())
