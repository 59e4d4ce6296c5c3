"""Which cases are meant: specs, operators, suites; everything wrong is reported at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from generators.specs.selection import select_cases
from schemas.errors import InputError

SPEC = """op: {op}
suites:
  {suite}:
    - name: {name}
      params: {{psa_type: collect, h_mask: 1, w_mask: 1}}
      inputs: {{{tensor}: {{shape: [1, 1, 1, 1]}}}}
"""


def spec(folder: Path, file: str, suite: str, name: str, op: str = "psamask_forward") -> Path:
    folder.mkdir(exist_ok=True)
    tensor = "x" if op == "psamask_forward" else "dy"
    (folder / file).write_text(SPEC.format(op=op, suite=suite, name=name, tensor=tensor))
    return folder / file


def ids(*specs: Path, ops: tuple[str, ...] = (), suites: tuple[str, ...] = ()) -> list[str]:
    return [case.id for case in select_cases(ops, suites, specs, 1)]


def test_given_specs_replace_the_built_in_ones_in_any_order(tmp_path: Path) -> None:
    a = spec(tmp_path, "a.yaml", "mine", "one")
    b = spec(tmp_path, "b.yaml", "yours", "two", op="psamask_backward")
    expected = ["psamask_backward/yours/two", "psamask_forward/mine/one"]
    assert ids(a, b) == ids(b, a) == ids(tmp_path) == expected


def test_operators_and_suites_narrow_the_choice(tmp_path: Path) -> None:
    spec(tmp_path, "a.yaml", "mine", "one")
    spec(tmp_path, "b.yaml", "yours", "two", op="psamask_backward")
    assert ids(tmp_path, ops=("psamask_forward",)) == ["psamask_forward/mine/one"]
    assert ids(tmp_path, suites=("yours",)) == ["psamask_backward/yours/two"]
    assert ids(tmp_path, ops=("psamask_forward",), suites=("yours",)) == []
    # A suite that only other specs have selects nothing here.
    assert ids(tmp_path, suites=("network",)) == []


def test_built_in_specs_of_the_named_operators() -> None:
    found = ids(ops=("psamask_forward",), suites=("demo",))
    assert found
    assert all(each.startswith("psamask_forward/demo/") for each in found)


@pytest.mark.parametrize(
    ("ops", "suites", "message"),
    [
        (("psamask_forwrad",), (), "unknown operator 'psamask_forwrad': did you mean 'psamask_forward'"),
        ((), ("netwrok",), "unknown suite 'netwrok': did you mean 'network'"),
    ],
)
def test_names_that_nobody_knows_are_errors(ops: tuple[str, ...], suites: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ids(ops=ops, suites=suites)


def test_one_id_in_two_specs_is_an_error_with_both_places(tmp_path: Path) -> None:
    a = spec(tmp_path / "a", "first.yaml", "mine", "one")
    b = spec(tmp_path / "b", "second.yaml", "mine", "one")
    with pytest.raises(InputError, match=r"second\.yaml:4.*psamask_forward/mine/one.*twice.*first\.yaml:4"):
        ids(a, b)


def test_all_wrong_specs_are_told_at_once(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        path = spec(tmp_path, name, "mine", "one")
        path.write_text(path.read_text().replace("params", "prams"))
    with pytest.raises(InputError) as caught:
        ids(tmp_path)
    assert "a.yaml:5:7" in str(caught.value)
    assert "b.yaml:5:7" in str(caught.value)


@pytest.mark.slow
def test_f12_the_number_of_cases_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    entry = "{name: a, sizes: {N: 1, H: 2}, params: {psa_type: 0, h_mask: 1, w_mask: 1}, matrix: {sizes.W: 1..1000000}}"
    path.write_text(f"op: psamask_forward\nsuites: {{s: [{entry}]}}\n")
    monkeypatch.setattr("generators.specs.selection.MOST_CASES", 5)
    with pytest.raises(InputError, match="more than 5 cases are selected, expected fewer suites or specs at once"):
        ids(path)
