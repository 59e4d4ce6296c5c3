"""Mutated case files through gen, run, check, show, convert and import (rows E1 to E10, A5 to A11, B3 to B9, D24, D25).

No command ends in our failure, and all agree on which files can't be read, and on what is wrong with the others.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from generators.operator_registry import operators
from generators.specs.loader import load_spec
from mluops_cli.core.escaping import one_line
from schemas.casefiles.reading import read_case
from schemas.errors import InputError
from schemas.protos import messages as proto
from tests.mluops_cli.commands.mutations import mutated_binary, mutated_text, renamed
from tests.mluops_cli.conftest import Cli

SMALL: Final = 1 << 17  # elements of a tensor of a seed
DRAWN: Final = 1 << 22  # elements of a tensor of a mutant: drawing more of them takes long; 2^31 are refused
IDLE = "def idle(*arguments, **keywords):\n    pass\n"
_NAME: Final = re.compile(r"\bm\d{3}\.(?:pb|prototxt)\b")
_PLACE: Final = re.compile(r'^\S*m\d{3}\.(?:pb|prototxt)(?::\d+)*: (?:(?:in|out)put\[\d+\] "[^"]*": )?')
Seed = tuple[str, bytes]  # suffix and content


def largest(path: Path) -> int:
    """The elements of the largest tensor that could be drawn or computed; 0 where the file can't be read."""
    try:
        with read_case(path) as case:
            spans = [record.span for record in (*case.inputs, *case.outputs) if record.span < 2**31]
            return max(spans, default=0)
    except InputError:
        return 0


def binary(text: bytes) -> bytes:
    """A text file in binary form."""
    return proto.serialize(proto.parse_text(text.decode("utf-8-sig"), proto.Node(), ""))


@pytest.fixture
def public(shared: Path) -> list[Seed]:
    """The small public files in both forms, those of our operators more often."""
    found = (shared / "public_cases" / "prototxt").rglob("*.prototxt")
    small = [path for path in sorted(found) if path.stat().st_size < 6000 and largest(path) < SMALL]
    texts = [path.read_bytes() for path in small for _ in range(6 if path.parent.name in operators() else 1)]
    return [*((".prototxt", text) for text in texts), *((".pb", binary(text)) for text in texts)]


@pytest.fixture
def ours(cli: Cli, tmp_path: Path) -> list[Seed]:
    """Small cases that gen writes, in both forms."""
    suites = "demo,zero_element"
    assert cli("gen", "--suite", suites, "--format", "both", "--out", tmp_path / "gen", "-j", 1).code == 0
    paths = sorted((tmp_path / "gen").rglob("*.p[br]*"))
    return [(path.suffix, path.read_bytes()) for path in paths if path.stat().st_size < 6000]


@dataclass
class Said:
    """What the commands said of one mutant: messages without the place, in one line."""

    show: str
    check: list[dict[str, str]]
    gen: list[str]
    convert: list[str]
    imported: list[str]
    record: dict[str, Any]

    @property
    def unreadable(self) -> str:
        """Why check can't read it, empty where it can."""
        return next((one_line(each["message"]) for each in self.errors if each["rule"] == "unreadable"), "")

    @property
    def errors(self) -> list[dict[str, str]]:
        """The errors that check finds."""
        return [each for each in self.check if each["severity"] == "error"]

    @property
    def run(self) -> str:
        """Why run refuses it, empty where it doesn't."""
        if self.record["status"] != "error":
            return ""
        assert self.record["blame"] == "case", self.record
        return bare(self.record["reason"])


def bare(line: str) -> str:
    """A message without the file and the place in it."""
    return _PLACE.sub("", one_line(line))


