"""The options that decide what comes of a case: one value, from which everything that repeats a case is made.

The repro line, the check of --resume, replay, the workers of a Dask cluster and summary.json are made from it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, Final, Literal

from schemas.casefiles.enum_numbering import CURRENT
from schemas.errors import InputError, SourceLocation

Cache = Literal["fresh", "warm"]
BoundPolicy = Literal["report", "fail", "off"]
_FLAG: Final = "flag"


@dataclass(frozen=True)
class CaseOptions:
    """Everything besides the case file that decides what comes of a case.

    Each field has the name and the default of its option of `mluops run` (the flag is given where it differs). timeout
    and min_time are in seconds, memory in bytes, peak_bandwidth in bytes/s, peak_ops in operations/s. memory None: what
    the machine has. repeat None: one call, or with perf as many as the measurement takes. threads None: what the
    environment says (OMP_NUM_THREADS and the like), otherwise 1. device: the name of the device that runs the cases.
    """

    impl: str = "tiled"
    plugins: tuple[str, ...] = field(default=(), metadata={_FLAG: "--plugin"})
    enum_numbering: str = field(default=CURRENT, metadata={_FLAG: "--generation"})
    repeat: int | None = None
    timeout: float = 300.0
    memory: int | None = None
    threads: int | None = None
    compare: tuple[str, ...] = ()
    loose_nan: bool = False
    loose_zero: bool = False
    strict_tail: bool = False
    bound: BoundPolicy = "report"
    accumulate: str | None = None
    relations: bool = False
    perf: bool = False
    min_time: float = 0.2
    cache: Cache = "fresh"
    rotate: bool = False
    device: str | None = None
    peak_bandwidth: float | None = None
    peak_ops: float | None = None
    perf_gate: bool = False

    @cached_property
    def canonical(self) -> tuple[str, ...]:
        """The outputs that are compared in canonical form: OUTPUT of each --compare OUTPUT=canonical."""
        return tuple(each.partition("=")[0] for each in self.compare)

    @property
    def measured(self) -> bool:
        """Whether latencies are measured."""
        return self.perf or self.perf_gate

    def as_json(self) -> dict[str, Any]:
        """The options that are set, as summary.json holds them: name -> value."""
        return {name: value for name, value in asdict(self).items() if value not in (None, False, ())}

    @cached_property
    def digest(self) -> str:
        """The hash of all options, for records: two runs with equal digests run a case alike."""
        import xxhash  # here: --help needs no hash

        return xxhash.xxh3_64_hexdigest(json.dumps(asdict(self), sort_keys=True).encode())

    @cached_property
    def command_line(self) -> str:
        """The words, quoted for a shell."""
        return shlex.join(self.words())

    def words(self) -> list[str]:
        """The words of the command line that say the same; defaults are left out, but for --impl."""
        words = ["--impl", self.impl]
        for each in fields(self)[1:]:
            value, flag = getattr(self, each.name), each.metadata.get(_FLAG, f"--{each.name.replace('_', '-')}")
            if value is True:
                words.append(flag)
            elif isinstance(value, tuple):
                words += [word for item in value for word in (flag, item)]
            elif value != each.default:
                words += [flag, _exact(value) if isinstance(value, float) else str(value)]
        return words


def _exact(value: float) -> str:
    """The shortest text that reads back as the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def read_options(plain: Mapping[str, Any], impl: str, source: str) -> CaseOptions:
    """The options that a summary holds; keys of other versions are ignored.

    impl is the implementation of a summary that doesn't name it among its options (0.1.0). InputError where a value has
    the wrong type; source is the file that it names.
    """
    from pydantic import TypeAdapter, ValidationError

    names = {each.name for each in fields(CaseOptions)}
    known = {name: value for name, value in plain.items() if name in names}
    try:
        return TypeAdapter(CaseOptions).validate_python({"impl": impl} | known)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, ("options", *first["loc"])))
        raise InputError(f"{first['msg']}, found {first['input']!r:.60}", SourceLocation(source, key=key)) from None


def repro_line(options: CaseOptions, file: str, out: str) -> str:
    """The command that runs one case file alone with these options.

    Its results go to a folder of their own below out, so that they replace nothing that is there.
    """
    path = f"./{file}" if file.startswith("-") else file  # not to be taken for an option
    return f"mluops run {shlex.quote(path)} {options.command_line} --out {shlex.quote(f'{out}/{REPRO}')}"


REPRO: Final = "repro"


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker has to know besides its cases.

    folder is what relative paths count from; empty: that of the process. Outputs of failing cases of up to keep_outputs
    bytes are kept under the run's folder out.
    """

    options: CaseOptions
    folder: str = ""
    keep_outputs: int | None = None
    out: str = ""


def worker_settings(plain: Mapping[str, Any]) -> WorkerSettings:
    """Return the settings from the dictionary that dataclasses.asdict makes, or from its JSON form."""
    items = plain["options"].items()
    options: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in items}
    return WorkerSettings(**{**plain, "options": CaseOptions(**options)})
