"""The record of a case: one line of results.jsonl."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mluops_cli.core.statuses import FAILING, STATUSES, Blame, Status
from mluops_cli.core.tally import Counted
from schemas.status import SUCCESS

if TYPE_CHECKING:
    from msgspec.json import Decoder

RESULTS: Final = "results.jsonl"

# How the outputs of repeated calls differ, the worst last.
IDENTICAL: Final = "identical"
VARIES_WITHIN: Final = "varies_within_bound"
VARIES_UNBOUNDED: Final = "varies"  # an output without an error bound
VARIES_BEYOND: Final = "varies_beyond_bound"
REPEAT_VERDICTS: Final = (IDENTICAL, VARIES_WITHIN, VARIES_UNBOUNDED, VARIES_BEYOND)

# What is said of a relation; where and why follows the last two.
HOLDS: Final = "holds"
BROKEN: Final = "broken: "
NOT_RUN: Final = "not run: "


@dataclass(slots=True)
class Record:
    """The result of one case. Times end in their unit (_us: microseconds; seconds), sizes are in bytes.

    blame: what an `error` is the fault of. place: file and line of the spec. tensors: name -> role (input, output),
    dtype, layout, dims. params: the operator's parameters, with defaults filled in. latency_us: the operator's time;
    interface_us: the time of the whole call on the host; latency_interval_us: the 95 % confidence interval of the
    latency. waiver: the waiver that holds, and the status without it. perf: with --perf, how the latency was measured
    and against which peaks (execution/perf/measure.py). worker: the worker of a Dask cluster that ran the case.
    outputs_kept: with --keep-outputs, the case file with the outputs of a failing case, or why there is none.
    platform and device: what ran the case, such as linux-x86_64 and the name of the accelerator or the processor.
    case_hash: the hash of the case file with its external data (core/fingerprint.py), options_hash: the hash of the
    options (CaseOptions.digest); --resume compares both.
    beyond_design: no design demands the expected statuses, so any answer passes.
    unverified: the results besides the outputs (num_act_out) that the implementation left out.
    beyond_bound: whether an output is further from the baseline than any correct kernel's; None where none has a bound.
    outputs.NAME.repeat: with --repeat, how the output of later calls differs from the first: identical,
    varies_within_bound (by no more than twice the error bound), varies_beyond_bound (a race) or varies (no error bound
    tells how much is right); null with one call.
    programs: those that the kernel's process had started until then, in this case or an earlier one. Compilers and
    tools that tell what the machine has are left out.
    relations: with --relations, per relation of the contract `holds`, `broken: ` and where, or `not run: ` and why.
    """

    case: str
    op: str
    suite: str
    file: str
    impl: str
    status: Status
    reason: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)
    operator_status: str | None = None
    expected_status: list[str] = field(default_factory=list)
    latency_us: float | None = None
    io_efficiency: float | None = None
    compute_efficiency: float | None = None
    workspace_bytes: int | None = None
    repeats: int = 0
    bit_identical: bool | None = None
    blame: Blame | None = None
    seconds: float | None = None
    printed: str = ""
    repro: str = ""
    place: str = ""
    tags: list[str] = field(default_factory=list)
    tensors: dict[str, Any] = field(default_factory=dict)
    interface_us: float | None = None
    latency_interval_us: list[float] | None = None
    waiver: dict[str, Any] | None = None
    perf: dict[str, Any] | None = None
    worker: str = ""
    outputs_kept: str = ""
    platform: str = ""
    device: str = ""
    case_hash: str = ""
    options_hash: str = ""
    beyond_design: bool = False
    beyond_bound: bool | None = None
    unverified: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    relations: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def legal(self) -> bool:
        """Whether the operator must accept the case: no status but SUCCESS is expected."""
        return not self.expected_status or self.expected_status == [SUCCESS]

    @property
    def counted(self) -> Counted:
        """What a tally counts of the record."""
        worst = self.worst_repeat or ""
        return Counted(self.status, self.blame, self.unexpected, self.beyond, self.op, self.legal, worst)

    @property
    def fails_by_implementation(self) -> bool:
        """Whether the case fails, and not because the case file is wrong or mluops fails."""
        return self.status in FAILING and self.blame in (None, "implementation")

    @property
    def unexpected(self) -> bool:
        """Whether a case beyond the design was answered with another status than the expected ones."""
        return self.beyond_design and self.operator_status not in (None, *self.expected_status)

    @property
    def beyond(self) -> bool:
        """Whether an output is beyond its error bound and the case doesn't fail."""
        return bool(self.beyond_bound) and self.status not in FAILING

    @property
    def bound_ratio(self) -> float | None:
        """The largest error of all outputs in units of their error bounds; None where no output has a bound."""
        ratios: list[float] = []
        for found in self.outputs.values():  # a loop that most often finds nothing takes half the time of two lists
            ratio = found.get("bound_ratio") if isinstance(found, dict) else None
            if ratio is not None and (ratio == "inf" or type(ratio) in (int, float)):
                ratios.append(float(ratio))
        return max(ratios) if ratios else None

    @property
    def beyond_sentences(self) -> list[str]:
        """Where each output that is beyond its error bound is so by most: `output: [0, 3]: 9690 x what ...`."""
        held = {name: found.get("bound_sentence") for name, found in self.outputs.items() if isinstance(found, dict)}
        return [f"{name}: {sentence}" for name, sentence in held.items() if sentence]

    @property
    def unstable(self) -> list[str]:
        """The outputs that differ between repeats by more than rounding explains."""
        return [name for name, verdict in self.repeat_verdicts.items() if verdict == VARIES_BEYOND]

    @property
    def repeat_verdicts(self) -> dict[str, str]:
        """How each output of repeated calls differs from that of the first: output -> one of REPEAT_VERDICTS."""
        verdicts: dict[str, str] = {}
        for name, found in self.outputs.items():
            verdict = found.get("repeat") if isinstance(found, dict) else None
            if verdict is not None and verdict in REPEAT_VERDICTS:
                verdicts[name] = verdict
        return verdicts

    @property
    def worst_repeat(self) -> str | None:
        """The worst of these verdicts; None with one call."""
        verdicts = self.repeat_verdicts
        return max(verdicts.values(), key=REPEAT_VERDICTS.index) if verdicts else None

    @property
    def params_text(self) -> str:
        """The parameters in one line: `h_mask=3, pad=[1, 1]`."""
        return ", ".join([f"{name}={value}" for name, value in self.params.items()])

    @property
    def relations_not_run(self) -> dict[str, str]:
        """The relations that the implementation could not be tried on, and why."""
        texts = {name: text for name, text in self.relations.items() if isinstance(text, str)}
        return {name: text.removeprefix(NOT_RUN) for name, text in texts.items() if text.startswith(NOT_RUN)}

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON can hold it: NaN and Inf become null, halves of surrogate pairs escapes."""
        return {name: _plain(getattr(self, name)) for name in _NAMES}


_NAMES: Final = tuple(each.name for each in fields(Record))


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line of results.jsonl."""
    from pydantic import TypeAdapter

    return TypeAdapter(Record).json_schema()


