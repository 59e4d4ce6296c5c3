"""The HTML report: one self-contained file, from the verdict to every failing case.

Texts that aren't ours reach the page in two ways only: escaped by the template, or as JSON that the page's script puts
into text nodes. A content security policy allows only our script, by its hash, and no request at all.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, starmap
from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mluops_cli.core.escaping import clipped, one_line, visible
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import FAILING, STATUSES
from mluops_cli.core.units import format_bytes, format_fraction, format_microseconds
from mluops_cli.reports.cautions import TITLES, Caution, beyond_text, cautions_of, repeats_summary, repeats_text
from mluops_cli.reports.html.anchors import anchor
from mluops_cli.reports.html.charts import Point, decade_histogram, density_strip, latency_ratios, roofline
from mluops_cli.reports.performance import describe_peaks, interval_text, perf_value, rated, remark
from mluops_cli.results.finished import FinishedRun
from schemas.suggest import counted

TEMPLATES: Final = Path(__file__).with_name("templates")
GROUPS: Final = 50  # kinds of failures that are listed
SECTIONS: Final = 1000  # cases with a section of their own; the list of cases has all
_SHOWN: Final = FAILING | {"mistrusted", "waived"}
_NAME: Final = 300  # characters of a name or reason in the list; sections show more
_PRINTED: Final = 20_000
_TIMED: Final = 500  # rows of the performance table; the CSV file has all
Doubts = Mapping[str, Sequence[Caution]]  # case -> its doubts


def html_text(run: FinishedRun, base: FinishedRun | None = None) -> str:
    """The report of a run; latencies are compared with those of an earlier run, base."""
    script = template_text("report.js")
    doubts = {record.case: found for record, found in cautions_of(run)}
    shown = [record for record in run.records if record.case in doubts or _has_section(record)]
    shown.sort(key=lambda record: (STATUSES.index(record.status), record.case))
    described = shown[:SECTIONS]
    sections = {record.case: anchor(record.case) for record in described}
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment().get_template("report.html.j2").render(
        run=run,
        statuses=[status for status in STATUSES if run.tally.counts[status]],
        doubts=_doubts(run, doubts),
        cautions=doubts,
        titles=TITLES,
        operators=sorted({op for op, _ in run.matrix}),
        suites=sorted({suite for _, suite in run.matrix}),
        sections=[(sections[record.case], record) for record in described],
        groups=run.failure_groups[:GROUPS],
        more_groups=max(0, len(run.failure_groups) - GROUPS),
        anchors=sections,
        left_out=len(shown) - len(described),
        facts=_facts(run),
        timed=(timed := rated(run.records))[:_TIMED],
        timed_left_out=max(0, len(timed) - _TIMED),
        peaks=describe_peaks(timed),
        failing=FAILING,
        roofline=_roofline(run),
        latency=_latency(run, base) if base else None,
        before=base.by_case if base else {},
        base=base,
        style=Markup(template_text("report.css")),
        script=Markup(script),
        digest=digest,
        data=_json(_data(run, sections, doubts)),
    )  # fmt: skip


def _has_section(record: Record) -> bool:
    """Whether the case failed, or passed in a way that a person should look at, doubts apart."""
    return record.status in _SHOWN or record.unexpected


def _doubts(run: FinishedRun, doubts: Doubts) -> dict[str, Counter[tuple[str, str]]]:
    """Kind of doubt -> (operator, suite) -> its cases."""
    found: dict[str, Counter[tuple[str, str]]] = {word: Counter() for word in TITLES}
    for record in run.records if doubts else ():
        for caution in doubts.get(record.case, ()):
            found[caution.word][record.op, record.suite] += 1
    return found


@cache
def environment() -> Environment:
    """What templates are rendered with: their filters and functions."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "visible": visible,
        "one_line": one_line,
        "clipped": lambda text: clipped(text, _PRINTED),
        "number": number,
        "counted": counted,
        "time": _or_dash(format_microseconds),
        "size": _or_dash(format_bytes),
        "percent": percent,
        "value": _value,
        "density": density_strip,
        "histogram": decade_histogram,
    }
    environment.globals |= {"cell_state": _cell_state, "section_facts": section_facts}
    environment.globals |= {"interval": interval_text, "perf_value": perf_value, "remark": remark}
    return environment


def _cell_state(
    counts: Mapping[str, int], doubts: Mapping[str, Mapping[tuple[str, str], int]], cell: tuple[str, str]
) -> str:
    """The class of a cell of the matrix: its worst status; a doubt is worse than all that don't fail."""
    status = next((status for status in STATUSES if counts[status]), "pass")
    return status if status in FAILING else next((word for word in doubts if doubts[word][cell]), status)


