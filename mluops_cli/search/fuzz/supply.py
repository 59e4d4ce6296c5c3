"""Calls as case files, made by worker processes while others run."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from generators.casegen.worker_pool import start_worker, stoppable, stops_held
from generators.contracts.binding import bind
from generators.operator_registry import operator_named
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.implementations.plugins import load_plugins
from mluops_cli.lint.baselines import check_weakness
from mluops_cli.search.case_making import make_case
from mluops_cli.search.fuzz.drawing import SUITE, Drawn, draw_call
from mluops_cli.search.fuzz.factors import domain_of
from mluops_cli.search.fuzz.illegal import draw_illegal
from schemas.casefiles.reading import read_case
from schemas.errors import InputError, MluopsError, UnavailableError
from schemas.status import SUCCESS

_CHUNK: Final = 8  # calls that a worker makes at a time
_AHEAD: Final = 3  # chunks per worker that are made or wait to be run
_ILLEGAL: Final = 4  # of so many calls one is illegal, with --illegal
_RELATED: Final = 7  # of so many calls of an operator the relations of one are checked, which take several calls each
_RELATED_BYTES: Final = 64 << 10  # where its tensors have no more bytes
_SLOWEST: Final = 2.0  # seconds of the processor that making a call may take; a slower one is left out
_AGAIN: Final = 2  # so often is another call drawn in place of one that proves nothing
_AS_DRAWN: Final = 4  # of so many calls one stays as it is drawn, whatever it proves


@dataclass(frozen=True, slots=True)
class Search:
    """Which calls are drawn: of these operators in turn, with tensors of at most so many bytes in all.

    illegal: every fourth call of an operator is an illegal one.
    """

    ops: tuple[str, ...]
    seed: int
    most: int
    illegal: bool = False

    def call(self, number: int, again: int = 0) -> tuple[str, Drawn | None]:
        """The operator of the number-th call, and what is drawn; None where no attempt is right.

        again: so many others were drawn in its place before.
        """
        op, own = self.ops[number % len(self.ops)], number // len(self.ops)
        if not self.illegal:
            return op, draw_call(domain_of(op), self.seed, own, self.most, again)
        before = (own + 1) // _ILLEGAL  # illegal calls up to this one
        if own % _ILLEGAL == _ILLEGAL - 1:
            return op, draw_illegal(domain_of(op), self.seed, before - 1)
        return op, draw_call(domain_of(op), self.seed, own - before, self.most, again)


@dataclass(frozen=True, slots=True)
class Supplied:
    """One call: with its file, or with what is wrong with the operator (its reference kernel raised, say).

    seconds: of the processor, for its values and its baseline.
    """

    op: str
    drawn: Drawn
    planned: PlannedCase | None
    problem: str = ""
    seconds: float = 0.0


def supplied(search: Search, number: int, folder: Path) -> Supplied | None:
    """The number-th call of a search; None where none is legal, or where it takes too long to be made.

    The main thread of a process calls it, and no other timer of the processor's time may run.
    """
    with suppress(_TooSlow), _limited(_SLOWEST):
        return _supplied(search, number, folder)
    return None


def _supplied(search: Search, number: int, folder: Path) -> Supplied | None:
    """The number-th call of a search; None where none is legal.

    Where a right kernel's pass would prove nothing, most often another call is drawn in its place: a window far from
    the feature, no site that reaches an output. UnavailableError where writing fails. Other errors of the reference
    kernel or the contract stand in the call's `problem`.
    """
    tries = 1 if number // len(search.ops) % _AS_DRAWN == 0 else 1 + _AGAIN
    for again in range(tries):
        call = _drawn_and_made(search, number, again, folder)
        if call is None or call.planned is None or again == tries - 1 or not _proves_nothing(call):
            return call
        for file in call.planned.files:
            Path(file).unlink(missing_ok=True)
    return None


def _proves_nothing(call: Supplied) -> bool:
    """Whether a legal call has a baseline that wrong outputs would agree with, or none."""
    assert call.planned is not None
    operator = operator_named(call.op)
    with read_case(Path(call.planned.file)) as case:
        bound = bind(case, operator)
        empty = all(bound.outputs[name].span == 0 for name in bound.compared)
        return SUCCESS in bound.expect and (empty or any(True for _ in check_weakness(case, operator)))


def _drawn_and_made(search: Search, number: int, again: int, folder: Path) -> Supplied | None:
    op, drawn = search.call(number, again)
    if drawn is None:
        return None
    for each in (drawn, drawn.plain()):  # the values may be outside of what check_values takes
        start = time.process_time()
        try:
            planned = make_case(op, SUITE, each.entry, folder)
            related = number // len(search.ops) % _RELATED == 0 and planned.size <= _RELATED_BYTES
            seconds = time.process_time() - start
            return Supplied(op, each, replace(planned, relations=related), seconds=seconds)
        except InputError:
            continue
        except UnavailableError:
            raise
        except MluopsError as error:
            return Supplied(op, each, None, str(error))
        except Exception as error:
            return Supplied(op, each, None, f"{type(error).__name__}: {error}")
    return None


def _chunk(search: Search, numbers: range, folder: Path) -> list[Supplied]:
    with stoppable():
        found = [supplied(search, number, folder) for number in numbers]
    return [each for each in found if each is not None]


class _TooSlow(BaseException):  # no Exception: what makes the call must not catch it
    """Making a call takes too long."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise _TooSlow after so many seconds of the processor, in the main thread of a worker.

    Seconds of a clock would leave out other calls on a loaded machine.
    """

    def stop(*_: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Supply:
    """Makes the calls of a search as fast as they are taken, in their order but for those that take long.

    handle is a descriptor that can be read when further calls are made.
    """

    def __init__(self, pool: ProcessPoolExecutor, search: Search, folder: Path, jobs: int, count: int | None) -> None:
        self.handle, self._done = os.pipe()
        for end in (self.handle, self._done):
            os.set_blocking(end, False)
        self._pool = pool
        self._search = search
        self._folder = folder
        self._most = _AHEAD * jobs
        self._count = count
        self._next = 0
        self._waiting: list[Future[list[Supplied]]] = []
        self._made: deque[Supplied] = deque()

    @property
    def exhausted(self) -> bool:
        """Whether all calls were made and taken."""
        return not self._made and not self._waiting and self._count is not None and self._next >= self._count

    def take(self, count: int) -> list[Supplied]:
        """At most so many calls, the first ones that are made, without waiting for those that aren't yet."""
        with suppress(BlockingIOError):
            os.read(self.handle, 1 << 16)
        while len(self._made) < count and (done := next((each for each in self._waiting if each.done()), None)):
            self._waiting.remove(done)
            try:
                self._made.extend(done.result())
            except BrokenProcessPool:
                raise MluopsError(
                    "a worker process that makes cases died (out of memory?); try a smaller --max-bytes"
                ) from None
        self._ask()
        return [self._made.popleft() for _ in range(min(count, len(self._made)))]

    def close(self) -> None:
        """Close the pipe; the workers must have ended before."""
        os.close(self.handle)
        os.close(self._done)

    def _tell(self, _: object) -> None:
        with suppress(BlockingIOError):  # enough is in the pipe to be read
            os.write(self._done, b"!")

    def _ask(self) -> None:
        while len(self._waiting) < self._most and (self._count is None or self._next < self._count):
            end = self._next + _CHUNK if self._count is None else min(self._count, self._next + _CHUNK)
            with stops_held():
                self._waiting.append(self._pool.submit(_chunk, self._search, range(self._next, end), self._folder))
            self._waiting[-1].add_done_callback(self._tell)
            self._next = end


@contextmanager
def supplying(
    search: Search, folder: Path, jobs: int, plugins: Sequence[Path], count: int | None = None
) -> Iterator[Supply]:
    """Worker processes that make the calls of a search; count of them, or without end.

    Other children that were started meanwhile must have ended before: a signal stops the workers.
    """
    context = multiprocessing.get_context("spawn")
    start: tuple[Any, ...] = (partial(load_plugins, tuple(plugins)), None)
    pool = ProcessPoolExecutor(jobs, context, start_worker, start)
    others = set(multiprocessing.active_children())
    supply = Supply(pool, search, folder, jobs, count)
    try:
        yield supply
    finally:
        for child in set(multiprocessing.active_children()) - others:
            with suppress(ProcessLookupError):
                os.kill(child.pid or 0, signal.SIGINT)
        pool.shutdown(wait=True, cancel_futures=True)
        supply.close()
