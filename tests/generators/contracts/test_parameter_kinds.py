"""Parameters that are C floats, truth values and texts: in specs, in case files, outside of their range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.contract_mistakes import check_contract
from generators.contracts.binding import bind
from generators.contracts.file_parameters import parameters_of
from generators.contracts.model import Contract, Parameter, Rule, TensorSpec
from generators.contracts.operator import Arrays, Operator
from generators.operator_registry import operators
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from schemas.casefiles.reading import read_case
from schemas.errors import InputError

TENTH = 0.10000000149011612  # 0.1 as a C float


class Fill(Operator):
    """Of the interface's message fill_param: value float, version int32, mode an enum, value_hex string."""

    contract = Contract(
        op="fill",
        category="pure_io",
        inputs=(TensorSpec("x", ("float",), "ARRAY", "N", values={"uniform": [-1, 1]}),),
        outputs=(TensorSpec("y", ("float",), "ARRAY", "N"),),
        parameters=(
            Parameter("value", kind="float", minimum=-1, maximum=2.5, default=0.5),
            Parameter("value_hex", kind="string", choices={"zero": "0X0", "one": "0X1"}, default="0X0"),
        ),
        rules=(Rule("value isn't 1", "value != 1", breaks=({"value": 1.0},)),),
    )

    def reference(self, inputs: Arrays, env: Any) -> Arrays:
        return {"y": np.full_like(inputs["x"], env["value"])}


class Unheld(Operator):
    """Of no message: parameters are in the file's metadata."""

    contract = Contract(
        op="unheld",
        category="pure_io",
        inputs=(TensorSpec("x", ("float",), "ARRAY", "N", values={"uniform": [-1, 1]}),),
        outputs=(TensorSpec("y", ("float",), "ARRAY", "N"),),
        parameters=(
            Parameter("flag", kind="bool"),
            Parameter("word", kind="string", default="a b"),
            Parameter("scales", kind="float", length=2),
            Parameter("flags", kind="bool", length=2),
        ),
    )

    def reference(self, inputs: Arrays, env: Any) -> Arrays:
        return {"y": inputs["x"] * np.float32(env["scales"][0])}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for operator in (Fill(), Unheld()):
        check_contract(operator)
        monkeypatch.setitem(operators(), operator.contract.op, operator)


def cases(folder: Path, op: str, entry: str) -> Any:
    path = folder / f"{op}.yaml"
    path.write_text(f"op: {op}\nsuites:\n  s:\n    - {{name: a, sizes: {{N: 3}}, {entry}}}\n", encoding="utf-8")
    return [*expand(load_spec(path))]


def read_back(folder: Path, case: Any) -> Any:
    """The parameters of a case's binary and text file."""
    generate(case, WriteOptions(folder, "both"))
    found = []
    for suffix in (".pb", ".prototxt"):
        with read_case(folder / f"{case.id}{suffix}") as file:
            found.append(dict(bind(file, operators()[case.op]).params))
    return found[0] if case.op == "unheld" else found  # a text file has no metadata


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("params: {value: 0.1}", {"value": TENTH, "value_hex": "0X0"}),
        ("params: {value: 2, value_hex: one}", {"value": 2.0, "value_hex": "0X1"}),
        ("params: {}", {"value": 0.5, "value_hex": "0X0"}),
        ("matrix: {params.value: [0.1]}", {"value": TENTH, "value_hex": "0X0"}),
    ],
)
def test_a_message_holds_them(tmp_path: Path, entry: str, expected: dict[str, Any]) -> None:
    (case,) = cases(tmp_path, "fill", entry)
    assert case.params == expected
    for params in read_back(tmp_path, case):
        assert params == expected
        assert {type(each) for each in params.values()} == {float, str}
    with read_case(tmp_path / f"{case.id}.pb") as file:
        assert file.node.fill_param.value == np.float32(expected["value"])
        assert file.node.fill_param.value_hex == expected["value_hex"]


def test_metadata_hold_them_where_there_is_no_message(tmp_path: Path) -> None:
    entry = "params: {flag: true, scales: [1, 0.1], flags: [false, 1]}"
    path = tmp_path / "unheld.yaml"
    path.write_text(f"op: unheld\nsuites:\n  s:\n    - {{name: a, sizes: {{N: 3}}, {entry}}}\n", encoding="utf-8")
    (case,) = expand(load_spec(path))
    generate(case, WriteOptions(tmp_path))
    with read_case(tmp_path / f"{case.id}.pb") as file:
        params = bind(file, operators()["unheld"]).params
        assert parameters_of(file, None) == params
    assert params == {"flag": True, "word": "a b", "scales": (1.0, TENTH), "flags": (False, True)}
    assert [type(each) for each in params["scales"]] == [float, float]
    assert params["flag"] is True


@pytest.mark.parametrize(
    ("op", "entry", "told"),
    [
        ("fill", "params: {value: one}", "params.value: unknown word 'one' for value: expected a number"),
        ("fill", "params: {value: true}", "params.value: value is True, expected one number"),
        ("fill", "params: {value: [1]}", "params.value: value is [1.0], expected one number"),
        ("fill", "params: {value: 1e39}", "params.value: value is inf, expected -1 to 2.5"),
        ("fill", "params: {value: 3}", "params.value: value is 3.0, expected -1 to 2.5"),
        ("fill", "params: {value_hex: two}", "params.value_hex: unknown word 'two' for value_hex"),
        ("fill", "params: {value_hex: 0}", "params.value_hex: value_hex is 0, expected a text"),
        ("unheld", "params: {flag: 2, scales: [1, 2], flags: [0, 1]}", "params.flag: flag is 2, expected true or"),
        ("unheld", "params: {flag: yes, scales: [1, 2], flags: [0, 1]}", "unknown word 'yes' for flag: expected true"),
        ("unheld", "params: {flag: 1, scales: [1], flags: [0, 1]}", "scales is (1.0,), expected 2 numbers"),
        ("unheld", "params: {flag: 1, scales: [1, a], flags: [0, 1]}", "scales is (1.0, 'a'), expected 2 numbers"),
    ],
)
def test_a_wrong_one_is_told(tmp_path: Path, op: str, entry: str, told: str) -> None:
    with pytest.raises(InputError) as raised:
        cases(tmp_path, op, entry)
    assert told in str(raised.value)


def test_each_range_is_broken_alone(tmp_path: Path) -> None:
    made = {
        case.name: (case.params["value"], case.params["value_hex"]) for case in cases(tmp_path, "fill", "derive: true")
    }
    broken = {name: params for name, params in made.items() if params != (0.5, "0X0")}
    assert broken == {
        "a_value_minus2.0": (-2.0, "0X0"),
        "a_value_3.5": (3.5, "0X0"),
        "a_value_hex_other": (0.5, "other"),
        "a_value_1.0": (1.0, "0X0"),
    }
