"""The gate: what must hold of a run, as a policy that people write, and a sentence for everything that doesn't."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Final, Protocol

from pydantic import Field

from mluops_cli.core.escaping import one_line
from mluops_cli.results.compare import Comparison, compare_runs
from mluops_cli.results.finished import FinishedRun
from mluops_cli.results.yaml_models import Strict, load_model
from schemas.errors import InputError

NAMED: Final = 3  # cases a sentence names
_Count = Annotated[int, Field(ge=0)]
_Share = Annotated[float, Field(gt=0, le=1, strict=False)]


class Floor(Strict):
    """A lower bound for efficiencies of the passing cases that match; `either` is met by the larger of the two."""

    case: Annotated[str, Field(description="pattern of case ids, such as psamask_*/network/*")] = "*"
    io: _Share | None = None
    compute: _Share | None = None
    either: _Share | None = None


class Changes(Strict):
    """What of a comparison with a base run breaks the gate."""

    newly_failing: Annotated[bool, Field(description="a case fails that didn't")] = True
    appeared: bool = False
    gone: bool = False
    changed: Annotated[bool, Field(description="a case has another status, such as skip instead of pass")] = False
    slow: bool = False
    grown: Annotated[
        Annotated[float, Field(gt=1, strict=False)] | None,
        Field(description="no error grows by more than this factor"),
    ] = None


class Policy(Strict):
    """gate.yaml: rules that are on or off, and rules with a number."""

    no_failures: Annotated[bool, Field(description="no fail, error, crash, timeout or xpass")] = True
    no_mistrusted: bool = True
    complete: Annotated[bool, Field(description="the run came to its end, every selected case has a result")] = True
    min_passed: Annotated[int, Field(ge=1, description="cases that pass; a run of nothing never holds")] = 1
    max_waived: _Count | None = None
    max_skipped: _Count | None = None
    min_cases: Annotated[
        dict[str, _Count], Field(description="operator -> cases that pass or are empty, at least")
    ] = {}  # noqa: RUF012 (pydantic copies it)
    efficiency: Annotated[list[Floor], Field(description="lower bounds")] = []  # noqa: RUF012
    against_base: Annotated[Changes | None, Field(description="compared with the run given as --base")] = None


class _OfCase(Protocol):
    @property
    def case(self) -> str: ...


def load_policy(path: Path) -> Policy:
    """Read gate.yaml; InputError with every place that is wrong."""
    return load_model(path, Policy)


def broken_rules(run: FinishedRun, policy: Policy, base: FinishedRun | None = None) -> list[str]:
    """A sentence per rule that doesn't hold; InputError where the policy compares with a base run and there is none."""
    if policy.against_base is not None and base is None:
        raise InputError("the policy has rules on against_base: name the run to compare with by --base")
    return [*_run_rules(run, policy), *_efficiency(run, policy), *_base_rules(run, policy, base)]


def _run_rules(run: FinishedRun, policy: Policy) -> Iterator[str]:
    counts = run.tally.counts
    if not run.records:
        yield "Nothing was run."
    elif counts["pass"] < policy.min_passed:
        yield f"{_cases(counts['pass'])} passed, at least {policy.min_passed} must."
    if policy.no_failures and run.failing:
        yield f"{_cases(len(run.failing))} failed: {_names(run.failing)}."
    if policy.no_mistrusted and counts["mistrusted"]:
        yield f"{_cases(counts['mistrusted'])} passed without proving anything: {_of(run, 'mistrusted')}."
    if policy.complete and run.records and not run.complete:
        missing = f": {_cases(run.not_run)} not run" if run.not_run else ", it was interrupted"
        yield f"The run did not come to its end{missing}."
    for status, word, most in (("waived", "waived", policy.max_waived), ("skip", "skipped", policy.max_skipped)):
        if most is not None and counts[status] > most:
            yield f"{_cases(counts[status])} {word}, at most {most} may be: {_of(run, status)}."
    for op, least in policy.min_cases.items():
        found = sum(record.status in ("pass", "empty") for record in run.by_operator.get(op, ()))
        if found < least:
            yield f"{op}: {_cases(found)} validated, at least {least} must be."


def _efficiency(run: FinishedRun, policy: Policy) -> Iterator[str]:
    for floor in policy.efficiency:
        matching = (each for each in run.records if each.status == "pass" and fnmatchcase(each.case, floor.case))
        measured = [r for r in matching if r.io_efficiency is not None or r.compute_efficiency is not None]
        if not measured:
            yield f"No passing case of {floor.case} has an efficiency: run with --perf."
        for record in measured:
            io, compute = record.io_efficiency or 0.0, record.compute_efficiency or 0.0
            for what, value, least in (
                ("io efficiency", io, floor.io),
                ("compute efficiency", compute, floor.compute),
                ("the better efficiency", max(io, compute), floor.either),
            ):
                if least is not None and value < least:
                    yield f"{one_line(record.case, 200)}: {what} is {value:.1%}, at least {least:.1%} must be."


def _base_rules(run: FinishedRun, policy: Policy, base: FinishedRun | None) -> Iterator[str]:
    if policy.against_base is not None and base is not None:
        growth = policy.against_base.grown
        found = compare_runs(base, run, growth) if growth else compare_runs(base, run)
        yield from broken_changes(found, policy.against_base)


def broken_changes(found: Comparison, rules: Changes) -> list[str]:
    """A sentence per rule on changes that doesn't hold."""
    told: tuple[tuple[bool, Sequence[_OfCase], str], ...] = (
        (rules.newly_failing, found.newly_failing, "newly failing"),
        (rules.appeared, found.appeared, "not in the base run"),
        (rules.gone, found.gone, "gone since the base run"),
        (rules.changed, found.changed, "with another status than in the base run"),
        (rules.slow, found.timed("SLOW"), "slower than in the base run"),
        (rules.grown is not None, found.grown, f"with an error over {rules.grown or 0:g} times the base run's"),
    )
    return [
        f"{_cases(len({each.case for each in cases}))} {what}: {_names(cases)}."
        for on, cases, what in told
        if on and cases
    ]


def _of(run: FinishedRun, status: str) -> str:
    return _names([record for record in run.records if record.status == status])


def _names(cases: Sequence[_OfCase]) -> str:
    names = list(dict.fromkeys(one_line(each.case, 200) for each in cases))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _cases(number: int) -> str:
    return f"{number} case" if number == 1 else f"{number} cases"
