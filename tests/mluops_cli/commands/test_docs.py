"""`mluops docs`: pages of bundled operators and of plug-ins."""

from __future__ import annotations

from pathlib import Path

from generators.operator_registry import operators
from tests.mluops_cli.conftest import Cli

PLUGIN = '''
from generators import Contract, Criterion, Operator, TensorSpec

EXACT = (Criterion("diff3", 0.0),)


class Negate(Operator):
    """y is x with the other sign."""

    contract = Contract(
        op="negate_for_docs",
        category="pure_io",
        inputs=(TensorSpec("x", ("float",), "ARRAY", "N", values={"uniform": [-1, 1]}),),
        outputs=(TensorSpec("y", ("float",), "ARRAY", "N", criteria=EXACT),),
    )

    def reference(self, inputs, env):
        return {"y": -inputs["x"]}


OPERATORS = (Negate(),)
'''


def test_the_named_operator_gets_a_page(cli: Cli, tmp_path: Path) -> None:
    ran = cli("docs", "psamask_forward", "--out", tmp_path / "pages")
    assert (ran.code, ran.out, ran.err) == (0, f"{tmp_path}/pages/psamask_forward.md\n", "")
    page = (tmp_path / "pages" / "psamask_forward.md").read_text(encoding="utf-8")
    assert page.startswith("# psamask_forward\n")
    assert "`[N, H, W, h_mask*w_mask]`" in page


def test_an_operator_of_a_plug_in_without_suites_gets_a_page(cli: Cli, tmp_path: Path) -> None:
    plugin = tmp_path / "negate.py"
    plugin.write_text(PLUGIN)
    try:
        ran = cli("docs", "negate_for_docs", "--plugin", plugin, "--out", tmp_path)
    finally:
        operators().pop("negate_for_docs", None)  # for the tests after this one in the same process
    assert (ran.code, ran.err) == (0, "")
    assert "y is x with the other sign." in (tmp_path / "negate_for_docs.md").read_text(encoding="utf-8")


def test_an_unknown_operator_is_an_error_and_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    ran = cli("docs", "psamask_forward", "psamask_forwrad", "--out", tmp_path / "pages")
    assert ran.code == 2
    assert "did you mean 'psamask_forward'" in ran.err
    assert not (tmp_path / "pages").exists()
