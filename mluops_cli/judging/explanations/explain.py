"""All explanations of an output in turn, the cheap ones first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.explanations.batch_mixture import mixed_batch
from mluops_cli.judging.explanations.evidence import Difference
from mluops_cli.judging.explanations.factor import constant_factor
from mluops_cli.judging.explanations.low_precision import low_precision
from mluops_cli.judging.explanations.missing_terms import Terms, wrong_terms
from mluops_cli.judging.explanations.recomputed import Suspect, recomputed
from mluops_cli.judging.patterns import Pattern


def _unknown(dtype: str) -> Array | None:
    return None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an output besides its values; what is left out is not tried.

    accumulated(dtype) is the error bound of a kernel that adds up in that dtype. batch: the axis and the number of the
    items. suspects and terms need the inputs and a reference kernel.
    """

    accumulated: Callable[[str], Array | None] = _unknown
    batch: tuple[int, int] | None = None
    suspects: Callable[[], Iterable[Suspect]] = tuple
    terms: Terms | None = None


def explanations(difference: Difference, known: Known) -> Iterator[list[Pattern]]:
    """Yield what explains the output, a list per kind of explanation; nothing where rounding explains it already."""
    if not difference.explainable or not difference.elements().beyond.any():
        return
    yield list(constant_factor(difference))
    yield list(low_precision(difference, known.accumulated))
    if known.batch is not None:
        yield list(mixed_batch(difference, *known.batch))
    yield list(recomputed(difference, known.suspects()))
    if known.terms is not None:
        yield list(wrong_terms(difference, known.terms))
