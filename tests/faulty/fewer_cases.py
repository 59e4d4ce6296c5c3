"""What fewer cases keep: time against kills of the catalogue, for docs/faults.md.

Seconds are those that `mluops subset --by pairs` estimates from the number of cases and their bytes: the page is the
same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

from mluops_cli.search.subset.choice import Element, Power, choose, estimated

_BUDGETS: Final = (Fraction(1, 32), Fraction(1, 16), Fraction(1, 8), Fraction(1, 4))
_TEXT: Final = """\
## Fewer cases

How many of the faults above a subset of the cases catches that takes a part of their time. It is chosen as by
`mluops subset`, with times that are estimated from the number of cases and their bytes. The last columns: how many
cases keep all, and what part of the time they take."""


class Curves:
    """The curve of each operator."""

    def __init__(self) -> None:
        self._rows: list[str] = []

    def add(self, op: str, catches: Mapping[str, Sequence[str]], files: Sequence[Path]) -> None:
        """Add an operator: fault -> the cases that catch it, and the files of all cases."""
        power = power_of(op, catches, files)
        whole, all_seconds = kept(power, None), sum(power.seconds.values())
        parts = [f"{kept(power, float(part) * all_seconds)} of {whole}" for part in _BUDGETS]
        chosen = choose(power, None).chosen
        share = sum(power.seconds[case] for case in chosen) / all_seconds
        smallest = f"{len(chosen)} of {len(files)}", f"{100 * share:.1f} %"
        self._rows.append(f"| {' | '.join((op, *parts, *smallest))} |")

    def lines(self) -> Iterator[str]:
        """The section of the page."""
        yield from (*_TEXT.splitlines(), "")
        parts = " | ".join(f"{part} of the time" for part in _BUDGETS)
        yield f"| operator | {parts} | cases that keep all | their time |"
        yield f"| --- {'| ---: ' * (len(_BUDGETS) + 2)}|"
        yield from self._rows


def power_of(op: str, catches: Mapping[str, Sequence[str]], files: Sequence[Path]) -> Power:
    """What each case catches, and its estimated seconds."""
    sizes = {f"{file.parent.name}/{file.stem}": file.stat().st_size for file in files}
    cases = {
        case: frozenset(Element(op, "fault", name) for name, seen in catches.items() if case in seen) for case in sizes
    }
    return Power(cases, {case: estimated(size) for case, size in sizes.items()}, "faults")


def kept(power: Power, budget: float | None) -> int:
    """How many faults a subset for a budget catches."""
    return len(choose(power, budget).kept)
