"""What explains an output that no rounding explains: the case's inputs and reference kernel, put to the judge's use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from generators.contracts.bound_case import BoundCase
from generators.contracts.checks import violations
from generators.contracts.hypotheses import Hypothesis, hypotheses
from generators.contracts.operator import Arrays, Operator
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.case.output_buffers import Array
from mluops_cli.judging.explanations.evidence import Difference
from mluops_cli.judging.explanations.explain import Known, explanations
from mluops_cli.judging.explanations.missing_terms import Terms
from mluops_cli.judging.explanations.recomputed import Suspect
from mluops_cli.judging.patterns import Pattern
from mluops_cli.judging.verdict import OutputUnderTest
from schemas.errors import InputError

_RECOMPUTED: Final = 1 << 20  # elements of all tensors; the reference kernel is not called again for larger cases


@dataclass(frozen=True, slots=True)
class Explainer:
    """Explains outputs of one case: what needs the reference kernel only where the case is small and has all its data.

    undecided: masks of the elements that are not judged; the outputs hold the baseline there.
    """

    bound: BoundCase
    inputs: Mapping[str, Array | None]
    baseline: Arrays
    bounds: Mapping[str, Array]
    undecided: Mapping[str, Array]
    options: CaseOptions

    def first(self, item: OutputUnderTest) -> list[Pattern]:
        """The explanations of the first kind that has any; the item's arrays are of one shape and dtype."""
        with np.errstate(all="ignore"):  # changed inputs may overflow
            return next(filter(None, self._kinds(item)), [])

    def all(self, item: OutputUnderTest) -> list[Pattern]:
        """The explanations of all kinds."""
        with np.errstate(all="ignore"):
            return list(chain.from_iterable(self._kinds(item)))

    def _kinds(self, item: OutputUnderTest) -> Iterator[list[Pattern]]:
        operator, bounds = self.bound.operator, self.bounds
        if operator is not None and operator.contract.tensors[item.name].compare != "elementwise":
            return iter(())
        known = Known(batch=self._batch(item.name))
        if operator is not None and self._small:
            if self.options.bound == "off":
                bounds = self.bound.error_bounds(self.inputs, self.baseline, self.options.accumulate)
            known = Known(
                lambda dtype: self.bound.error_bounds(self.inputs, self.baseline, dtype).get(item.name),
                known.batch,
                lambda: self._suspects(operator, item),
                self._terms(operator, item),
            )
        return explanations(Difference(item.baseline, item.output, bounds.get(item.name)), known)

    @property
    def _given(self) -> Arrays:
        return {name: array for name, array in self.inputs.items() if array is not None}

    @property
    def _small(self) -> bool:
        size = sum(array.size for array in chain(self._given.values(), self.baseline.values()))
        return len(self._given) == len(self.inputs) and size <= _RECOMPUTED

    def _batch(self, output: str) -> tuple[int, int] | None:
        """The axis along which the items of the batch lie in an output, and their number."""
        if self.bound.operator is None:
            return None
        contract = self.bound.operator.contract.given(self.bound.params)
        env = contract.bind(self.bound.shapes, self.bound.params)
        for relation in contract.relations:
            counted = output in relation.columns or relation.within
            if relation.kind == "batch" and output in relation.axes and not counted:
                return relation.axes[output], env[relation.size]
        return None

    def _suspects(self, operator: Operator, item: OutputUnderTest) -> Iterator[Suspect]:
        bound = self.bound
        contract = operator.contract.given(bound.params)
        env = contract.bind(bound.shapes, bound.params)
        for each in hypotheses(contract, self._given, bound.params, env):
            yield Suspect(each.word, each.text, each.variant, self._computing(operator, each, item))

    def _computing(
        self, operator: Operator, hypothesis: Hypothesis, item: OutputUnderTest
    ) -> Callable[[], tuple[Array, Callable[[], Array | None]] | None]:
        """A call of the reference kernel; it gives nothing where the contract excludes the call."""
        bound, accumulate = self.bound, self.options.accumulate or self.bound.accumulate
        inputs, params = hypothesis.inputs, hypothesis.params

        def compute() -> tuple[Array, Callable[[], Array | None]] | None:
            if violations(operator.contract, bound.descriptors, params):
                return None
            try:
                outputs = bound.computed(inputs, params)
            except InputError:  # such as a coordinate that is Inf in half
                return None
            output = outputs[item.name]
            if item.name in self.undecided and output.shape == item.output.shape:
                output = np.where(self.undecided[item.name], item.output, output)

            def limit() -> Array | None:
                return operator.bounds(inputs, bound.shapes, params, outputs, accumulate).get(item.name)

            return output, limit

        return compute

    def _terms(self, operator: Operator, item: OutputUnderTest) -> Terms | None:
        """The terms of the output's sums, where the contract declares them."""
        given = self._given
        for each in operator.contract.given(self.bound.params).sums:
            if each.output == item.name and given[each.terms].size:
                rows = given[each.terms]

                def share(p: int, name: str = each.terms, rows: Array = rows) -> Array:
                    alone = np.zeros_like(rows)
                    flat = alone.reshape(-1, rows.shape[-1])
                    flat[p] = rows.reshape(flat.shape)[p]
                    return self.bound.computed({**given, name: alone})[item.name]

                return Terms(each.terms, rows, share)
        return None
