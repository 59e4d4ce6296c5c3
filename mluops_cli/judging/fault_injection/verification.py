"""Verification of the judge: faults are injected into right outputs, and it must fail each that is detectable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mluops_cli.judging.fault_injection.detectability import Detectability
from mluops_cli.judging.fault_injection.injected_faults import INJECTED_FAULTS, InjectionTarget, NotInjectable
from mluops_cli.judging.verdict import Verdict

Judge = Callable[[str], Verdict]  # name of an output -> the verdict on that output as it is, and on others it needs


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one fault in one output.

    Attributes:
        injected: whether the fault changed a defined value of the output.
        must_fail: whether a criterion has to fail for it.
        caught: whether the judge failed the output.
        reason: the criterion that must detect it, or why it can't be injected or detected.

    """

    output: str
    fault: str
    injected: bool
    must_fail: bool
    caught: bool
    reason: str

    @property
    def word(self) -> str:
        """Return caught, missed, unseen (by every criterion) or not planted."""
        if not self.injected:
            return "not planted"
        return "caught" if self.caught else "missed" if self.must_fail else "unseen"

    @property
    def missed(self) -> bool:
        """Return whether the judge passed it although a criterion must fail for it."""
        return self.must_fail and not self.caught


def try_faults(targets: Mapping[str, tuple[InjectionTarget, Detectability]], judge: Judge) -> Iterator[Trial]:
    """Inject every fault into every output in turn, judge, and undo it; only the touched elements are copied.

    A fault counts as caught where the output that holds it fails.
    """
    for output, (target, detectability) in targets.items():
        for fault, inject in INJECTED_FAULTS.items():
            try:
                touched = inject(target)
            except NotInjectable as reason:
                yield Trial(output, fault, False, False, False, str(reason))
                continue
            with np.errstate(all="ignore"):
                expected = detectability.expect(target.output, touched)
            caught = expected.changed and _fails(judge(output), output)
            target.undo(touched)
            yield Trial(output, fault, expected.changed, expected.must_fail, caught, expected.reason)


def _fails(verdict: Verdict, output: str) -> bool:
    return verdict.status == "fail" and not verdict.outputs[output].passed
