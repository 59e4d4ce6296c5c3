"""What a run costs beyond the kernel: tiny cases on one warm worker, and the memory of the process that supervises."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from benchmarks.measure import Row
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.core.discovery import plan_cases
from mluops_cli.core.events import CaseFinished, Event
from mluops_cli.execution.supervisor import RunSettings, run_cases
from schemas.casefiles.reading import write_case
from schemas.protos import messages as proto

CASES = 1000
_WARM = 20  # cases until the worker has loaded everything


def rows(cases: int = CASES) -> list[Row]:
    """The rows of the table; cases is for a quick look."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), cases)
        start = time.perf_counter()
        planned = plan_cases([Path(folder)])
        planning = (time.perf_counter() - start) / cases
        watch = _Watch()
        run_cases(planned, RunSettings(WorkerSettings(CaseOptions("reference")), Path(folder, "out")), [watch])
    gaps = np.diff(watch.times[_WARM:]) * 1e3  # the median: this machine may have other work, too
    note = f"mean {np.mean(gaps):.2f} ms; kernel {watch.kernel_ms:.2f} ms"
    overhead = float(np.median(gaps)) - watch.kernel_ms
    per_thousand = 1000 / cases / 1e6
    return [
        Row("run: overhead of a tiny case, one warm worker", overhead, "ms", 5, note=note),
        Row("run: finding and describing a case file", planning * 1e3, "ms"),
        Row("run: growth of the supervisor over 1,000 cases", watch.growth * per_thousand, "MB", 2),
        Row("run: growth of the worker over 1,000 cases", watch.worker_growth * per_thousand, "MB", 2),
    ]


class _Watch:
    """Listens to a run: when cases end, how long their kernels took, and how both processes grow."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.kernels: list[float] = []
        self.sizes: list[tuple[int, int]] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, CaseFinished):
            assert event.record.status == "pass", event.record.reason
            self.times.append(time.perf_counter())
            self.kernels.append(event.record.interface_us or 0.0)
            if len(self.times) % 100 == 0:
                own = psutil.Process()
                workers = [each for each in own.children() if "spawn_main" in " ".join(each.cmdline())]
                self.sizes.append((own.memory_info().rss, sum(each.memory_info().rss for each in workers)))

    @property
    def kernel_ms(self) -> float:
        return float(np.median(self.kernels[_WARM:])) / 1e3

    @property
    def growth(self) -> float:
        return self._growth(0)

    @property
    def worker_growth(self) -> float:
        return self._growth(1)

    def _growth(self, which: int) -> float:
        """From a quarter of the run on: before that, caches fill."""
        return float(self.sizes[-1][which] - self.sizes[len(self.sizes) // 4][which]) / 0.75


def _write(folder: Path, cases: int) -> None:
    """Cases of psamask_forward with a feature of 2x3 and a mask of 3x3, in files of a kilobyte."""
    rng = np.random.default_rng(0)
    for number in range(cases):
        node = proto.Node(op_name="psamask_forward")
        proto.set_meta(node, proto.CaseMeta(suite="general", name=f"case{number}"))
        node.psamask_forward_param.psa_type = 0
        node.psamask_forward_param.h_mask = node.psamask_forward_param.w_mask = 3
        for tensors, name, channels in ((node.input, "x", 9), (node.output, "y", 6)):
            tensor = tensors.add(id=name, dtype=2, layout=2)
            tensor.shape.dims.extend((1, 2, 3, channels))
        x = rng.uniform(0.5, 1, (1, 2, 3, 9)).astype(np.float32)
        write_case(folder / f"case{number}.pb", node, [x], [None])
