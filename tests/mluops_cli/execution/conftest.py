"""Small case files of psamask_forward, and the command run on them."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from mluops_cli.execution import supervisor
from mluops_cli.execution.workers.case_answer import Answer, answer_of
from mluops_cli.execution.workers.handle import WorkerProcess
from mluops_cli.main import main
from schemas.casefiles.reading import write_case
from schemas.protos import messages as proto

from . import misbehaving

os.environ["MLUOPS_TEST_RUN"] = str(os.getpid())  # which misbehaving.duration reads in a process of a run
PLUGIN = Path(__file__).parent / "misbehaving.py"
SUITE = "psamask_forward/general"

# A suite of ill-behaved implementations: name of the callable -> status, part of the reason.
TEN = {
    "segfault": ("crash", "signal 11 (SIGSEGV)"),
    "aborts": ("crash", "signal 6 (SIGABRT)"),
    "leaves": ("crash", "exit code 0 in the middle of the case"),
    "exits": ("error", "raised SystemExit: 0"),
    "unpicklable": ("error", "raised UnpicklableError"),
    "endless": ("timeout", "no answer within 3 s"),
    "floods": ("pass", ""),
    "hoards": ("crash", "out of memory: it held "),
    "stuck_in_c": ("timeout", "no answer within 3 s"),
    "good": ("pass", ""),
}
TEN_WORDS = {f"{SUITE}/{way}": status for way, (status, _) in TEN.items()}


HANGING = tuple(way for way, (status, _) in TEN.items() if status == "timeout")


def write_ways(folder: Path, ways: Iterable[str] = tuple(TEN)) -> None:
    """A case per way of TEN, for the callable `everything`."""
    for way in ways:
        write_psamask(folder, way, h_mask=mask_of(way))


def mask_of(way: str) -> int:
    """The h_mask by which `everything` knows a way; a right one for a name that is none."""
    known = list(misbehaving.WAYS)
    return misbehaving.FIRST + known.index(way) if way in known else 3


def case_node(op: str = "psamask_forward", suite: str = "general", name: str = "case", **meta: Any) -> Any:
    """A Node without tensors; with suite "" it carries no metadata of ours."""
    node = proto.Node(op_name=op)
    if suite:
        proto.set_meta(node, proto.CaseMeta(suite=suite, name=name, **meta))
    return node


def add_tensor(tensors: Any, name: str, dims: tuple[int, ...], dtype: str = "FLOAT", layout: str = "NHWC") -> Any:
    tensor = tensors.add(id=name)
    fields = tensor.DESCRIPTOR.fields_by_name
    tensor.shape.dims.extend(dims)
    tensor.dtype = fields["dtype"].enum_type.values_by_name[f"DTYPE_{dtype}"].number
    tensor.layout = fields["layout"].enum_type.values_by_name[f"LAYOUT_{layout}"].number
    return tensor


def write_psamask(
    folder: Path, name: str, h_mask: int = 3, suite: str = "general", suffix: str = ".pb", seed: int = 0, **meta: Any
) -> Path:
    """A case whose baseline is left to the reference kernel: feature 2x3, a mask of h_mask x 3, COLLECT."""
    node = case_node(suite=suite, name=name, **meta)
    node.psamask_forward_param.psa_type = 0
    node.psamask_forward_param.h_mask = h_mask
    node.psamask_forward_param.w_mask = 3
    add_tensor(node.input, "x", (1, 2, 3, h_mask * 3))
    add_tensor(node.output, "y", (1, 2, 3, 6))
    x = np.random.default_rng(seed).uniform(0.5, 1, (1, 2, 3, h_mask * 3)).astype(np.float32)
    path = folder / f"{name}{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_case(path, node, [x], [None])
    return path


def wait_until(condition: Callable[[], Any], seconds: float = 600.0) -> Any:
    """What the condition answers with as soon as that is true; the seconds end a test that waits in vain."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


def sleeping(*seconds: int) -> list[psutil.Process]:
    """The processes of this run of the tests that sleep so long."""
    wanted = [["sleep", misbehaving.duration(each)] for each in seconds]
    return [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] in wanted]


@pytest.fixture
def _only_hanging_cases_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """--timeout holds for the ways of HANGING and for TRIGGER: other cases take as long as the machine needs."""
    masks = {misbehaving.TRIGGER, *map(mask_of, HANGING)}

    def answer(worker: WorkerProcess, timeout: float) -> Answer | None:
        hangs = worker.facts.get("params", {}).get("h_mask") in masks
        return answer_of(worker, timeout if hangs else math.inf)

    monkeypatch.setattr(supervisor, "answer_of", answer)


@dataclass(frozen=True)
class Ran:
    """What a run came to."""

    code: int
    records: dict[str, dict[str, Any]]
    summary: dict[str, Any]
    out: str
    err: str

    @property
    def statuses(self) -> dict[str, str]:
        """Status by case id."""
        return {name: record["status"] for name, record in self.records.items()}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """`mluops run` in this process, with workers of its own; results in tmp_path/out."""
    out = tmp_path / "out"

    def call(*arguments: Any) -> Ran:
        with pytest.raises(SystemExit) as stop:
            main(["run", *map(str, arguments), "--out", str(out)])
        said = capsys.readouterr()
        lines = (out / "results.jsonl").read_text().splitlines() if (out / "results.jsonl").exists() else []
        records = [json.loads(line) for line in lines]
        assert len({record["case"] for record in records}) == len(records)
        summary = json.loads((out / "summary.json").read_text()) if (out / "summary.json").exists() else {}
        assert isinstance(stop.value.code, int)
        return Ran(stop.value.code, {record["case"]: record for record in records}, summary, said.out, said.err)

    return call
