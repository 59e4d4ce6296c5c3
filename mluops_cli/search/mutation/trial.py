"""What a forked process does: it loads one mutant, runs it on cases, and sends what came of each."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Final

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.escaping import cut
from mluops_cli.core.exceptions import describe
from mluops_cli.core.statuses import FAILING, WRONG_INPUT
from mluops_cli.execution.case.case_run import Prepared, run_prepared
from mluops_cli.execution.case.output_buffers import digest
from mluops_cli.execution.kernel_process.floating_point import MODE
from mluops_cli.implementations.base import Call, Implementation, Outcome
from mluops_cli.implementations.registry import implementation_named
from mluops_cli.processes.process_tree import die_with_parent
from mluops_cli.search.mutation.sources import Mutation, is_source, load_mutation, loaded_sources

_LOAD_LIMIT: Final = 20.0  # seconds of the processor in which a mutant may be loaded
_MEMORY: Final = 4 << 30  # bytes that a mutant may take besides what it holds when it is loaded
_REASON: Final = 300  # characters of a reason that are kept


@dataclass(frozen=True, slots=True)
class Trial:
    """A mutant and the cases that it runs on, as indices; mutation None: the source as it is.

    impl is another implementation than that of the settings, empty for that.
    limits are seconds of the processor per case: it is no matter how busy the machine is. first: the first failing case
    ends it. answers: those of the right source; the first that differs ends it. traced: the lines that each case runs
    are sent too.
    """

    number: int
    mutation: Mutation | None
    cases: tuple[int, ...]
    limits: tuple[float, ...]
    first: bool = True
    traced: bool = False
    impl: str = ""
    answers: tuple[str, ...] = ()

    def of(self, places: Sequence[int]) -> Trial:
        """The trial of some of its cases, by their places."""
        answers = tuple(self.answers[place] for place in places) if self.answers else ()
        limits = tuple(self.limits[place] for place in places)
        return replace(self, cases=tuple(self.cases[place] for place in places), limits=limits, answers=answers)


@dataclass(slots=True)
class CaseResult:
    """What came of a mutant and a case.

    answer is the hash of all that the implementation answered: status, counts, bits of the outputs. seconds are those
    of call and judge. lines: file -> the lines that ran; classes: file -> the names of the classes whose methods ran.
    valid: the operator must accept the case. beyond_design: no design demands an answer, so any passes. within_bound:
    outputs have error bounds, and none is beyond its own: a correct kernel may compute them.
    """

    case: int
    status: str
    reason: str = ""
    answer: str = ""
    seconds: float = 0.0
    lines: dict[str, list[int]] = field(default_factory=dict)
    classes: dict[str, list[str]] = field(default_factory=dict)
    valid: bool = False
    beyond_design: bool = False
    within_bound: bool = False

    @property
    def killing(self) -> bool:
        """Whether the case shows that the mutant is wrong."""
        return self.status in FAILING

    @property
    def allowed(self) -> bool:
        """Whether the rules allow another answer than that of the right source, as long as the case passes."""
        return self.beyond_design or self.within_bound or self.status in ("skip", "empty")  # empty: nothing is compared


def run_trial(
    pipe: Connection,
    trial: Trial,
    prepared: Callable[[int], Prepared],
    settings: WorkerSettings,
    names: Sequence[str],
) -> None:
    """Run a trial in this process, which nothing else uses.

    Messages: {"loaded"} or {"problem", "exit_code"}, then {"begin"} and {"case", "retire", "last"} per case.
    """
    _isolate()
    _limit_time(_LOAD_LIMIT)
    trace = _Trace(names) if trial.traced else None
    try:
        with MODE.of_implementation(), trace or nullcontext():
            if trial.mutation is not None:
                load_mutation(trial.mutation, names)
            implementation = implementation_named(trial.impl or settings.options.impl)
    except BaseException as error:
        _send(
            pipe, {"problem": str(error) or type(error).__name__, "exit_code": getattr(error, "exit_code", WRONG_INPUT)}
        )
        return
    _limit_memory()
    _send(pipe, {"loaded": dict(loaded_sources(names))})
    if trace is not None:
        implementation = _Traced(implementation, trace)
        trace.begin()
    for place, index in enumerate(trial.cases):
        _send(pipe, {"begin": index})
        _limit_time(trial.limits[place])
        try:
            found, retire = _run(index, prepared(index), implementation, settings)
        except Exception as error:  # such as no memory left for the judge: in a run it fails too
            found, retire = CaseResult(index, "error", cut(describe(error), _REASON)), True
        _limit_time(0)
        if trace is not None:
            found.lines, found.classes = trace.taken()
        differs = bool(trial.answers) and trial.answers[place] != found.answer
        last = (trial.first and found.killing) or differs or place + 1 == len(trial.cases)
        _send(pipe, {"case": asdict(found), "retire": retire, "last": last})
        if retire or last:
            return


def _run(
    index: int, prepared: Prepared, implementation: Implementation, settings: WorkerSettings
) -> tuple[CaseResult, bool]:
    """What comes of one case, and whether the next one needs a fresh process."""
    start = time.perf_counter()
    result = run_prepared(prepared, implementation, settings)
    seconds = time.perf_counter() - start
    found = CaseResult(
        index,
        result["status"],
        cut(str(result.get("reason", "")), _REASON),
        _answer(result, prepared),
        seconds,
        valid=prepared.bound.valid,
        beyond_design=prepared.bound.beyond_design,
        within_bound=result.get("beyond_bound") is False,
    )
    return found, bool(result.get("retire"))


def _isolate() -> None:
    os.setsid()
    die_with_parent()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process


def _limit_time(seconds: float) -> None:
    """Let the kernel end this process after so many seconds of the processor; 0: no more."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    """Let allocations fail beyond a limit: of data, not of address space, which mapped files and devices take too."""
    with suppress(OSError, ValueError, IndexError):
        held = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData:"))
        limit = int(held.split()[1]) * 1024 + _MEMORY
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _send(pipe: Connection, message: dict[str, Any]) -> None:
    pipe.send_bytes(json.dumps(message).encode())


def _answer(result: dict[str, Any], prepared: Prepared) -> str:
    import xxhash

    said = [result["status"], result.get("operator_status"), result.get("workspace_bytes"), result.get("unverified")]
    bits = [digest(buffer.array) for buffer in prepared.outputs.values()]
    return xxhash.xxh3_64_hexdigest(json.dumps([said, bits]).encode())


class _Traced(Implementation):
    """An implementation whose calls are traced."""

    name = "traced"

    def __init__(self, inner: Implementation, trace: _Trace) -> None:
        super().__init__(inner.options)
        self.inner, self.trace = inner, trace

    def call(self, call: Call) -> Outcome:
        """Call it with the trace on."""
        with self.trace:
            return self.inner.call(call)


class _Trace:
    """Notes the lines of some modules that run, and the classes of the objects whose methods do; on inside `with`.

    What ran before begin() counts for every case: it ran when the implementation was loaded.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._files: dict[str, str] = {}  # of the modules, empty for others
        self._lines: dict[str, set[int]] = defaultdict(set)
        self._classes: dict[str, set[str]] = defaultdict(set)
        self._loading: dict[str, set[int]] = {}
        self._seen: set[type] = set()

    def __enter__(self) -> None:
        threading.settrace(self._call)
        sys.settrace(self._call)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def begin(self) -> None:
        """The implementation is loaded."""
        self._loading = {file: set(lines) for file, lines in self._lines.items()}

    def taken(self) -> tuple[dict[str, list[int]], dict[str, list[str]]]:
        """What was recorded since the last time: file -> lines, file -> names of classes."""
        lines = {file: sorted(found) for file, found in self._lines.items()}
        classes = {file: sorted(found) for file, found in self._classes.items()}
        self._lines.clear()
        self._lines.update({file: set(found) for file, found in self._loading.items()})
        self._classes.clear()
        self._seen.clear()
        return lines, classes

    def _call(self, frame: FrameType, event: str, value: Any) -> Any:
        file = self._file(str(frame.f_globals.get("__name__")), frame.f_code.co_filename)
        if not file:
            return None
        lines = self._lines[file]
        if frame.f_code.co_argcount:
            self._note_classes(frame.f_locals.get(frame.f_code.co_varnames[0]))

        def line(frame: FrameType, event: str, value: Any) -> Any:
            lines.add(frame.f_lineno)
            return line

        lines.add(frame.f_lineno)
        return line

    def _file(self, module: str, file: str) -> str:
        if module not in self._files:
            self._files[module] = file if is_source(module, self._names) else ""
        return self._files[module]

    def _note_classes(self, first: Any) -> None:
        kind = first if isinstance(first, type) else type(first)
        if kind not in self._seen:
            self._seen.add(kind)
            for each in kind.__mro__:
                if file := self._files.get(each.__module__):
                    self._classes[file].add(each.__qualname__)
