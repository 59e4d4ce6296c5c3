"""Kernel processes that send anything instead of, before, in and behind their replies: each case has its record."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.casefiles.reading import write_case
from tests.conftest import PROJECT
from tests.mluops_cli.execution.conftest import add_tensor, case_node
from tests.mluops_cli.execution.kernel_process import hostile, hostile_run

CALLS = 3
REPORTS = ("junit", "html", "md", "csv")


def write_numbered(folder: Path, number: int) -> None:
    """A case whose output is its input, which begins with its number."""
    node = case_node(hostile.OP, name=str(number))
    add_tensor(node.input, "x", (hostile.VALUES,), layout="ARRAY")
    add_tensor(node.output, "y", (hostile.VALUES,), layout="ARRAY")
    criteria = node.DESCRIPTOR.fields_by_name["evaluation_criterion"].enum_type.values_by_name
    node.evaluation_criterion.append(criteria["DIFF3"].number)
    node.evaluation_threshold.append(0)
    values = np.arange(number, number + hostile.VALUES, dtype=np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    write_case(folder / f"{number}.pb", node, [values], [values])


def hostile_records(
    tmp_path: Path, numbers: range, *options: str, seed: int = 1, waits: bool = False
) -> tuple[dict[int, dict[str, Any]], dict[int, Counter[str]]]:
    """By the number of the case: its record, and what became of the frames that were read of it.

    The run has ended, with one record per case, and has left no process.
    """
    for number in numbers:
        write_numbered(tmp_path / "cases", number)
    plan = json.dumps({"seed": seed, "calls": CALLS, "waits": waits})
    arguments = [tmp_path / "cases", "--impl", "hostile", "--repeat", CALLS, "--out", tmp_path / "out", *options]
    driver = [sys.executable, "-m", hostile_run.__name__, tmp_path / "read", plan, *arguments]
    done = subprocess.run(list(map(str, driver)), cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, ""), done.stderr[-5000:]
    records = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert len(records) == len(numbers)
    found = {int(record["case"].rpartition("/")[2]): record for record in records}
    assert found.keys() == set(numbers)
    read: dict[int, Counter[str]] = {number: Counter() for number in numbers}
    for line in (tmp_path / "read").read_text().splitlines():
        name, became = line.split()
        read[int(name)][became] += 1
    return found, read


@pytest.mark.parametrize(
    ("least", "seed"), [(60, 1), pytest.param(10_000, 2, marks=[pytest.mark.slow, pytest.mark.long])]
)
def test_b1_b2_hostile_frames_of_live_processes(least: int, seed: int, tmp_path: Path) -> None:
    """Frames are counted where they are read, besides those of right cases: in the judging process."""
    reports = [f"--{name}={tmp_path / name}" for name in REPORTS]
    numbers = range(least * 2 // 5)
    records, read = hostile_records(tmp_path, numbers, "-j", "2", "--timeout", "120", *reports, seed=seed)
    became: Counter[str] = Counter()
    for number, record in records.items():
        if number % hostile.RIGHT_EVERY == 0:
            assert (record["status"], record["repeats"]) == ("pass", CALLS)
            assert read[number] == {"taken": CALLS}
            continue
        became += read[number]
        assert read[number]["taken"] >= CALLS - 1
        assert read[number].total() >= CALLS
        if read[number]["refused"]:
            assert "the implementation wrote into it: a " in record["reason"]
        assert (record["status"] == "crash") == (read[number]["taken"] < CALLS)
        assert record["status"] in ("crash", "fail", "error", "skip")  # the outputs of its last call are wrong
    assert became.total() >= least
    assert all(became[each] > least / 100 for each in ("taken", "refused", "cut", "behind")), became
    assert len(list(ElementTree.parse(tmp_path / "junit").getroot().iter("testcase"))) == len(numbers)
    assert all((tmp_path / name).stat().st_size > len(numbers) for name in REPORTS)


def test_b1_a_frame_that_does_not_end_is_a_timeout(tmp_path: Path) -> None:
    records, _ = hostile_records(tmp_path, range(1, 9), "-j", "8", "--timeout", "2", waits=True)
    assert {(record["status"], record["reason"]) for record in records.values()} == {
        ("timeout", "no answer within 2 s")
    }
