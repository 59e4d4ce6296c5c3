"""Waivers: known failures, each with a reason, an owner and a last day. A waived case that passes becomes `xpass`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from generators.specs.mistakes import shown
from mluops_cli.core.hardware.machine import platform_name
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import FAILING
from mluops_cli.results.wildcards import PatternTable, matches
from mluops_cli.results.yaml_models import Strict, load_model

_WAIVABLE: Final = FAILING - {"xpass"}
_Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


def _date(value: Any) -> Any:
    if isinstance(value, str):
        with suppress(ValueError):
            return date.fromisoformat(value)
    elif isinstance(value, date):
        return value
    raise ValueError(f"found {shown(value)}, expected a date such as 2026-12-31")


class Waiver(Strict):
    """One waiver. It holds until the end of the day `expires` (UTC).

    Patterns: * is any text, ? any one character, everything else is literal.
    """

    case: _Text = Field(description="pattern of case ids: operator/suite/name")
    implementation: _Text = Field(description="pattern of implementations, * for all")
    platform: _Text = Field(description="pattern of platforms of the machine that ran the case, such as linux-x86_64")
    reason: _Text = Field(description="why it fails")
    owner: _Text = Field(description="who will mend it")
    expires: Annotated[date, BeforeValidator(_date)] = Field(description="the last day on which it holds")
    issue: _Text = Field(description="link to the issue")

    def as_record(self, status: str) -> dict[str, Any]:
        """What a record says of the waiver; status is the one that the case has without it."""
        return {**self.model_dump(mode="json"), "status": status}


class WaiverFile(Strict):
    """waivers.yaml."""

    waivers: list[Waiver]


class Waivers:
    """The waivers of a file, applied to records on one day.

    on: the platform of a record that doesn't say where it ran; None: this machine's.
    """

    def __init__(self, waivers: Sequence[Waiver], *, on: str | None = None, today: date | None = None) -> None:
        self.waivers = waivers
        self.platform = on or platform_name()
        self.today = today or datetime.now(timezone.utc).date()

    @cached_property
    def by_case(self) -> PatternTable[Waiver]:
        """The waivers, to be found by case id."""
        return PatternTable(self.waivers, lambda waiver: waiver.case)

    def __call__(self, record: Record) -> Record:
        """The record with the waivers applied: a failure becomes waived, a pass xpass.

        An error of the case file or of mluops itself is not waived. An expired waiver is only mentioned.
        """
        failing = record.status in _WAIVABLE and record.fails_by_implementation
        if not failing and record.status != "pass":
            return record
        covering = self._covering(record)
        holding = next((each for each in covering if each.expires >= self.today), None)
        if holding is not None:
            shown = holding.as_record(record.status)
            if not failing:
                reason = f"passes although it is waived ({holding.issue}): {holding.owner} can take the waiver away"
                return replace(record, status="xpass", reason=reason, waiver=shown)
            reason = f"{holding.reason} ({holding.issue}, {holding.owner}, until {holding.expires}): {record.reason}"
            return replace(record, status="waived", reason=reason, waiver=shown)
        if covering and failing:
            last = max(covering, key=lambda each: each.expires)
            note = f"the waiver of {last.owner} ({last.issue}) expired on {last.expires}"
            return replace(record, reason=f"{record.reason} ({note})")
        return record

    def _covering(self, record: Record) -> list[Waiver]:
        """The waivers whose patterns match the record, expired ones too."""
        platform = record.platform or self.platform
        return [
            waiver
            for waiver in self.by_case.find(record.case)
            if matches(record.impl, waiver.implementation) and matches(platform, waiver.platform)
        ]


def load_waivers(path: Path, *, on: str | None = None, today: date | None = None) -> Waivers:
    """Read waivers.yaml; InputError with every place that is wrong."""
    return Waivers(load_model(path, WaiverFile).waivers, on=on, today=today)
