"""Definitions of operators: on the page, with examples that the reference kernel computes; wrong ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from generators import Arrays, Contract, Criterion, Env, InputError, Operator, Parameter, TensorSpec
from generators.operator_registry import operators
from mluops_cli.inspection.definitions import definition
from mluops_cli.inspection.operator_pages import operator_page
from tests.conftest import PROJECT

BUNDLED = sorted(path.stem for path in (PROJECT / "cases").glob("[!_]*.yaml"))
EXAMPLE = """\
y is a multiple of x.

```yaml
params: {factor: 3}
inputs:
  x: [[1, -2], [.nan, .inf]]    # two rows
  rows: [1, 0]
outputs:
  y: [[.nan, .inf],
      [3, -6]]                  # 3*1 and 3*(-2)
```
"""
ANOTHER = "\n```yaml\ninputs: {x: [[1]], rows: [0]}\noutputs: {y: [[4]]}\n```\n"


class Multiple(Operator):
    """y[n] = factor * x[rows[n]]."""

    contract = Contract(
        op="multiple",
        category="composite",
        inputs=(
            TensorSpec("x", ("float",), "ARRAY", "N C"),
            TensorSpec("rows", ("int32",), "ARRAY", "N"),
        ),
        outputs=(TensorSpec("y", ("float",), "ARRAY", "N C", criteria=(Criterion("diff1", 0.0),)),),
        parameters=(Parameter("factor", minimum=1, default=2, choices={"twice": 2, "thrice": 3}),),
    )

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        return {"y": env["factor"] * inputs["x"][inputs["rows"]].astype(float)}

    def check_values(self, inputs: Arrays, env: Env) -> None:
        if (inputs["rows"] < 0).any():
            raise InputError("rows below 0")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the definition of `multiple` lies."""
    (tmp_path / "multiple.yaml").write_text("op: multiple\nsuites: {}\n")
    monkeypatch.setattr(Multiple, "cases", tmp_path / "multiple.yaml")
    monkeypatch.setitem(operators(), "multiple", Multiple())
    return tmp_path / "multiple.md"


@pytest.mark.parametrize("op", BUNDLED)
def test_every_operator_has_a_definition_with_an_example_and_all_its_names(op: str) -> None:
    text, contract = definition(operators()[op]), operators()[op].contract
    formula, found, examples = text.partition("```yaml\n")
    assert found
    for name in contract.tensors:
        assert name in formula
        assert f"\n  {name}: [" in examples
    assert "0 .. " in formula or "<" in formula  # ranges of indices


def test_a_page_has_the_definition(written: Path) -> None:
    written.write_text(EXAMPLE)
    page = operator_page(Multiple())
    assert f"\n## Definition\n\n{EXAMPLE}\n## Rules\n" in page


def test_a_definition_may_begin_with_an_indented_formula(written: Path) -> None:
    written.write_text("\n    y[n] = x[n]\n\nText.\n\n")
    assert definition(Multiple()) == "    y[n] = x[n]\n\nText."
    assert "\n## Definition\n\n    y[n] = x[n]\n\nText.\n\n## Rules\n" in operator_page(Multiple())


def test_an_operator_without_a_definition_has_a_page(written: Path) -> None:
    assert definition(Multiple()) == ""
    assert "Definition" not in operator_page(Multiple())


@pytest.mark.parametrize(("right", "wrong", "message"), [
    ("[3, -6]", "[3, -5]", "10:11: outputs.y[1][1]: found -5.0, the reference kernel computes -6.0"),
    (".nan, .inf],\n", "1, .inf],\n", "9:8: outputs.y[0][0]: found 1.0, the reference kernel computes nan"),
    ("factor: 3", "factor: 2", "10:8: outputs.y[1][0]: found 3.0, the reference kernel computes 2.0"),
    ("factor: 3", "factor: trice", "4:18: params.factor: unknown word 'trice' for factor: did you mean 'thrice'?"),
    ("factor: 3", "factors: 3", "4:19: params.factors: multiple has no parameter 'factors': did you mean 'factor'?"),
    ("factor: 3", "factor: 7", "4:18: params.factor: factor is 7, "),
    ("  rows: [1, 0]\n", "", "6:3: inputs: rows is missing"),
    ("rows: [1, 0]", "rows: [1, zero]", "7:9: inputs.rows: expected numbers in nested lists of equal lengths"),
    ("[[1, -2], [", "[[1], [", "6:6: inputs.x: expected numbers in nested lists of equal lengths"),
    ("rows: [1, 0]", "rows: [1, 0.5]", "7:9: inputs.rows: expected numbers of dtype int32"),
    ("rows: [1, 0]", "rows: [1, .nan]", "7:9: inputs.rows: expected numbers of dtype int32"),
    ("rows: [1, 0]", "rows: [1, 0, 0]", "7:9: inputs.rows.shape: "),
    ("rows: [1, 0]", "rows: [1, 0]\n  rowx: [1]", "8:9: inputs.rowx: multiple has no input 'rowx'"),
    ("{factor: 3}", "3", "4:9: params: expected a mapping, a line per name"),
    ("rows: [1, 0]", "rows: [1, -1]", "6:3: inputs: rows below 0"),
    ("outputs:\n  y", "outputs:\n  z", "9:3: outputs: y is missing"),
    ("inputs:", "input:", "4:1: expected a mapping with inputs, params and outputs"),
    ("  y: [[", "  y: {[", "10:14: the mapping that starts in line 9 isn't closed"),
])  # fmt: skip
def test_a_wrong_example_is_refused_with_its_place(written: Path, right: str, wrong: str, message: str) -> None:
    assert EXAMPLE.count(right) == 1
    written.write_text(EXAMPLE.replace(right, wrong))
    with pytest.raises(InputError) as raised:
        definition(Multiple())
    assert str(raised.value).startswith(f"{written}:")
    assert message in str(raised.value)


def test_an_example_may_leave_out_a_list_that_is_computed_from_its_inputs(tmp_path: Path) -> None:
    text = (PROJECT / "cases" / "indice_convolution_forward.md").read_text(encoding="utf-8")
    assert text.count("indice_num: [2, 1], ") == 1
    operator = operators()["indice_convolution_forward"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(operator), "cases", tmp_path / "indice_convolution_forward.yaml")
        (tmp_path / "indice_convolution_forward.md").write_text(text.replace("indice_num: [2, 1], ", ""))
        assert "num_active_out: 2" in definition(operator)


@pytest.mark.parametrize("fence", ["```yaml  ", "``` yaml", "```yml"])
def test_an_example_is_known_by_its_language_however_it_is_written(written: Path, fence: str) -> None:
    """Such a block was shown and not checked."""
    written.write_text(EXAMPLE.replace("```yaml", fence).replace("[3, -6]", "[3, -5]"))
    with pytest.raises(InputError, match=r"found -5\.0, the reference kernel computes -6\.0"):
        definition(Multiple())


def test_every_example_is_checked(written: Path) -> None:
    written.write_text(EXAMPLE + ANOTHER)
    with pytest.raises(InputError, match=r":15:16: outputs.y\[0\]\[0\]: found 4.0, the reference kernel computes 2.0"):
        definition(Multiple())
