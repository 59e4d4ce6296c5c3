"""The SQLite file of a history: the runs in the order in which they were added, and what each case came to."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import xxhash

from mluops_cli.core.case_options import CaseOptions, read_options
from mluops_cli.core.escaping import cut
from mluops_cli.core.record import Record
from mluops_cli.results.finished import FinishedRun, require_whole, run_files, worst
from schemas.errors import InputError, SourceLocation, UnavailableError

_MARK: Final = 0x6D6C756F  # application_id: "mluo"
_FORMAT: Final = 1
_WAIT: Final = 30.0  # seconds for another process that is writing
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, ref TEXT NOT NULL, started TEXT, impl TEXT NOT NULL,
    mluops TEXT, verdict TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS cases (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS settings (
    id INTEGER PRIMARY KEY, impl TEXT NOT NULL, platform TEXT NOT NULL, device TEXT NOT NULL, options TEXT NOT NULL,
    UNIQUE (impl, platform, device, options)
);
CREATE TABLE IF NOT EXISTS results (
    run INTEGER NOT NULL REFERENCES runs, case_id INTEGER NOT NULL REFERENCES cases,
    setting INTEGER NOT NULL REFERENCES settings, case_hash TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,
    criterion TEXT, value REAL, threshold REAL, bound_ratio REAL, latency_us REAL, low_us REAL, high_us REAL,
    PRIMARY KEY (case_id, setting, run)
) WITHOUT ROWID;
"""
_REASON: Final = 300  # characters
_JUDGING: Final = (  # the options that decide how the same outputs are judged
    "enum_numbering", "compare", "loose_nan", "loose_zero", "strict_tail", "bound", "accumulate", "relations",
    "perf_gate", "rotate",
)  # fmt: skip


class Run(NamedTuple):
    """A run of the history; its number counts from 1. ref is the commit, empty where nobody said it."""

    number: int
    ref: str
    verdict: str

    def __str__(self) -> str:
        return f"run {self.number}{f' ({self.ref})' if self.ref else ''}"


class Setting(NamedTuple):
    """What ran a case: latencies of different settings aren't compared.

    options: their hash and, behind a space, those that decide verdicts and aren't the default.
    """

    impl: str
    platform: str
    device: str
    options: str

    def __str__(self) -> str:
        return f"{self.impl} on {self.device or self.platform or 'an unknown device'}"

    @property
    def judging(self) -> str:
        """The options that decide verdicts and aren't the default, as on the command line."""
        return self.options.partition(" ")[2]


class Point(NamedTuple):
    """What a case came to in a run; the latency, in microseconds with its interval, is None where none was measured."""

    run: Run
    case_hash: str
    status: str
    reason: str
    bound_ratio: float | None
    latency: float | None
    low: float | None
    high: float | None


def _judging(run: FinishedRun) -> str:
    options = read_options(run.summary.get("options") or {}, run.impl, str(run_files(run.out)[1]))
    kept = CaseOptions(**{name: getattr(options, name) for name in _JUDGING})
    return shlex.join(kept.words()[2:])  # without --impl


