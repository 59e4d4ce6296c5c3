"""A finding of each planted fault, shrunk by a worker process as `mluops fuzz` does it, is small and minimal."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.record import Record
from mluops_cli.results.symptoms import Symptom
from mluops_cli.search.case_making import make_case
from mluops_cli.search.case_runner import CaseRunner
from mluops_cli.search.faulty_kernels.catalogue import MODULES
from mluops_cli.search.fuzz.supply import Search
from mluops_cli.search.shrinking.attempts import Budget, Judge, proves_nothing, shows
from mluops_cli.search.shrinking.candidate import candidate_of
from mluops_cli.search.shrinking.reduction import limit_of, shrinking_runner, symptom_judge
from mluops_cli.search.shrinking.shrinker import Shrinker
from schemas.errors import MluopsError
from tests import planted
from tests.mluops_cli.search.shrinking.in_process import InProcess
from tests.planted.catalogue import planted_faults
from tests.planted.planted_fault import PlantedFault

DRAWN = 1500  # calls that are looked through for one that fails; without one, the fault's own trigger is shrunk
LARGEST = 1 << 20  # bytes of such a call
PATIENT = Budget(seconds=600.0)  # the usual runs; how fast the machine is doesn't matter

Entry = Mapping[str, Any]


def kernel(fault: PlantedFault) -> str:
    return f"python:{Path(planted.__file__).with_name(f'{MODULES[fault.op]}.py')}:{fault.name}"


def failing(fault: PlantedFault, runner: CaseRunner, judge: Judge) -> tuple[Entry, Record]:
    """An entry that shows the fault, the first one drawn where there is one, and its record."""
    search = Search((fault.op,), 1, LARGEST)
    drawn = (call.entry for number in range(DRAWN) if (call := search.call(number)[1]) is not None)
    for entry in (*(each for each in drawn if concerned(fault, each)), {"name": "trigger", "seed": 1, **fault.trigger}):
        record = runner.run_entry(fault.op, "fuzz", entry)
        if record is not None and judge(record) is not None:
            return entry, record
    raise AssertionError(f"{fault.name} doesn't show in its trigger")


def concerned(fault: PlantedFault, entry: Entry) -> bool:
    """Whether the fault's condition on sizes and parameters holds."""
    call = candidate_of(fault.op, entry)
    return any(fault.holds(call.shapes(), call.env(), half) for half in (False, True))


def lower_by_one(entry: Entry) -> Iterator[tuple[str, Entry]]:
    """Each number of an entry, and the entry with that number nearer to 0 by 1."""
    for section in ("sizes", "params"):
        for name, value in entry.get(section, {}).items():
            for at, each in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(each, int) and each:
                    lower = deepcopy(dict(entry))
                    nearer = each - 1 if each > 0 else each + 1
                    if isinstance(value, list):
                        lower[section][name][at] = nearer
                    else:
                        lower[section][name] = nearer
                    yield f"{name}[{at}]", lower


def not_minimal(runner: CaseRunner, judge: Judge, fault: PlantedFault, entry: Entry, wanted: Symptom) -> list[str]:
    """The numbers that can be lowered by 1 with the same symptom, where a pass of a right kernel proves something."""
    found = []
    for number, lower in lower_by_one(entry):
        try:
            case = make_case(fault.op, "fuzz", lower, runner.folder)
        except (MluopsError, NameError, ArithmeticError):
            continue
        weak = proves_nothing(case.file, candidate_of(fault.op, lower))
        records: list[Record] = []
        runner.run([case], records.append)
        if not weak and any(shows(judge(each), wanted) for each in records):
            found.append(number)
    return found


@pytest.mark.slow
@pytest.mark.long
def test_findings_of_planted_faults_shrink_to_minimal_calls(tmp_path: Path) -> None:
    """Issue 14: the median has at most 24 input elements, and no number can be lowered by 1."""
    elements, problems = [], []
    for fault in planted_faults():
        judge = symptom_judge([fault.op])
        options = CaseOptions(kernel(fault), bound="fail", relations=True)
        entry, record = failing(fault, InProcess(options.impl, tmp_path / fault.name), judge)
        wanted = judge(record)
        assert wanted is not None
        with shrinking_runner(options, limit_of(record)) as runner:
            start = time.monotonic()
            small = Shrinker(runner, judge, PATIENT).shrink(candidate_of(fault.op, entry), "fuzz", wanted)
            seconds = time.monotonic() - start
            assert small is not None, fault.name
            lower = not_minimal(runner, judge, fault, small.candidate.entry(), wanted)
        elements.append(small.elements)
        told = f"{fault.op} {fault.name}: {small.line}, {small.elements} elements, {small.runs / seconds:.0f} runs/s"
        print(f"{told}, lower: {lower or 'none'}", flush=True)
        problems += [told] if lower or small.ended else []
    print(f"median {statistics.median(elements)}")
    assert len(elements) == 40
    assert statistics.median(elements) <= 24
    assert problems == []