@cache
def template_text(name: str) -> str:
    """A file beside the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def number(value: Any) -> str:
    """A number with at most six digits; a dash where there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "–" if value is None else one_line(str(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def percent(value: float | None) -> str:
    """A fraction in percent; a dash where there is none."""
    return "–" if value is None else format_fraction(value)


def _or_dash(formatted: Callable[[float], str]) -> Callable[[float | None], str]:
    return lambda value: "–" if value is None else formatted(value)


def _value(value: Any) -> str:
    """An element's value as the diagnosis holds it: null stands for NaN and Inf, which JSON doesn't have."""
    if value is None:
        return "NaN or Inf"
    return f"({number(value[0])}, {number(value[1])})" if isinstance(value, list) and len(value) == 2 else number(value)


def _data(run: FinishedRun, sections: Mapping[str, str], doubts: Doubts) -> dict[str, Any]:
    """The list of cases: each word once, and a short row per case."""
    ops: dict[str, int] = {}
    suites: dict[str, int] = {}
    statuses = {status: place for place, status in enumerate(STATUSES)}
    words = {word: place for place, word in enumerate(TITLES)}
    doubted = {case: [words[caution.word] for caution in found] for case, found in doubts.items()}
    rows = [
        [
            one_line(record.case, _NAME),
            ops.setdefault(record.op, len(ops)),
            suites.setdefault(record.suite, len(suites)),
            statuses[record.status],
            one_line(record.reason, _NAME),
            one_line(str(found), _NAME) if found else "",
            found.criterion.get("margin") if found else None,
            record.latency_us,
            record.seconds,
            sections.get(record.case, ""),
            doubted.get(record.case, ()),
        ]
        for record, found in zip(run.records, run.worst, strict=True)
    ]
    places = {"op": ops, "suite": suites, "status": statuses, "doubt": words}
    return {kind: [one_line(word, _NAME) for word in words] for kind, words in places.items()} | {"rows": rows}


def _json(data: Any) -> Markup:
    """JSON for a script element: the HTML parser sees no < or & in it."""
    text = msgspec.json.encode(data).decode()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _facts(run: FinishedRun) -> list[tuple[str, str]]:
    """Facts about the run and its environment, as far as the summary has them."""
    summary = run.summary
    facts = [("implementation", run.impl), ("mluops", summary.get("mluops")), ("started", summary.get("started"))]
    if isinstance(seconds := summary.get("seconds"), (int, float)):
        facts.append(("duration", f"{seconds:.1f} s"))
    facts += [("exit code", run.exit_code), ("repeated cases", repeats_summary(run.tally.repeats))]
    facts += [("results", run.out.name)]
    environment = summary.get("environment") or {}
    if isinstance(memory := environment.get("memory"), (int, float)):
        environment = environment | {"memory": format_bytes(memory)}
    facts += [("device", environment.get("device"))]
    facts += [(str(name), value) for name, value in environment.items() if name != "device"]
    return [(one_line(name), one_line(str(value))) for name, value in facts if value not in (None, "")]


def _roofline(run: FinishedRun) -> Markup | None:
    points = _efficiencies(run)
    first = next(points, None)
    return roofline(chain([first], points)) if first else None


def _efficiencies(run: FinishedRun) -> Iterator[Point]:
    for record in run.records:
        io, compute = record.io_efficiency, record.compute_efficiency
        if io is None and compute is None:
            continue
        io, compute = io or 0.0, compute or 0.0
        # A case without arithmetic is drawn at the left edge, as far below the roof as its io efficiency is below 1.
        x = compute / io if io > 0 and compute > 0 else (1e-3 if io > 0 else 1e3)
        label = f"{one_line(record.case, _NAME)}: io {format_fraction(io)}, compute {format_fraction(compute)}"
        yield Point(x, compute or io * x, label, "network" if record.suite == "network" else "")


def _latency(run: FinishedRun, base: FinishedRun) -> Markup | None:
    earlier = base.by_case
    both = [
        (record.case, before.latency_us, record.latency_us)
        for record in run.records
        if record.latency_us and (before := earlier.get(record.case)) is not None and before.latency_us
    ]
    return latency_ratios(starmap(_ratio, both), [before for _, before, _ in both]) if both else None


def _ratio(case: str, before: float, now: float) -> Point:
    ratio = now / before
    label = f"{one_line(case, _NAME)}: {format_microseconds(before)} before, {format_microseconds(now)} now"
    return Point(before, ratio, label, "slow" if ratio > 1.05 else "fast" if ratio < 0.95 else "")


def section_facts(record: Record) -> list[tuple[str, str]]:
    """Facts about a case besides its outputs."""
    tensors = "; ".join(
        f"{name}: {each.get('dtype')} {each.get('layout')} {each.get('dims')}" for name, each in record.tensors.items()
    )
    expected = " or ".join(record.expected_status)
    facts = [
        ("case file", record.file), ("spec", record.place), ("parameters", record.params_text),
        ("tensors", tensors), ("expected status", expected),
        ("operator status", record.operator_status or ""),
        ("beyond the design", "no design demands the expected status" if record.beyond_design else ""),
        ("beyond the error bound", beyond_text(record) if record.status in FAILING else ""),
        ("repeats", str(record.repeats) if record.repeats > 1 else ""),
        ("bit-identical repeats", "" if record.bit_identical is None else ("yes" if record.bit_identical else "no")),
        ("outputs of repeats", repeats_text(record)),
        ("latency", "" if record.latency_us is None else format_microseconds(record.latency_us)),
        ("95 % interval of the latency", interval_text(record)),
        ("interface time", "" if record.interface_us is None else format_microseconds(record.interface_us)),
        ("io efficiency", "" if record.io_efficiency is None else percent(record.io_efficiency)),
        ("compute efficiency", "" if record.compute_efficiency is None else percent(record.compute_efficiency)),
        ("peaks", "; ".join(describe_peaks([record]))), ("measurement", remark(record)),
        ("workspace", "" if record.workspace_bytes is None else format_bytes(record.workspace_bytes)),
        ("device", record.device),
        ("worker", record.worker),
        ("wrong outputs", record.outputs_kept),
    ]  # fmt: skip
    if record.waiver:
        words = ", ".join(f"{name}: {value}" for name, value in record.waiver.items())
        facts.append(("waiver", words))
    return [(name, one_line(value, 2000)) for name, value in facts if value]
