"""The gate: the rules that a run must keep, read from a policy, and a sentence for each rule that it breaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol

from pydantic import Field

from mluops_cli.core.escaping import one_line
from mluops_cli.core.record import IDENTICAL, REPEAT_VERDICTS, VARIES_WITHIN, Record
from mluops_cli.core.statuses import PASSING
from mluops_cli.core.units import format_fraction
from mluops_cli.results.compare import Comparison, compare_runs
from mluops_cli.results.finished import FinishedRun
from mluops_cli.results.wildcards import matches
from mluops_cli.results.yaml_models import Strict, load_model
from schemas.errors import InputError
from schemas.suggest import counted

NAMED: Final = 3  # cases that a sentence names
_Count = Annotated[int, Field(ge=0)]
_Part = Annotated[float, Field(ge=0, le=1, strict=False)]
_Fraction = Annotated[float, Field(gt=0, le=1, strict=False)]


class EfficiencyRule(Strict):
    """Lower bounds for the efficiencies of passing cases. The larger of both efficiencies must reach `either`."""

    case: Annotated[
        str, Field(description="pattern of case ids, such as psamask_*/network/*; only * and ? are wildcards")
    ] = "*"
    io: _Fraction | None = None
    compute: _Fraction | None = None
    either: _Fraction | None = None


class Changes(Strict):
    """The changes since a base run that break the gate."""

    newly_failing: Annotated[bool, Field(description="a case fails that did not fail")] = True
    appeared: bool = False
    gone: bool = False
    changed: Annotated[bool, Field(description="a case has another status, such as skip instead of pass")] = False
    slow: Annotated[
        bool, Field(description="a case is slower, or passes without the measurement that it had in the base run")
    ] = False
    grown: Annotated[
        Annotated[float, Field(gt=1, strict=False)] | None,
        Field(description="no error grows by more than this factor"),
    ] = None


class Policy(Strict):
    """gate.yaml: the rules."""

    no_failures: Annotated[bool, Field(description="no fail, error, crash, timeout or xpass")] = True
    no_mistrusted: bool = True
    complete: Annotated[
        bool,
        Field(description="the run finished, every selected case has a result; a shard alone is not complete"),
    ] = True
    min_passed: Annotated[int, Field(ge=1, description="cases that pass; a run of nothing never holds")] = 1
    beyond_bound: Annotated[_Count | None, Field(description="cases that pass beyond their error bound, at most")] = (
        None
    )
    repeat: Annotated[
        Literal["identical", "within_bound"] | None,
        Field(description="how far outputs of passing cases may vary between repeats; needs mluops run --repeat"),
    ] = None
    max_waived: _Count | None = None
    max_skipped: _Count | None = None
    max_skipped_fraction: Annotated[
        _Part | None, Field(description="of every operator's valid cases, the fraction that may be skipped at most")
    ] = None
    min_cases: Annotated[
        dict[str, _Count], Field(description="operator -> cases that pass or are empty, at least")
    ] = {}  # noqa: RUF012 (pydantic copies it)
    efficiency: Annotated[
        list[EfficiencyRule], Field(description="lower bounds; a case without a valid measurement breaks them")
    ] = []  # noqa: RUF012
    against_base: Annotated[Changes | None, Field(description="compared with the run given as --base")] = None


class _OfCase(Protocol):
    @property
    def case(self) -> str: ...


def load_policy(path: Path) -> Policy:
    """Read gate.yaml; InputError that names every wrong place."""
    return load_model(path, Policy)


def broken_rules(run: FinishedRun, policy: Policy, base: FinishedRun | None = None) -> list[str]:
    """A sentence for each broken rule; InputError where the policy has rules on a base run and none is given."""
    if policy.against_base is not None and base is None:
        raise InputError("the policy has rules on against_base: name the run to compare with by --base")
    return [*_run_rules(run, policy), *_efficiency(run, policy), *_base_rules(run, policy, base)]


def _run_rules(run: FinishedRun, policy: Policy) -> Iterator[str]:
    counts = run.tally.counts
    if not run.records:
        yield "Nothing was run."
    elif counts["pass"] < policy.min_passed:
        yield f"{counted(counts['pass'], 'case')} passed, at least {policy.min_passed} must."
    if policy.no_failures and run.failing:
        yield f"{counted(len(run.failing), 'case')} failed: {_names(run.failing)}."
    if policy.beyond_bound is not None and run.tally.beyond > policy.beyond_bound:
        passed = counted(run.tally.beyond, "case passed", "cases passed")
        cases = _names([record for record in run.records if record.beyond])
        yield f"{passed} beyond the error bound, at most {policy.beyond_bound} may: {cases}."
    if policy.beyond_bound is not None and (run.summary.get("options") or {}).get("bound") == "off":
        yield "No case was held against its error bound: run without --bound off."
    if policy.repeat is not None:
        yield from _repeats(run, IDENTICAL if policy.repeat == "identical" else VARIES_WITHIN)
    if policy.no_mistrusted and counts["mistrusted"]:
        yield f"{counted(counts['mistrusted'], 'case')} passed without proving anything: {_of(run, 'mistrusted')}."
    if policy.complete and run.records and not run.complete:
        missing = f": {counted(run.not_run, 'case')} not run" if run.not_run else ", it was interrupted"
        yield f"The run did not finish{missing}."
    if policy.complete and run.tally.partial:
        yield f"The results are only shard {run.summary['shard']}: merge the shards first (mluops merge)."
    for status, word, most in (("waived", "waived", policy.max_waived), ("skip", "skipped", policy.max_skipped)):
        if most is not None and counts[status] > most:
            yield f"{counted(counts[status], 'case')} {word}, at most {most} may be: {_of(run, status)}."
    if counts["pass"] and not run.tally.partial:
        yield from (f"{sentence}." for sentence in run.tally.unproven_sentences)
    for op, skipped in sorted(run.tally.skipped.items()):
        fraction, limit = skipped / run.tally.valid[op], policy.max_skipped_fraction
        if limit is not None and fraction > limit:
            valid = f"{skipped} of {counted(run.tally.valid[op], 'valid case')} skipped"
            yield f"{op}: {valid} ({format_fraction(fraction)}), at most {format_fraction(limit)} may be."
    for op, least in policy.min_cases.items():
        found = sum(record.status in PASSING for record in run.by_operator.get(op, ()))
        if found < least:
            yield f"{op}: {counted(found, 'case')} validated, at least {least} must be."


def _repeats(run: FinishedRun, most: str) -> Iterator[str]:
    repeated = [record for record in run.records if record.repeat_verdicts]
    if not repeated:
        yield "No case has the outputs of several calls: run with --repeat 2."
    rank = REPEAT_VERDICTS.index(most)
    varying = [r for r in repeated if REPEAT_VERDICTS.index(r.worst_repeat or most) > rank]
    if varying:
        wanted = "be identical" if most == IDENTICAL else "vary within the error bound"
        cases = counted(len(varying), "case")
        yield f"{cases} with outputs that vary between repeats, they must {wanted}: {_names(varying)}."


def _efficiency(run: FinishedRun, policy: Policy) -> Iterator[str]:
    for rule in policy.efficiency:
        matching = [r for r in run.records if r.status == "pass" and r.legal and matches(r.case, rule.case)]
        measured = [record for record in matching if _is_measured(record)]
        if not measured:
            yield f"No passing case of {rule.case} has an efficiency: run with --perf."
            continue
        if len(measured) < len(matching):
            missing = [record for record in matching if not _is_measured(record)]
            yield f"{rule.case}: {counted(len(missing), 'case')} without a valid measurement: {_names(missing)}."
        for record in measured:
            known = [each for each in (record.io_efficiency, record.compute_efficiency) if each is not None]
            for what, value, least in (
                ("io efficiency", record.io_efficiency, rule.io),
                ("compute efficiency", record.compute_efficiency, rule.compute),
                ("the better efficiency", max(known), rule.either),
            ):
                if least is not None and (value is None or value < least):
                    found = "unknown" if value is None else format_fraction(value)
                    yield f"{one_line(record.case, 200)}: {what} is {found}, at least {format_fraction(least)} must be."


def _is_measured(record: Record) -> bool:
    """Whether the efficiencies are those of a valid measurement. A latency of 0 is an error of measurement."""
    efficiencies = (record.io_efficiency, record.compute_efficiency)
    return record.latency_us != 0 and any(each is not None for each in efficiencies)


def _base_rules(run: FinishedRun, policy: Policy, base: FinishedRun | None) -> Iterator[str]:
    if policy.against_base is not None and base is not None:
        growth = policy.against_base.grown
        found = compare_runs(base, run, growth) if growth else compare_runs(base, run)
        yield from broken_changes(found, policy.against_base)


def broken_changes(found: Comparison, rules: Changes) -> list[str]:
    """A sentence for each broken rule on changes."""
    checked: tuple[tuple[bool, Sequence[_OfCase], str], ...] = (
        (rules.newly_failing, found.newly_failing, "newly failing"),
        (rules.appeared, found.appeared, "not in the base run"),
        (rules.gone, found.gone, "gone since the base run"),
        (rules.changed, found.changed, "with another status than in the base run"),
        (rules.slow, found.timed("SLOW"), "slower than in the base run"),
        (rules.slow, found.unmeasured, "without the measurement that the base run has"),
        (rules.grown is not None, found.grown, f"with an error over {rules.grown or 0:g} times the base run's"),
    )
    return [
        f"{counted(len({each.case for each in cases}), 'case')} {what}: {_names(cases)}."
        for on, cases, what in checked
        if on and cases
    ]


def _of(run: FinishedRun, status: str) -> str:
    return _names([record for record in run.records if record.status == status])


def _names(cases: Sequence[_OfCase]) -> str:
    names = list(dict.fromkeys(one_line(each.case, 200) for each in cases))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
