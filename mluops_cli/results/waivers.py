"""Waivers: failures that are known, owned and bound to end; a waived case that passes is `xpass`."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from mluops_cli.core.record import Record
from mluops_cli.results.yaml_models import Strict, load_model

_WAIVABLE: Final = frozenset({"fail", "error", "crash", "timeout"})
_Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


def _date(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    elif isinstance(value, date):
        return value
    raise ValueError("expected a date such as 2026-12-31")


class Waiver(Strict):
    """One waiver: patterns with * and ?, and who answers for it; it holds to the end of the day `expires` (UTC)."""

    case: _Text = Field(description="pattern of case ids: operator/suite/name")
    implementation: _Text = Field(description="pattern of implementations, * for all")
    platform: _Text = Field(description="pattern of platforms such as linux-x86_64, * for all")
    reason: _Text = Field(description="why it fails")
    owner: _Text = Field(description="who will mend it")
    expires: Annotated[date, BeforeValidator(_date)] = Field(description="the last day on which it holds")
    issue: _Text = Field(description="link to the issue")

    def covers(self, record: Record, on: str) -> bool:
        """Whether the record's case, implementation and platform fit, expired or not."""
        return (
            fnmatchcase(record.case, self.case)
            and fnmatchcase(record.impl, self.implementation)
            and fnmatchcase(on, self.platform)
        )

    def as_record(self, status: str) -> dict[str, Any]:
        """What a record tells of the waiver, with the status without it."""
        return {**self.model_dump(mode="json"), "status": status}


class WaiverFile(Strict):
    """waivers.yaml."""

    waivers: list[Waiver]


class Waivers:
    """The waivers of a run on one platform and day."""

    def __init__(self, waivers: Sequence[Waiver], *, on: str | None = None, today: date | None = None) -> None:
        self.waivers = waivers
        self.platform = on or platform_name()
        self.today = today or datetime.now(timezone.utc).date()

    def __call__(self, record: Record) -> Record:
        """The record with the waivers applied: a failure becomes waived, a pass xpass.

        What is wrong with the case file or with mluops itself is not waived, and an expired waiver only told of.
        """
        failing = record.status in _WAIVABLE and record.blame in (None, "implementation")
        if not failing and record.status != "pass":
            return record
        covering = [each for each in self.waivers if each.covers(record, self.platform)]
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


def load_waivers(path: Path, *, on: str | None = None, today: date | None = None) -> Waivers:
    """Read waivers.yaml; InputError with every place that is wrong."""
    return Waivers(load_model(path, WaiverFile).waivers, on=on, today=today)


def platform_name() -> str:
    """What waivers call this machine: linux-x86_64."""
    return f"{platform.system()}-{platform.machine()}".lower()
