"""The options of a case: one value, from which repro line, summary and hash are made."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import pytest

from mluops_cli.commands import run
from mluops_cli.commands.run_options import case_options
from mluops_cli.core.case_options import CaseOptions, read_options, repro_line
from schemas.errors import InputError
from tests.mluops_cli.conftest import parsed_options

# Every option with a value that isn't its default.
CHANGED: dict[str, Any] = {
    "impl": "exec:./kernel --fast", "plugins": ("a b.py", "c.py"), "enum_numbering": "old", "repeat": 3,
    "timeout": 0.1 + 0.2, "memory": 123456789, "threads": 4, "compare": ("indice_pairs=canonical",),
    "loose_nan": True, "loose_zero": True, "strict_tail": True, "perf": True, "min_time": 1.5, "cache": "warm",
    "rotate": True,
    "device": "MLU370-X8",
    "peak_bandwidth": 307_234_567_890.0, "peak_ops": 2.4e13, "perf_gate": True,
    "bound": "fail", "accumulate": "half", "relations": True,
}  # fmt: skip


PERF = ("device", "peak_bandwidth", "peak_ops", "rotate")  # need --perf


def test_every_option_is_tried() -> None:
    assert set(CHANGED) == {each.name for each in fields(CaseOptions)}
    assert all(getattr(CaseOptions(), name) != value for name, value in CHANGED.items())


def parsed(words: list[str]) -> CaseOptions:
    """The options that the command line of `mluops run` gives."""
    plugins = [value for flag, value in pairwise(words) if flag == "--plugin"]
    while "--plugin" in words:  # they would be loaded
        at = words.index("--plugin")
        words = words[:at] + words[at + 2 :]
    given = parsed_options(run.command, *words)
    (impl,) = given["impls"]
    return case_options({**given, "impl": impl, "plugins": tuple(plugins)})


@pytest.mark.parametrize("name", list(CHANGED))
def test_a12_the_repro_line_gives_every_option(name: str) -> None:
    needs: dict[str, Any] = {"perf": True} if name in PERF else {}
    options = replace(CaseOptions(), **needs, **{name: CHANGED[name]})
    words = shlex.split(repro_line(options, "-a case.pb", "out"))
    assert words[:3] == ["mluops", "run", "./-a case.pb"]
    assert words[-2:] == ["--out", "out/repro"]
    assert parsed(words[2:]) == options


@pytest.mark.parametrize("name", list(CHANGED))
def test_the_digest_and_the_summary_tell_every_option(name: str) -> None:
    options = replace(CaseOptions(), **{name: CHANGED[name]})
    assert options.digest != CaseOptions().digest
    assert options.digest == replace(CaseOptions(), **{name: CHANGED[name]}).digest
    plain = json.loads(json.dumps(options.as_json()))
    assert read_options(plain, "other", "summary.json") == options


def test_summaries_of_other_versions_are_read() -> None:
    """0.1.0 had no implementation, no enum numbering and no threads among its options."""
    old = {"timeout": 300.0, "compare": ["indice_pairs=canonical"], "min_time": 0.2, "cache": "fresh", "newer": {}}
    assert read_options(old, "reference", "") == CaseOptions("reference", compare=("indice_pairs=canonical",))


@pytest.mark.parametrize(("name", "value"), [("timeout", "x"), ("plugins", "a.py"), ("perf", []), ("cache", "hot")])
def test_options_of_a_wrong_type_are_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"out/summary\.json: options\.{name}: "):
        read_options({name: value}, "tiled", "out/summary.json")