class RecordError(ValueError):
    """A value of a record has the wrong type."""


def parse_record(line: bytes) -> Record:
    """Return a line of results.jsonl as a record; keys of a newer version are ignored.

    ValueError where the line is no JSON, RecordError for a value of the wrong type.
    """
    try:
        record = _decoder().decode(line)
    except _msgspec().ValidationError as error:
        raise _refusal(error) from None
    except _msgspec().DecodeError:  # json accepts NaN and halves of surrogate pairs too
        return read_record(json.loads(line))
    return _checked(record)


def read_record(line: Mapping[str, Any]) -> Record:
    """Return the object of such a line as a record, as `parse_record` does."""
    msgspec = _msgspec()
    try:
        record = msgspec.convert(line, Record)
    except msgspec.ValidationError as error:
        raise _refusal(error) from None
    return _checked(record)


@cache
def _msgspec() -> Any:
    import msgspec  # here: a run only writes

    return msgspec


@cache
def _decoder() -> Decoder[Record]:
    decoder: Decoder[Record] = _msgspec().json.Decoder(Record)
    return decoder


def _refusal(error: Exception) -> RecordError:
    """The error with its key before msgspec's words, and with the statuses where one of them is expected."""
    words, _, place = str(error).replace("`", "").partition(" - at $")
    key = place.removeprefix(".")
    statuses = f", expected one of {', '.join(STATUSES)}" if key == "status" else ""
    return RecordError(f"{key}: {words[0].lower()}{words[1:]}{statuses}" if key else words)


def _checked(record: Record) -> Record:
    """RecordError where outputs are not as the reports read them."""
    for name, output in record.outputs.items():
        if not isinstance(output, dict) or not _all_dicts(output.get("criteria", [])):
            raise RecordError(f"outputs.{name} is {output!r:.60}, expected an object with a list of criteria")
    return record


def _all_dicts(criteria: Any) -> bool:
    if not isinstance(criteria, list):
        return False
    for each in criteria:  # noqa: SIM110 (a generator costs as much as the whole record)
        if not isinstance(each, dict):
            return False
    return True


def _plain(value: Any) -> Any:
    """A value as JSON can hold it. The types are those of JSON or a tuple: most values come from a worker's message."""
    kind = type(value)  # a record has some forty values: isinstance would take three times as long
    if kind is str:  # readers of JSON refuse halves of surrogate pairs
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is dict:
        return {str(key): _plain(each) for key, each in value.items()}
    if kind is list or kind is tuple:
        return [_plain(each) for each in value]
    return value
