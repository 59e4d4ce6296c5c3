"""Which criteria with which thresholds a case file asks for, and where its baseline comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from schemas.casefiles.reading import CaseFile
from schemas.casefiles.tensors import TensorRecord
from schemas.criteria import NAMES, Criterion, stricter
from schemas.errors import InputError, SourceLocation
from schemas.protos.messages import enum_names

Note = Callable[[SourceLocation, str], None]
_ALWAYS_PASSES: Final = ("DIFF4", -1.0)  # in the public runner: the criterion is not judged


def criteria_of(case: CaseFile, note: Note | None = None) -> list[tuple[Criterion, ...]]:
    """The criteria a case file names, an entry per output; () where it names none or threshold_use = 0 leaves it out.

    Our own (CaseMeta.criteria) win over test_param, that over evaluation_criterion with evaluation_threshold, that over
    evaluation_criterion with each output's thresholds, where an infinite one leaves the criterion out. Imaginary
    thresholds count for complex outputs only. DIFF4 with threshold -1, which passes always in the public runner, is
    left out. Of a criterion that is named twice the stricter threshold counts. note gets the place and a sentence for
    everything that is left out. InputError where counts differ, a criterion can't be judged, or a threshold is not a
    finite number of 0 or more.
    """
    return [_of_output(case, record, note or _ignore) if record.judged else () for record in case.outputs]


def _ignore(place: SourceLocation, text: str) -> None:
    """Drop a note."""


def _of_output(case: CaseFile, output: TensorRecord, note: Note) -> tuple[Criterion, ...]:
    node, place = case.node, SourceLocation(str(case.path))
    if case.meta is not None and case.meta.criteria:
        return _each_once(_of_metadata(case.meta, output.id, place), output, note)
    pairs = _Pairs(output, note)
    test = node.test_param
    if test.error_func or test.error_threshold:
        return pairs.read(test.error_func, test.error_threshold, test.error_threshold_imag, "test_param", place)
    functions = node.evaluation_criterion
    if node.evaluation_threshold:
        imaginary = node.evaluation_threshold_imag
        return pairs.read(functions, node.evaluation_threshold, imaginary, "evaluation_threshold", place)
    own = output.header.thresholds
    source = f"thresholds of output {output.id}"
    found = pairs.read(
        functions, own.evaluation_threshold, own.evaluation_threshold_imag, source, output.place, infinite=True
    )
    # The criteria are those of all outputs: Inf is how a file says that one of them doesn't count for this output.
    finite = tuple(criterion for criterion in found if math.inf not in (criterion.threshold, criterion.imaginary))
    if found and not finite:
        raise InputError(f"every threshold is inf, expected a finite one ({source})", output.place)
    return finite


class _Pairs:
    """Pairs of criteria and thresholds, read for one output."""

    def __init__(self, output: TensorRecord, note: Note) -> None:
        self.output = output
        self.note = note

    def read(
        self,
        functions: Sequence[int],
        thresholds: Sequence[float],
        imaginary: Sequence[float],
        source: str,
        place: SourceLocation,
        *,
        infinite: bool = False,
    ) -> tuple[Criterion, ...]:
        """The criteria, each once; infinite: a threshold may be Inf."""
        if len(functions) != len(thresholds):
            raise InputError(f"{len(functions)} criteria, but {len(thresholds)} thresholds ({source})", place)
        if self.output.dtype.kind != "complex":
            if any(not 0 <= threshold < math.inf for threshold in imaginary):
                text = f"imaginary thresholds {list(imaginary)} don't count: the output isn't complex ({source})"
                self.note(self.output.place, text)
            imaginary = ()
        if imaginary and len(imaginary) != len(thresholds):
            raise InputError(f"{len(thresholds)} thresholds, but {len(imaginary)} imaginary ones ({source})", place)
        names = [enum_names("EvaluationCriterion")[number] for number in functions]
        others: Sequence[float | None] = imaginary or [None] * len(names)
        found = []
        for name, threshold, other in zip(names, thresholds, others, strict=True):
            if name not in NAMES:
                expected = ", ".join(NAMES)
                raise InputError(f"criterion {name} can't be judged, expected one of {expected} ({source})", place)
            if (name, threshold) == _ALWAYS_PASSES:
                text = f"{name} with threshold -1 is not judged: it always passes in the public runner ({source})"
                self.note(self.output.place, text)
                continue
            for each in (threshold, other):
                if each is not None and not (infinite and each == math.inf):
                    _check_threshold(each, source, place)
            found.append(Criterion(NAMES[name], float(threshold), source, other))
        return _each_once(found, self.output, self.note)


def _of_metadata(meta: Any, output: str, place: SourceLocation) -> Iterator[Criterion]:
    for entry in meta.criteria:
        if entry.output == output:
            _check_threshold(entry.threshold, entry.source, place)
            yield Criterion(entry.name, entry.threshold, entry.source)


def _each_once(criteria: Iterable[Criterion], output: TensorRecord, note: Note) -> tuple[Criterion, ...]:
    """Each criterion with the stricter of its thresholds, in the order of their first mention."""
    found: dict[str, Criterion] = {}
    for criterion in criteria:
        if criterion.name in found:
            known = found[criterion.name]
            found[criterion.name] = kept = stricter(known, criterion)
            thresholds = f"{known.threshold:g} and {criterion.threshold:g}"
            text = f"{criterion.name} is named twice, with {thresholds}: the stricter {kept.threshold:g} counts"
            note(output.place, f"{text} ({criterion.source})")
        else:
            found[criterion.name] = criterion
    return tuple(found.values())


def _check_threshold(threshold: float, source: str, place: SourceLocation) -> None:
    """Nothing passes below 0 or NaN, and everything below Inf: the file is wrong, not the implementation."""
    if not 0 <= threshold < math.inf:
        raise InputError(f"a threshold is {threshold:g}, expected a finite number of 0 or more ({source})", place)


def baseline_device(node: Any) -> str:
    """Where the baseline comes from: CPU = to be computed, GPU = the file carries it; others as the file names them."""
    if not node.HasField("device") and node.test_param.HasField("baseline_device"):
        return enum_names("Device")[node.test_param.baseline_device]
    return enum_names("Device")[node.device]
