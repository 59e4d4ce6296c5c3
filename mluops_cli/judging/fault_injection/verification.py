"""Is the judge to be trusted: faults are planted in right outputs, and it has to fail each that can be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mluops_cli.judging.fault_injection.detectability import Eye
from mluops_cli.judging.fault_injection.faults import FAULTS, NotPlanted, Specimen
from mluops_cli.judging.verdict import Verdict

Judge = Callable[[str], Verdict]  # of the output with that name as it stands, and of others if it has to


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one fault in one output.

    must: a criterion has to fail for it. why: the criterion that must see it, or why it can't be planted or seen.
    """

    output: str
    fault: str
    planted: bool
    must: bool
    caught: bool
    why: str

    @property
    def word(self) -> str:
        """caught, missed, unseen (by any criterion) or not planted."""
        if not self.planted:
            return "not planted"
        return "caught" if self.caught else "missed" if self.must else "unseen"

    @property
    def missed(self) -> bool:
        """Whether the judge let it through although a criterion has to see it."""
        return self.must and not self.caught


def try_faults(specimens: Mapping[str, tuple[Specimen, Eye]], judge: Judge) -> Iterator[Trial]:
    """Plant every fault in every output in turn, judge, and undo it; nothing but the touched elements is copied.

    A fault counts as caught where the output that holds it fails.
    """
    for output, (specimen, eye) in specimens.items():
        for fault, plant in FAULTS.items():
            try:
                touched = plant(specimen)
            except NotPlanted as reason:
                yield Trial(output, fault, False, False, False, str(reason))
                continue
            with np.errstate(all="ignore"):
                sight = eye.look(specimen.output, touched)
            caught = sight.changed and _fails(judge(output), output)
            specimen.undo(touched)
            yield Trial(output, fault, sight.changed, sight.must, caught, sight.why)


def _fails(verdict: Verdict, output: str) -> bool:
    return verdict.status == "fail" and not verdict.outputs[output].passed
