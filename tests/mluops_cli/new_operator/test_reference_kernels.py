"""Reference kernels that raise, or return what the contract doesn't say: one message, with the author's line."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.contracts.operator import Arrays
from generators.contracts.outputs import fitted
from generators.operator_registry import operators
from mluops_cli.implementations.plugins import load_plugins
from schemas.errors import InputError, MluopsError
from tests.mluops_cli.conftest import Cli

SOURCE = """import numpy as np
from generators import Contract, Criterion, Operator, TensorSpec


class Halves(Operator):
    cases = __import__("pathlib").Path(__file__).with_name("halves.yaml")
    contract = Contract(
        op="halves",
        category="composite",
        inputs=(TensorSpec("x", ("float",), "ARRAY", "N", values={"uniform": [-1, 1]}),),
        outputs=(TensorSpec("y", ("DTYPE",), "ARRAY", "N", criteria=(Criterion("diff1", 0.0),)),),
    )

    def reference(self, inputs, env):
        y = inputs["x"] * 4
        return BODY


OPERATORS = (Halves(),)
"""
CALLED, RETURNED = (SOURCE[: SOURCE.index(text)].count("\n") + 1 for text in ("BODY", "    def reference"))
SUITES = """op: halves
suites:
  demo:
    - {name: two, sizes: {N: 2}}
    - {name: three, sizes: {N: 3}}
"""
EXAMPLE = """```yaml
inputs: {x: [1]}
outputs: {y: [4]}
```
"""
OF_FLOAT = "expected an array of float, or of a dtype of the same kind"
WRONG = (  # what the kernel returns, the line that is named, the message
    ("{'y': unknown}", CALLED, "NameError: name 'unknown' is not defined"),
    ("{'y': np.reshape(y, (7, 7, 7))}", CALLED, "ValueError: cannot reshape"),  # raised by code of others
    ("y", RETURNED, "returns a value of type ndarray, expected output name -> array"),
    ("{'z': y}", RETURNED, "returns ['z'], its contract says ['y']"),
    ("{'y': list(y)}", RETURNED, f"returns y of type list, {OF_FLOAT}"),
    ("{'y': y.astype(np.int32)}", RETURNED, f"returns y of dtype int32, {OF_FLOAT}"),
    ("{'y': y > 0}", RETURNED, f"returns y of dtype bool, {OF_FLOAT}"),
    ("{'y': y * 1j}", RETURNED, f"returns y of dtype complex64, {OF_FLOAT}"),
)


def written(folder: Path, returned: str, dtype: str = "float") -> Path:
    """A plug-in file whose reference kernel returns this, with its suites and its definition."""
    module = folder / "halves.py"
    module.write_text(SOURCE.replace("BODY", returned).replace("DTYPE", dtype), encoding="utf-8")
    module.with_suffix(".yaml").write_text(SUITES, encoding="utf-8")
    module.with_suffix(".md").write_text(EXAMPLE, encoding="utf-8")
    return module


def baseline(module: Path) -> Arrays:
    load_plugins([module])
    return operators()["halves"].baseline({"x": np.ones(3, np.float32)}, {"x": (3,), "y": (3,)}, {})


@pytest.mark.parametrize(("returned", "line", "text"), WRONG)
@pytest.mark.usefixtures("own_plugins")
def test_a_wrong_kernel_is_one_message_with_its_line(tmp_path: Path, returned: str, line: int, text: str) -> None:
    module = written(tmp_path, returned)
    with pytest.raises(MluopsError) as caught:
        baseline(module)
    assert re.match(
        rf"{re.escape(str(module))}:{line}: reference kernel of halves:? {re.escape(text)}", str(caught.value)
    )
    assert caught.value.exit_code == 3
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.usefixtures("own_plugins")
def test_an_error_bound_that_raises_is_one_message_with_its_line(tmp_path: Path) -> None:
    module = written(tmp_path, "{'y': y}")
    text = module.read_text(encoding="utf-8")
    method = (
        "    def error_bound(self, inputs, env, *, baseline=None, accumulate=None):\n        return unknown\n\n\nOP"
    )
    text = text.replace("\n\nOP", method)
    module.write_text(text, encoding="utf-8")
    line = text[: text.index("return unknown")].count("\n") + 1
    y = baseline(module)
    told = f"{module}:{line}: error_bound of halves: NameError: name 'unknown' is not defined"
    with pytest.raises(MluopsError, match=re.escape(told)):
        operators()["halves"].bounds({"x": y["y"]}, {"x": (3,), "y": (3,)}, {}, y)


KINDS = (  # the dtype of the output, what the kernel returns, whether it is of the same kind
    ("float", "np.float64", True),
    ("half", "np.longdouble", True),
    ("bfloat16", "np.float32", True),
    ("int32", "np.int64", True),
    ("uint8", "np.int64", True),
    ("int32", "bool", False),
    ("int32", "np.float32", False),
    ("bool", "np.uint8", False),
    ("bfloat16", "np.int8", False),
)


@pytest.mark.parametrize(("dtype", "found", "same"), KINDS)
@pytest.mark.usefixtures("own_plugins")
def test_an_output_may_be_of_another_dtype_of_the_same_kind(tmp_path: Path, dtype: str, found: str, same: bool) -> None:
    module = written(tmp_path, f"{{'y': y.astype({found})}}", dtype)
    if same:
        assert baseline(module)["y"].dtype == np.dtype(found.removeprefix("np."))
    else:
        with pytest.raises(MluopsError, match=f"expected an array of {dtype}, or of a dtype of the same kind"):
            baseline(module)


@pytest.mark.parametrize(("dtype", "array"), [("float", np.ones(2, int)), ("int32", np.ones(2, bool))])
def test_an_output_of_several_dtypes_has_the_kind_of_its_own(dtype: str, array: Any) -> None:
    with pytest.raises(InputError, match=f"y has dtype {dtype}, the baseline {array.dtype}"):
        fitted("y", (2,), dtype, array, None)


@pytest.mark.usefixtures("own_plugins")
def test_gen_and_docs_say_where_it_raises(tmp_path: Path, cli: Cli) -> None:
    module = written(tmp_path, "{'y': unknown}")
    told = f"{module}:{CALLED}: reference kernel of halves: NameError: name 'unknown' is not defined"
    made = cli("gen", "halves", "--plugin", module, "--out", tmp_path / "cases", "-j", "1")
    first, count = made.err.splitlines()
    assert re.fullmatch(rf"halves/demo/\w+: {re.escape(told)}", first)
    assert (count, made.code) == ("2 cases are not made: 1 problem", 3)
    described = cli("docs", "halves", "--plugin", module, "--out", tmp_path / "pages")
    assert (described.err, described.code) == (f"{told}{os.linesep}", 3)
