"""Which operator has which faulty implementations, and which cases of the suites catch each of them.

`python -m tests.faulty.catalogue` writes docs/faults.md; a slow test holds it against a new run.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.specs.expansion import expand_operator
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.core.record import BROKEN
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.implementations.python import Python
from tests.faulty import precision
from tests.faulty.precision import MODULES as MODULES
from tests.faulty.precision import PRECISION_FAULTS

EXACT: Final = "exact"
SUITES: Final = ("boundary", "general", "nan_inf", "zero_element", "invalid", EXACT)
PAGE: Final = Path(__file__).parents[2] / "docs" / "faults.md"
COMPUTED: Final = ("boundary", "general", "nan_inf", EXACT)  # suites whose cases compute something
_SHOWN: Final = 4  # cases named per fault
_PRECISION: Final = """\
## Faults of precision

What the thresholds of the designs let pass, and what sees it: tests/faulty/precision.py on the cases of boundary,
general and nan_inf, and on those of exact, whose threshold is 0. The column error bound (docs/judging.md) counts the
cases that are beyond it, whatever the thresholds say. Relations are tried where a case passes. A fault that treats all
items alike breaks none. Copies and rulebooks have no tolerance: their thresholds see everything.

- input: the values that are summed or copied, of get_indice_pairs the sites; grid: the coordinates of roi_crop.
- one_add: of the longest sum, the term of middle size is left out, or added twice; of a rulebook, a pair.
- one_element_off: the middle element other than 0, off by 1e-4 of the largest; of a rulebook, an input site, by one."""

Result = dict[str, Any]


def caught(result: Result) -> bool:
    """Whether the judge saw the fault: an error that isn't the implementation's own proves nothing."""
    assert result.get("blame") in (None, "implementation"), result
    return result["status"] in ("fail", "error")


def plugin(op: str) -> ModuleType:
    """The module of the operator's faulty implementations."""
    return importlib.import_module(f"tests.faulty.{MODULES[op]}")


def faults(op: str) -> list[str]:
    """The faults that can be injected into this operator."""
    module = plugin(op)
    return [name for name in module.FAULTS if op in getattr(module, "OPERATORS", {}).get(name, MODULES)]


def beyond_design(op: str) -> list[str]:
    """The deviations of this operator that neither its design nor the vendor calls wrong."""
    return list(getattr(plugin(op), "BEYOND_DESIGN", ()))


def run_all(
    files: Iterable[Path],
    op: str,
    name: str,
    until: Callable[[Result], bool] = lambda result: False,
    *,
    relations: bool = False,
) -> dict[str, Result]:
    """Case -> result of the plug-in's implementation of that name, up to the first result that satisfies until."""
    plug_in = Path(str(precision.__file__)) if name in PRECISION_FAULTS else Path(__file__).parent / f"{MODULES[op]}.py"
    implementation = Python(f"{plug_in}:{name}")
    settings = WorkerSettings(CaseOptions(implementation.name, relations=relations))
    results: dict[str, Result] = {}
    for file in files:
        result = run_case({"file": str(file), "manifest_meta": None}, implementation, settings)
        results[f"{file.parent.name}/{file.stem}"] = result
        if until(result):
            break
    return results


def precision_faults(op: str) -> list[str]:
    """The faults of precision that apply to this operator."""
    return [name for name, fault in PRECISION_FAULTS.items() if op in fault.operators]


@dataclass(frozen=True)
class Seen:
    """The cases that see a fault: by the thresholds, the error bound, the suite exact, the relations; and of how many.

    The suite exact is counted for itself. A relation is tried where the thresholds and exactness see nothing.
    """

    thresholds: list[str]
    bound: list[str]
    exact: list[str]
    relations: list[str]
    cases: int
    exact_cases: int


def seen_by(results: Mapping[str, Result]) -> Seen:
    """What sees the fault of an implementation with these results."""
    exact = {case for case in results if case.startswith(f"{EXACT}/")}
    broken = {
        case
        for case, result in results.items()
        if any(text.startswith(BROKEN) for text in result.get("relations", {}).values())
    }
    failing = {case for case, result in results.items() if caught(result)} - broken
    beyond = {case for case, result in results.items() if result.get("beyond_bound")}
    return Seen(
        sorted(failing - exact),
        sorted(beyond - exact),
        sorted(failing & exact),
        sorted(broken),
        len(results) - len(exact),
        len(exact),
    )


def page() -> str:
    """docs/faults.md, from running every faulty implementation on every case of the small suites."""
    lines = [
        "# Which case catches which fault",
        "",
        "Generated by `make faults`: every faulty implementation of tests/faulty on every case of the suites"
        f" {', '.join(SUITES)}. A fault's cases are counted, the first of them named.",
        "",
    ]
    table = [*_PRECISION.splitlines(), ""]
    table += [
        "| operator | fault | thresholds alone | error bound | exact | relations |",
        "| --- | --- " + "| ---: " * 4 + "|",
    ]
    for op in MODULES:
        with tempfile.TemporaryDirectory() as folder:
            for case in expand_operator(op, set(SUITES)):
                generate(case, WriteOptions(Path(folder)))
            files = sorted(Path(folder).rglob("*.pb"))
            lines += _section(op, files)
            table += _precision_rows(op, [file for file in files if file.parent.name in COMPUTED])
    return "\n".join([*lines, *table]).rstrip() + "\n"


def _precision_rows(op: str, files: list[Path]) -> Iterator[str]:
    for name in precision_faults(op):
        seen = seen_by(run_all(files, op, name, relations=True))
        exact = f"{len(seen.exact)} of {seen.exact_cases}" if seen.exact_cases else "no such suite"
        columns = [op, name, *(f"{len(each)} of {seen.cases}" for each in (seen.thresholds, seen.bound)), exact]
        yield f"| {' | '.join(columns)} | {len(seen.relations)} |"


def _section(op: str, files: list[Path]) -> list[str]:
    lines = [f"## {op}", "", "| fault | caught by | among them |", "| --- | ---: | --- |"]
    catches: Counter[str] = Counter()
    for name in faults(op):
        results = run_all(files, op, name)
        seen = [case for case, result in results.items() if caught(result)]
        if name != "writes_nothing":  # which nearly every case catches
            catches.update(seen)
        more = ", ..." if len(seen) > _SHOWN else ""
        lines.append(f"| {name} | {len(seen)} | {', '.join(seen[:_SHOWN])}{more} |")
    suites = Counter(file.parent.name for file in files)
    useful = Counter(file.parent.name for file in files if catches[f"{file.parent.name}/{file.stem}"])
    counted = ", ".join(f"{useful[suite]} of {suites[suite]} in {suite}" for suite in sorted(suites))
    return [*lines, "", f"Cases that catch at least one fault (writes_nothing aside): {counted}.", ""]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE} written\n")