class History:
    """The history in a file; InputError where it is none."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        if not create and not path.is_file():
            raise InputError(f"no such history: {path}; `mluops history add OUT` makes one")
        if not path.parent.is_dir():
            raise InputError(f"no such folder: {path.parent}")
        with self._reported():
            self._base = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
            self._check()

    def _check(self) -> None:
        place = SourceLocation(str(self.path))
        (mark,), (version,) = (
            self._base.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if not mark and not self._base.execute("SELECT 1 FROM sqlite_master").fetchone():
            # IF NOT EXISTS: another process may make them before this one has the lock.
            self._base.executescript(
                f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_MARK}; PRAGMA user_version = {_FORMAT}; COMMIT;"
            )
        elif mark != _MARK:
            raise InputError("a database, but no history of mluops", place)
        elif version != _FORMAT:
            raise InputError(f"a history of format {version}, this mluops reads format {_FORMAT}", place)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise UnavailableError(f"{self.path}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise InputError(f"no history of mluops: {error}", SourceLocation(str(self.path))) from None

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def add(self, run: FinishedRun, ref: str) -> tuple[Run, bool]:
        """Add a run as a whole; return it, and whether it is new: a run that is there already stays as it is.

        InputError for a shard, and for a run that was cut off before its first case.
        """
        require_whole(run)
        judging = _judging(run)
        results, _ = run_files(run.out)
        digest = xxhash.xxh3_128_hexdigest(results.read_bytes())
        with self._reported(), self._base as base:  # commits at the end, or undoes all
            base.execute("BEGIN IMMEDIATE")
            known = base.execute("SELECT id, ref, verdict FROM runs WHERE digest = ?", [digest]).fetchone()
            if known is not None:
                return Run(*known), False
            summary = run.summary
            row = [digest, ref, summary.get("started"), run.impl, summary.get("mluops"), run.verdict]
            fields = "digest, ref, started, impl, mluops, verdict"
            cursor = base.execute(f"INSERT INTO runs ({fields}) VALUES (?, ?, ?, ?, ?, ?)", row)
            number = cursor.lastrowid
            assert number is not None
            settings: dict[Setting, int] = {}
            for record in run.records:
                setting = Setting(
                    record.impl, record.platform, record.device, f"{record.options_hash} {judging}".strip()
                )
                if setting not in settings:
                    settings[setting] = self._number("settings", "impl, platform, device, options", setting)
                case = self._number("cases", "name", (record.case,))
                values = (number, case, settings[setting], *_figures(record))
                base.execute(f"INSERT INTO results VALUES ({', '.join('?' * len(values))})", values)
        return Run(number, ref, run.verdict), True

    def _number(self, table: str, columns: str, values: tuple[str, ...]) -> int:
        marks = ", ".join("?" * len(values))
        self._base.execute(f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})", values)
        found = self._base.execute(f"SELECT id FROM {table} WHERE ({columns}) = ({marks})", values).fetchone()
        return int(found[0])

    @property
    def runs(self) -> list[Run]:
        """The runs in the order in which they were added."""
        with self._reported():
            return [Run(*row) for row in self._base.execute("SELECT id, ref, verdict FROM runs ORDER BY id")]

    @property
    def cases(self) -> list[str]:
        """The ids of all cases, sorted."""
        with self._reported():
            return [name for (name,) in self._base.execute("SELECT name FROM cases ORDER BY name")]

    def points(self, case: str) -> dict[Setting, list[Point]]:
        """What a case came to, by what ran it, in the order of the runs."""
        columns = "impl, platform, device, options, run, ref, verdict, case_hash, status, reason, bound_ratio"
        query = f"""
            SELECT {columns}, latency_us, low_us, high_us
            FROM results JOIN cases ON cases.id = case_id JOIN settings ON settings.id = setting
            JOIN (SELECT id, ref, verdict FROM runs) AS listed ON listed.id = run
            WHERE name = ? ORDER BY run
        """
        found: dict[Setting, list[Point]] = {}
        with self._reported():
            for row in self._base.execute(query, [case]):
                found.setdefault(Setting(*row[:4]), []).append(Point(Run(*row[4:7]), *row[7:]))
        return found


def _figures(record: Record) -> tuple[object, ...]:
    """The columns of a result from case_hash on. A latency that --perf didn't measure is of a single cold call."""
    judged = worst(record)
    criterion = judged.criterion if judged is not None else {}
    low, high = record.latency_interval_us or (None, None)
    latency = record.latency_us if record.perf and "problem" not in record.perf else None
    figures = (criterion.get("value"), criterion.get("threshold"), record.bound_ratio, latency, low, high)
    name = f"{judged.output} {criterion.get('name')}" if judged is not None else None
    return (record.case_hash, record.status, cut(record.reason, _REASON), name, *figures)
