"""The operator: a contract, a reference kernel and the theoretical work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from generators.contracts.model import Contract, Env, Params, Shape
from generators.contracts.outputs import author_errors, checked_outputs
from generators.error_bounds.checking import checked_bound
from generators.expressions import parse_expression
from schemas.dtypes import DTYPES
from schemas.errors import InputError, SourceLocation

Array = np.ndarray[Any, Any]  # of any shape and dtype
Arrays = dict[str, Array]  # tensor name -> array


class Operator(ABC):
    """One operator. Subclasses state the contract as data and the reference kernel as short NumPy.

    cases is the YAML file with its specs; None means the file of the operator's name in mluops's own package `cases`.
    Its definition, for its page, is the Markdown file beside that, of the same name (docs/spec.md). A subclass
    must define `contract` and `reference`; every other method has a default.
    """

    contract: ClassVar[Contract]
    cases: ClassVar[Path | None] = None

    @abstractmethod
    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """The outputs by name for inputs by name; float64 inside, bit-exact for copies.

        inputs have the tensors' dims as shape and their dtypes (ml_dtypes for bfloat16); they must not be changed. env
        holds the parameters, and the sizes that the shapes of all tensors tell (Contract.bind). An output has the shape
        that the contract says, with as many rows as there are where that depends on the data, and its tensor's dtype or
        one of the same kind, such as float64, which is then rounded to it once.
        """

    def reference_in(self, dtype: type[np.floating[Any]], inputs: Arrays, env: Env) -> Arrays | None:
        """The outputs of reference with every intermediate value in this dtype; None: there is no such computation.

        Dynamic thresholds come from it (generators/casegen/thresholds.py).
        """
        return None

    def baseline(self, inputs: Mapping[str, Array | None], shapes: Mapping[str, Shape], params: Params) -> Arrays:
        """The outputs of the reference kernel by name, in the contract's order: the one way to a baseline.

        shapes are those of inputs and outputs; sizes that depend on the data are ignored. InputError where the values
        of an input are outside the contract, and where the kernel raises NotImplementedError. MluopsError, with a line
        of the kernel, where it raises another exception, and where it returns other outputs than the contract's, or one
        whose dtype is of another kind.
        """
        given, env = self.check_inputs(inputs, shapes, params)
        code, kernel = type(self).reference.__code__, f"reference kernel of {self.contract.op}"
        place = SourceLocation(code.co_filename, code.co_firstlineno)
        try:
            with author_errors(code, kernel):
                outputs = self.reference(given, env)
        except NotImplementedError as error:
            raise InputError(f"the {kernel} is not written: {error}", place) from None
        return checked_outputs(f"{place}: {kernel}", self.contract.given(env).outputs, outputs)

    def computed_parameter(self, parameter: str, inputs: Arrays, env: Env) -> Any:
        """The list, a tuple, of a parameter that a spec leaves out: computed from an input (Parameter.computed_from).

        inputs holds that input. env holds the sizes, and the parameters without computed ones.
        """
        raise NotImplementedError

    def all_params(
        self, inputs: Mapping[str, Array | None], shapes: Mapping[str, Shape], params: Params
    ) -> dict[str, Any]:
        """The parameters with those that are left out and computed from the values of inputs; shapes as in baseline.

        An input without values, such as a null pointer, and one of a shape that isn't the contract's give a list of
        the smallest values: a call with such an input has a whole list too.
        """
        given = {name: array for name, array in inputs.items() if array is not None}
        env = self.contract.bind(self.contract.known(shapes), params)
        return dict(params) | {
            each.name: self.computed_parameter(each.name, given, env)
            if each.computed_from in given
            and self.contract.fits(each.computed_from, given[each.computed_from].shape, env)
            else each.smallest_list(env)
            for each in self.contract.parameters
            if each.computed_from and each.name not in params
        }

    def bounds(
        self,
        inputs: Mapping[str, Array | None],
        shapes: Mapping[str, Shape],
        params: Params,
        baseline: Mapping[str, Array | None],
        accumulate: str | None = None,
    ) -> Arrays:
        """What error_bound says of a call with these tensors and this baseline: the one way to error bounds.

        Outputs that the baseline lacks have none. Nothing where an input's values are not at hand: no bound can be
        computed then. MluopsError where error_bound raises, with its line, and where it returns what is no bound.
        """
        given = {name: array for name, array in inputs.items() if array is not None}
        known = {name: array for name, array in baseline.items() if array is not None}
        contract = self.contract.given(params)
        names = {tensor.name for tensor in contract.outputs}
        if not known or len(given) < len(contract.inputs):
            return {}
        env = self.contract.bind(shapes, params)
        whole = known if known.keys() == names else None
        with author_errors(type(self).error_bound.__code__, f"error_bound of {contract.op}"):
            found = self.error_bound(given, env, baseline=whole, accumulate=accumulate or contract.accumulate)
        return {
            name: checked_bound(self.contract.op, name, each, known.get(name))
            for name, each in found.items()
            if name in known or name not in names
        }

    def error_bound(
        self, inputs: Arrays, env: Env, *, baseline: Arrays | None = None, accumulate: str | None = None
    ) -> Arrays:
        """How far a correct kernel's outputs may be from the baseline: float32 per element, by output name.

        A correct kernel is one of this precision that adds in any order. Elements of NaN have no bound. An array of
        shape () holds for every element: 0 for copies. An output that is not named has no bound. env as for reference;
        baseline, the outputs of reference, saves their computation; accumulate, a dtype's name, is the precision that
        kernels may accumulate in, the contract's where it is None. By default floating outputs of category pure_io are
        copies, and no other output has a bound.
        """
        copies = self.contract.outputs if self.contract.category == "pure_io" else ()
        return {
            each.name: np.zeros((), np.float32) for each in copies if all(DTYPES[name].is_float for name in each.dtypes)
        }

    def undecided(self, inputs: Arrays, env: Env) -> Arrays:
        """Where correct kernels may disagree about NaN and Inf: a bool per element, by output name.

        Such elements are counted and not judged; `gen` refuses a case that has some. Outputs without any may be left
        out, which is the default. inputs and env as for reference.
        """
        return {}

    def undecided_elements(
        self, inputs: Mapping[str, Array | None], shapes: Mapping[str, Shape], params: Params
    ) -> Arrays:
        """What undecided says of a call, without the outputs that have no such element; shapes as in baseline.

        Nothing where an input's values are not at hand.
        """
        given = {name: array for name, array in inputs.items() if array is not None}
        if len(given) < len(inputs):
            return {}
        found = self.undecided(given, self.contract.bind(self.contract.known(shapes), params))
        return {name: mask for name, mask in found.items() if mask.any()}

    def check_values(self, inputs: Arrays, env: Env) -> None:  # noqa: B027 - most operators take any values
        """InputError where the values of an input are outside the contract; the shapes are known to be right."""

    def check_inputs(
        self, inputs: Mapping[str, Array | None], shapes: Mapping[str, Shape], params: Params
    ) -> tuple[Arrays, Env]:
        """The inputs that have data, and sizes and parameters by name, as reference and check_values take them.

        shapes and errors as in baseline: the contract's tensors that are finite, then check_values.
        """
        given = {name: array for name, array in inputs.items() if array is not None}
        env = self.contract.bind(self.contract.known(shapes), params)
        for tensor in self.contract.inputs:
            if tensor.finite and tensor.name in given:
                wrong = np.argwhere(~np.isfinite(given[tensor.name]))
                if len(wrong):
                    at = tuple(map(int, wrong[0]))
                    value = given[tensor.name][at]
                    raise InputError(
                        f"{tensor.name}{list(at)} is {value}, {self.contract.op} takes no NaN and Inf there"
                    )
        self.check_values(given, env)
        return given, env

    def draw(self, tensor: str, recipe: str, env: Env, rng: np.random.Generator, arrays: Arrays) -> Array | None:
        """Values of an input for a recipe (a distribution of the operator's own); None where it knows none such.

        They have the dtype of the tensor and the shape that contract.shape(tensor, env) tells. arrays are the inputs
        that are drawn already. rng is keyed by the case: nothing else may decide the values. InputError where the
        recipe can't be drawn with these sizes.
        """
        return None

    def theory_ops(self, env: Env, inputs: Arrays, outputs: Arrays) -> float:
        """Theoretical operations of one call (design documents, section on performance); a count, not a rate."""
        return float(parse_expression(self.contract.theory_ops)(env))

    def theory_io_bytes(self, env: Env, inputs: Arrays, outputs: Arrays) -> float:
        """Theoretical bytes moved by one call: inputs and outputs once."""
        return float(sum(array.nbytes for array in (*inputs.values(), *outputs.values())))
