"""Each mutation by the texts it makes of small sources, worked by hand."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from mluops_cli.search.mutation.mutators.edits import KINDS
from mluops_cli.search.mutation.mutators.source_walk import parse
from tests.conftest import PROJECT


def made(source: str, kind: str) -> set[str]:
    """The texts that the mutations of a kind make, without the head of the function."""
    text = textwrap.dedent(source)
    parsed = parse(text)
    return {parsed.source.edited(edit) for edit, _ in parsed.edits if edit.kind == kind}


@pytest.mark.parametrize(
    ("source", "kind", "expected"),
    [
        ("a < b", "comparison", {"a <= b", "a >= b"}),
        ("a is not b", "comparison", {"a is b"}),
        ("a not in b", "comparison", {"a in b"}),
        ("0 <= a == b", "comparison", {"0 < a == b", "0 > a == b", "0 <= a != b"}),
        ("a and b", "comparison", {"a or b"}),
        ("np.less(a, b)", "comparison", {"np.less_equal(a, b)"}),
        ("any(a)", "comparison", {"all(a)"}),
        ("c - (a * b)", "arithmetic", {"c + (a * b)", "c - (a + b)"}),
        ("a // b", "arithmetic", {"a * b"}),
        ("a << b", "arithmetic", {"a >> b"}),
        ("-a", "arithmetic", {"+a"}),
        ("max(a, b)", "arithmetic", {"min(a, b)"}),
        ("np.floor(a)", "arithmetic", {"np.ceil(a)"}),
        ("'a' + b", "arithmetic", set()),
        ("0.5", "arithmetic", {"1.0"}),
        ("3", "off_by_one", {"4", "2"}),
        ("0", "off_by_one", {"1", "-1"}),
        ("True", "off_by_one", set()),
        ("range(n)", "off_by_one", {"range(1, n)", "range((n) - 1)"}),
        ("range(a, b)", "off_by_one", {"range((a) + 1, b)", "range(a, (b) - 1)"}),
        ("x[a:b]", "off_by_one", {"x[(a) + 1:b]", "x[a:(b) - 1]"}),
        ("f(a, b, 1)", "swapped_arguments", {"f(b, a, 1)"}),
        ("f(a, x.b)", "swapped_arguments", set()),
        ("np.add(a, b)", "swapped_arguments", set()),
        ("f(a, a)", "swapped_arguments", set()),
        ("x.reshape(H, W)", "transposed_axes", {"x.reshape(W, H)", "x.reshape(W, W)", "x.reshape(H, H)"}),
        ("x.transpose(0, 2, 1)", "transposed_axes", {"x.transpose(2, 0, 1)", "x.transpose(0, 1, 2)", "x"}),
        ("x.T", "transposed_axes", {"x"}),
        ("p['pad_h'] - p['pad_w']", "transposed_axes", {"p['pad_w'] - p['pad_w']", "p['pad_h'] - p['pad_h']"}),
        ("x[h, w]", "transposed_axes", {"x[w, h]", "x[w, w]", "x[h, h]"}),
        ("not a", "condition", {"bool(a)"}),
        ("a if b else c", "condition", {"a if (not (b)) else c"}),
        ("[a for a in b if c]", "condition", {"[a for a in b if (not (c))]"}),
        ("a and b and c", "removed_check", {"(b) and (c)", "(a) and (c)", "(a) and (b)"}),
        ("np.zeros(n)", "zero_fill", {"np.ones(n)"}),
        ("np.float64", "narrowed_dtype", {"np.float32"}),
        ("x.astype(float)", "narrowed_dtype", {'x.astype("float32")'}),
        ("np.sum(x, dtype='int64')", "narrowed_dtype", {"np.sum(x, dtype='int32')"}),
        ("f'{a + b}'", "arithmetic", set()),
        ("tuple[a, b]", "transposed_axes", set()),
    ],
)
def test_expressions(source: str, kind: str, expected: set[str]) -> None:
    names = "a, b, c, n, x, p, h, w, H, W"
    head = f"def f({names}):\n    return "
    assert {text.removeprefix(head) for text in made(head + source, kind)} == expected


@pytest.mark.parametrize(
    ("source", "kind", "expected"),
    [
        ("y[...] = 0", "zero_fill", {"pass"}),
        ("y.fill(0)", "zero_fill", {"pass"}),
        ("y[...] = x", "removed_statement", {"pass"}),
        ("y = x", "removed_statement", set()),
        ("y += x", "removed_statement", {"pass"}),
        ("y += x", "arithmetic", {"y -= x"}),
        ("go(x)", "removed_statement", {"pass"}),
        ("print(x)", "removed_statement", set()),
        ("check(x)", "removed_check", {"pass"}),
        ("assert x", "removed_check", {"pass"}),
        ("if x: return y", "removed_check", {"pass"}),
        ("if x: y = 1", "removed_check", set()),
        ("if x: y = z", "condition", {"if (not (x)): y = z"}),
        ("while True: break", "removed_statement", {"while True: pass"}),
        ("raise E(1 + 2)", "arithmetic", set()),
        ("'1 + 2'", "arithmetic", set()),
        ("x: tuple[1, 2] = y", "off_by_one", set()),
    ],
)
def test_statements(source: str, kind: str, expected: set[str]) -> None:
    head = "def f(x, y, z):\n    "
    assert {text.removeprefix(head) for text in made(head + source, kind)} == expected


def test_text_beyond_ascii_and_several_lines() -> None:
    assert made("s = 'ä€'; y = a <\\\n  b", "comparison") == {
        "s = 'ä€'; y = a <=\\\n  b",
        "s = 'ä€'; y = a >=\\\n  b",
    }


def test_only_what_runs_is_changed() -> None:
    source = '''
        """Text 1 < 2."""
        from __future__ import annotations
        import a.b
        if TYPE_CHECKING:
            x = 1
        @cache(1)
        def f(x: int = 2) -> Literal[3]:
            """4"""
        if __name__ == "__main__":
            f(5)
    '''
    assert made(source, "off_by_one") == {textwrap.dedent(source).replace("= 2", f"= {n}") for n in (1, 3)}


def sources() -> Iterator[Path]:
    yield from (PROJECT / "mluops_cli" / "implementations").rglob("*.py")
    yield from (PROJECT / "generators" / "operators").glob("*.py")


@pytest.mark.parametrize("edits", [10, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("path", list(sources()), ids=lambda path: path.stem)
def test_mutants_of_our_own_sources_parse_and_differ(path: Path, edits: int) -> None:
    parsed = parse(path.read_text())
    right = ast.dump(parsed.source.tree)
    wrong = []
    for edit, region in parsed.edits[:: max(1, len(parsed.edits) // edits)]:
        assert edit.kind in KINDS
        assert parsed.source.line(edit.start) in region.lines or edit.text == "pass"
        try:
            changed = ast.dump(ast.parse(parsed.source.edited(edit)))
        except SyntaxError:
            changed = right
        wrong += [edit] if changed == right else []
    assert not wrong