def by_file(text: str) -> defaultdict[str, list[str]]:
    """The lines that name a mutant, by its name; warnings are left out."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        if (match := _NAME.search(line)) and not line.startswith("warning: "):
            found[match[0]].append(bare(line))
    return found


def write_mutants(folder: Path, seeds: list[Seed], rng: random.Random, count: int) -> None:
    """As many mutants; one that asks for much data is another try."""
    folder.mkdir()
    for number in range(count):
        suffix, content = seeds[rng.randrange(len(seeds))]
        content = renamed(suffix, content, f"m{number}")
        path = folder / f"m{number:03}{suffix}"
        while not path.exists() or largest(path) > DRAWN:
            path.write_bytes((mutated_binary if suffix == ".pb" else mutated_text)(content, rng))


def said_by_all(cli: Cli, tmp_path: Path, folder: Path) -> Iterator[tuple[str, Said]]:
    """What each command says of each mutant; none ends in our failure."""
    (tmp_path / "idle.py").write_text(IDLE)
    impl = ("--impl", f"python:{tmp_path / 'idle.py'}:idle")

    def call(*arguments: object) -> Any:
        ran = cli(*arguments)
        assert ran.code in (0, 1, 2), (arguments, ran.code, ran.err)
        assert "Traceback" not in ran.out + ran.err
        return ran

    checked = call("check", folder, "--json")
    texts = [
        call("gen", "--from", folder, "--out", tmp_path / "out", "-j", 1).err,
        call("convert", folder, tmp_path / "converted").err,
        call("import", folder, "--out", tmp_path / "specs").err,
    ]
    call("run", folder, "--out", tmp_path / "results", "-j", 2, "--timeout", 60, *impl)
    findings: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for finding in json.loads(checked.out)["findings"]:
        match = _NAME.search(finding["place"])
        assert match, finding
        findings[match[0]].append(finding)
    lines = (tmp_path / "results" / "results.jsonl").read_text().splitlines()
    records = {Path(record["file"]).name: record for record in map(json.loads, lines)}
    told = [by_file(text) for text in texts]  # of gen, convert, import
    for path in sorted(folder.iterdir()):
        shown = call("show", path)
        assert shown.code in (0, 2)
        name = path.name
        show = bare(shown.err.rstrip("\n")) if shown.code else ""
        yield name, Said(show, findings[name], told[0][name], told[1][name], told[2][name], records[name])


def check_agreement(name: str, said: Said) -> str:
    """Hold what was said of one mutant against what check found; what it came to."""
    reason = said.unreadable
    if reason:
        for lines in (said.gen, said.convert, said.imported, [said.run], [said.show]):
            assert len(lines) == 1, (name, said)
            assert lines[0].endswith(reason), (name, said)
        return "unreadable"
    older = "its bytes are of the older enum numbering" in said.run  # which show reads all the same
    assert (said.show, said.convert) == ("", [said.run] if older else []), (name, said)
    refused = [line for line in said.gen if "no baseline can be made: unknown operator" not in line]
    if refused == said.gen:
        assert refused == ([said.run] if said.run else []), (name, said)
    found = [one_line(each["message"]) for each in said.check if each["severity"] != "note"]
    if said.run:
        assert any(said.run in each for each in found), (name, said)
        return "refused"
    assert not said.errors, (name, said)
    return "taken"


def check_mutants(cli: Cli, tmp_path: Path, seeds: list[Seed], seed: int, count: int) -> None:
    write_mutants(tmp_path / "mutants", seeds, random.Random(seed), count)
    came: Counter[str] = Counter()
    for name, said in said_by_all(cli, tmp_path, tmp_path / "mutants"):
        came[check_agreement(name, said)] += 1
    assert min(came[word] for word in ("unreadable", "refused", "taken")) > count // 60, came
    for path in (tmp_path / "specs").glob("*.yaml"):
        load_spec(path)
    for path in (tmp_path / "converted").rglob("*.p*"):
        read_case(path).close()


@pytest.mark.parametrize("count", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_e_mutated_public_files(cli: Cli, tmp_path: Path, public: list[Seed], count: int) -> None:
    check_mutants(cli, tmp_path, public, 12, count)


@pytest.mark.parametrize("count", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_e_mutated_files_of_ours(cli: Cli, tmp_path: Path, ours: list[Seed], count: int) -> None:
    check_mutants(cli, tmp_path, ours, 12, count)


def test_a_disagreement_is_seen() -> None:
    record = {"status": "error", "blame": "case", "reason": 'a/m000.pb: input[0] "x": too short'}
    finding = {"severity": "error", "rule": "count", "message": "too short"}
    right = Said("", [finding], ["too short"], [], [], record)
    assert check_agreement("m000.pb", right) == "refused"
    passed = {"status": "pass"}
    unread = {"severity": "error", "rule": "unreadable", "message": "cut off"}
    for wrong in (
        Said("", [], ["too short"], [], [], record),
        Said("", [finding], [], [], [], record),
        Said("", [finding], [], [], [], passed),
        Said("", [finding], ["too long"], [], [], record),
        Said("too short", [finding], ["too short"], [], [], record),
        Said("", [unread], ["cut off"], ["cut off"], ["cut off"], passed),
        Said("cut off", [unread], ["cut off"], [], ["cut off"], record | {"reason": "cut off"}),
    ):
        with pytest.raises(AssertionError):
            check_agreement("m000.pb", wrong)
