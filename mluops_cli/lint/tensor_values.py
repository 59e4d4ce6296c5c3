"""Rules on single tensors: number and range of values, their source, their size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from generators.contracts.binding import bind
from generators.contracts.model import LARGE
from generators.contracts.operator import Operator
from mluops_cli.lint.finding import ERROR, NOTE, WARNING, Finding
from schemas.casefiles.external_data import check_inside
from schemas.casefiles.reading import CaseFile
from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError, UnavailableError
from schemas.status import SUCCESS
from schemas.wire.codec import MAX_MESSAGE

_NEAR: Final = 0.9  # of a limit
_EVERY_FLOAT: Final = ("float", "complex_float", "double")  # dtypes that hold every value of value_f


def records(case: CaseFile) -> tuple[TensorRecord, ...]:
    """Return the tensors that are present, inputs first."""
    return tuple(record for record in (*case.inputs, *case.outputs) if not record.absent)


def expects_failure(case: CaseFile) -> bool:
    """Return whether this is a case of ours that an operator has to refuse."""
    return case.meta is not None and bool(case.meta.expect) and SUCCESS not in case.meta.expect


def check_values(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """As many values as elements, each in the dtype's range, in a file that may be read.

    Wrong values of outputs are warnings where the baseline is computed: nothing reads them.
    """
    unread = _unread(case, operator)
    for record in records(case):
        for finding in _check_values(record):
            lesser = finding.severity == ERROR and any(record is each for each in unread)
            yield replace(finding, severity=WARNING, fix="leave them out: they are not read") if lesser else finding


def _unread(case: CaseFile, operator: Operator | None) -> Sequence[TensorRecord]:
    """The outputs whose stored values nothing reads."""
    try:
        return () if bind(case, operator).carries_baseline else case.outputs
    except InputError:
        return ()  # check_contract reports it


def _check_values(record: TensorRecord) -> Iterator[Finding]:
    place = str(record.place)
    if not record.has_values:
        return
    try:
        if record.source == "path":
            check_inside(record.folder, record.header.path, record.place)
    except InputError as error:
        yield Finding(ERROR, "path", place, error.message, "move the external data beside the case file")
        return
    try:
        record.value_count()
        yield from _check_count(record)
        every_value_fits = record.source == "value_f" and record.dtype.name in _EVERY_FLOAT
        if record.source != "path" and not every_value_fits:
            for _ in record.blocks():
                pass
    except InputError as error:
        rule = "path" if record.source == "path" else "values"
        yield Finding(ERROR, rule, place, error.message)
    except UnavailableError as error:
        yield Finding(NOTE, "path", place, str(error))


def _check_count(record: TensorRecord) -> Iterator[Finding]:
    try:
        record.check_count()
    except InputError as error:
        fix = "correct the shape or the values: gen and run refuse it"
        yield Finding(ERROR, "count", str(record.place), error.message, fix)


def check_sources(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Which of several sources counts, and forms that are legal but rare."""
    for record in records(case):
        place, sources = str(record.place), record.sources
        if len(sources) > 1:
            others = ", ".join(sources[1:])
            yield Finding(NOTE, "sources", place, f"{len(sources)} data sources: {sources[0]} wins over {others}")
        if not record.elements:
            yield Finding(NOTE, "empty", place, f"shape {list(record.shape)} has zero elements")
        if record.strides is not None:
            text = f"strided: {list(record.shape)} with strides {list(record.strides)} spans {record.span} elements"
            yield Finding(NOTE, "strides", place, text)


def check_sizes(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Tensors and files near the limits of 32 bits, unless a case of ours tests these limits."""
    if expects_failure(case):
        return
    inline = 0.0
    for record in records(case):
        size = record.span * record.dtype.width
        if record.elements >= LARGE:
            text = f"{record.elements} elements, 2^31 or more: operators answer NOT_SUPPORTED, no data can be made"
            yield Finding(WARNING, "size", str(record.place), text)
        elif size >= _NEAR * LARGE:
            text = f"{size:.0f} bytes, near or beyond 2 GiB: byte offsets in 32 bits overflow"
            yield Finding(WARNING, "size", str(record.place), text, "use 64-bit offsets, or a smaller shape")
        if record.source not in ("path", "random_data", None):
            inline += size
    if inline >= _NEAR * MAX_MESSAGE:
        text = f"{inline:.0f} bytes of values in one message, which ends at {MAX_MESSAGE} bytes"
        yield Finding(WARNING, "size", str(case.path), text, "mluops convert --inline-limit 64MiB moves them out")
