"""The choice of a subset: the cases that keep most of some power within a budget of time, and what is given up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mluops_cli.search.set_cover import greedy_cover

PER_CASE = 0.005  # seconds that a run takes for a case besides the implementation's call and the judge
_RATE = 50e6  # bytes of tensors per second that a run takes, about
_SHOWN = 5  # elements that are given up and named


@dataclass(frozen=True, slots=True)
class Element:
    """Something that a case has power over: a mutant, a pair of classes. op, a kind to count it by, and its text."""

    op: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Power:
    """What every case has power over, and its seconds in a run; word is what elements are called, such as mutants."""

    cases: Mapping[str, frozenset[Element]]
    seconds: Mapping[str, float]
    word: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen subset."""

    power: Power
    chosen: tuple[str, ...]

    @property
    def kept(self) -> frozenset[Element]:
        """What the subset has power over."""
        return frozenset().union(*(self.power.cases[case] for case in self.chosen))

    @property
    def given_up(self) -> frozenset[Element]:
        """What only other cases have power over."""
        return frozenset().union(*self.power.cases.values()) - self.kept

    def words(self) -> Iterator[str]:
        """Sentences: what the subset costs, keeps and gives up."""
        power = self.power
        before, after = (sum(power.seconds[case] for case in cases) for cases in (power.cases, self.chosen))
        yield f"{len(self.chosen)} of {len(power.cases)} cases, about {after:.1f} s of {before:.1f} s"
        whole = len(self.kept) + len(self.given_up)
        yield f"keeps {len(self.kept)} of the {whole} {power.word} of all cases"
        lost = Counter((each.op, each.kind) for each in self.given_up)
        for op in sorted({op for op, _ in lost}):
            kinds = ", ".join(f"{kind} {number}" for (each, kind), number in sorted(lost.items()) if each == op)
            yield f"gives up {sum(number for (each, _), number in lost.items() if each == op)} of {op}: {kinds}"
            texts = sorted(each.text for each in self.given_up if each.op == op)
            yield from (f"  {text}" for text in texts[:_SHOWN])
            if len(texts) > _SHOWN:
                yield f"  and {len(texts) - _SHOWN} more"


def estimated(size: int) -> float:
    """Seconds that a case with tensors of so many bytes takes in a run, where nothing is measured."""
    return PER_CASE + size / _RATE


def choose(power: Power, budget: float | None) -> Choice:
    """The subset that keeps all, or as much as cases within so many seconds of a run keep."""
    return Choice(power, tuple(sorted(greedy_cover(power.cases, power.seconds, budget))))
