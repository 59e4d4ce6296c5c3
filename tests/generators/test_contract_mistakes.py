"""Contracts that are wrong are refused when their operator is registered, with file, line and what is allowed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from generators.contract_mistakes import check_contract
from generators.operator_registry import operators
from schemas.errors import InputError

SOURCE = """\
from pathlib import Path
from generators import Contract, Criterion, Operator, Parameter, Rule, TensorSpec
from generators.contracts.relations import Relation


class Halve(Operator):
    contract = Contract(
        op="halve_rows",
        category="composite",
        inputs=(TensorSpec("x", ("float",), "NHWC", "N H W C", values={"uniform": [-1, 1]}),),
        outputs=(
            TensorSpec("y", ("float",), "NHWC", "N H W C*2", criteria=(Criterion("diff1", 0.1),)),
        ),
        parameters=(Parameter("factor", kind="float", minimum=0.5, default=2.0),),
        rules=(Rule("N is even", "N % 2 == 0", breaks=({"N": 3},)),),
        zero_elements={"C": "BAD_PARAM"},
        relations=(Relation("batch", "batch", size="N", axes={"x": 0}),),
    )

    def reference(self, inputs, env):
        return {"y": inputs["x"]}
"""

MISTAKES = [
    ('criteria=(Criterion("diff1", 0.1),)', 'exists="N > 1"', 12, "exists of y: unknown 'N': expected one of factor"),
    (
        '("x", ("float",), "NHWC", "N H W C"',
        '("w", ("float",), "ARRAY", "C", exists="factor > 1"), TensorSpec("x", ("float",), "NHWC", "N H W C"',
        10,
        "x always exists, expected it before w, which does not",
    ),
    (
        '("x", ("float",), "NHWC", "N H W C", values={"uniform": [-1, 1]}),)',
        '("x", ("float",), "NHWC", "N H W C", same_dtype_as="w"),'
        ' TensorSpec("w", ("float",), "ARRAY", "C", exists="1"))',
        10,
        "same_dtype_as of x is 'w', expected a tensor that exists where it does",
    ),
    ("default=2.0", 'length="M"', 14, "length of factor: unknown 'M': expected one of "),
    ("default=2.0", 'length="N", computed_from="z"', 14, "computed_from of factor: unknown 'z': expected one of x"),
    (
        "default=2.0",
        'length="N", computed_from="x"',
        14,
        "computed_from of factor needs a method `computed_parameter` of the operator",
    ),
    (
        "default=2.0",
        'computed_from="x"',
        14,
        "computed_from of factor is 'x', but factor is no list: expected a length",
    ),
    (
        '"composite"',
        '"compose"',
        9,
        "category: unknown 'compose': expected one of pure_io, composite, atomic_add, index",
    ),
    ('"diff1"', '"dif1"', 12, "criteria of y: unknown 'dif1': expected one of diff1, diff3, diff2"),
    ('"BAD_PARAM"', '"BADPARAM"', 16, "zero_elements of C: unknown 'BADPARAM': expected one of SUCCESS,"),
    ('("x", ("float",), "NHWC"', '("x", ("float",), "CHW"', 10, "layout of x: unknown 'CHW': expected one of NCHW,"),
    ('("x", ("float",)', '("x", ("flout",)', 10, "dtypes of x: unknown 'flout': did you mean 'float'?"),
    ('"N H W C*2"', '"N H W D*2"', 12, "shape of y: unknown 'D': expected one of "),
    ('"N H W C*2"', '"N H W C*"', 12, "shape of y: 'C*' is not an expression"),
    ('"N % 2 == 0"', '"M % 2 == 0"', 15, "rule 'N is even': unknown 'M'"),
    ('{"N": 3}', '{"K": 3}', 15, "breaks of rule 'N is even': unknown 'K'"),
    ('zero_elements={"C"', 'zero_elements={"Z"', 16, "zero_elements: unknown 'Z'"),
    ('kind="float"', 'kind="real"', 14, "kind of factor: unknown 'real': expected one of int, float, bool, string"),
    ("default=2.0", "default=0.25", 14, "default: factor is 0.25, expected 0.5 or more"),
    ("default=2.0", "default=2", 14, "default: factor is 2, expected one number"),
    ("minimum=0.5", "minimum=0.5, maximum=0", 14, "factor has minimum 0.5 and maximum 0"),
    ('"uniform"', '"uniforn"', 10, "values of x: unknown 'uniforn'"),
    ('size="N"', 'size="B"', 17, "relation 'batch': unknown 'B'"),
    ('axes={"x": 0}', 'axes={"z": 0}', 17, "relation 'batch': unknown 'z': expected one of x, y"),
    ('TensorSpec("y"', 'TensorSpec("x"', 10, "2 tensors are called 'x'"),
    ('op="halve_rows"', 'op="Halve-Rows"', 8, "op is 'Halve-Rows', expected a name of a-z 0-9 _"),
    (
        "    def reference",
        '    cases = Path("none.yaml")\n\n    def reference',
        20,
        "cases is 'none.yaml', expected the path of a YAML file",
    ),
    (
        'op="halve_rows"',
        'op="nms"',
        13 + 1,
        "the contract of nms has a parameter 'factor', the interface's nms_param has",
    ),
    ('op="halve_rows"', 'op="halve_rows", message="halve"', 8, "message is 'halve', the interface has no such field"),
    (
        'kind="float", minimum=0.5, default=2.0',
        'kind="float", minimum=0.5, default=2.0), Parameter("nsample", kind="string"',
        14,
        "kind of nsample is 'string', the interface's field is 'int'",
    ),
]


def operator_of(folder: Path, source: str) -> Any:
    """An operator whose class stands in a file."""
    path = folder / "halve.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("halve", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Halve()


def test_right_contracts_are_taken(tmp_path: Path) -> None:
    check_contract(operator_of(tmp_path, SOURCE))
    for operator in operators().values():
        check_contract(operator)


@pytest.mark.parametrize(("right", "wrong", "line", "text"), MISTAKES)
def test_d10_a_mistake_is_told_with_its_place(tmp_path: Path, right: str, wrong: str, line: int, text: str) -> None:
    """FOUND D10: `dif1`, `compose`, `BADPARAM`, `CHW` and a missing YAML were found when a case was made, or never."""
    assert SOURCE.count(right) == 1
    source = SOURCE.replace(right, wrong)
    if "nsample" in wrong:  # of a message that has it
        source = source.replace("halve_rows", "ball_query").replace("factor", "max_radius")
    with pytest.raises(InputError) as raised:
        check_contract(operator_of(tmp_path, source))
    assert raised.value.place is not None
    assert (raised.value.place.file, raised.value.place.line) == (str(tmp_path / "halve.py"), line)
    assert text in raised.value.message


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        check_contract(operator_of(tmp_path, SOURCE.replace('"composite"', '"compose"').replace("diff1", "dif1")))
    assert "'compose'" in raised.value.message
    assert "'dif1'" in raised.value.message


def test_a_class_of_no_file_is_told_without_a_place() -> None:
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec(SOURCE.replace('"composite"', '"compose"'), names)
    with pytest.raises(InputError, match="unknown 'compose'"):
        check_contract(names["Halve"]())
