"""The contract of an operator: what it accepts and how it is accepted, as data.

Shape inference, validation of specs, invalid cases, documentation and reports all derive from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, Protocol

from generators.contracts.relations import Relation
from generators.expressions import UNCOMPUTABLE, Expression, parse_expression
from generators.parameters import DESIGN as DESIGN
from generators.parameters import OURS as OURS
from generators.parameters import VENDOR as VENDOR
from generators.parameters import Env as Env
from generators.parameters import Parameter as Parameter
from generators.parameters import Params as Params
from generators.parameters import Rule as Rule
from generators.parameters import c_float
from schemas.criteria import Criterion
from schemas.status import NOT_SUPPORTED

Shape = tuple[int, ...]  # the dims of a tensor

LARGE: Final = 2**31  # elements from which on a tensor counts as large
UNKNOWN: Final = -1  # a size that depends on the data


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor of an operator.

    dtypes are names such as "half", "float" and "int32", the first is the default. same_dtype_as names a tensor before
    it whose dtype it must have. layout is a name such as "NHWC"; with "ARRAY" none is demanded. shape is in sizes,
    parameters and expressions of both, a word per dim: "N H W h_mask*w_mask". A bare name that is still unbound takes
    the tensor's own size; everything else must agree.

    Of an input: values is the default distribution, as `dist` in a spec (docs/spec.md), such as {"uniform": [-1, 1]};
    bounds may be expressions. variants are further legal distributions, for mluops fuzz. finite: NaN and Inf are
    outside the contract.

    Of an output: criteria are what it is judged by. fill is what the caller sets it to before the call, where the
    operator relies on that. A baseline with a larger fraction of zeros than expected_zero_fraction makes a pass
    mistrusted. compare "rulebook": the pairs of get_indice_pairs. undefined_when_empty: a call with an empty tensor may
    leave it unwritten.

    exists: an expression over parameters, such as "pool_mode == 0"; the tensor is there only where it holds.
    """

    name: str
    dtypes: tuple[str, ...]
    layout: str
    shape: str
    same_dtype_as: str | None = None
    values: Mapping[str, Any] | None = None
    criteria: tuple[Criterion, ...] = ()
    fill: int | None = None
    expected_zero_fraction: float = 0.0
    compare: Literal["elementwise", "rulebook"] = "elementwise"
    finite: bool = False
    undefined_when_empty: bool = False
    variants: tuple[Mapping[str, Any], ...] = ()
    exists: str = ""

    @property
    def dims(self) -> tuple[Expression, ...]:
        """The expressions of the shape."""
        return tuple(parse_expression(word) for word in self.shape.split())


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One of the coordinates that an operator works with, such as y; a kernel may take one for another.

    tensor is the input that holds its values, in one column of the last axis or, with column None, everywhere.
    parameters are those that go with it, in the same order for each coordinate of the contract: kernel_h, pad_h. ends,
    for values from -1 to 1: -1 and 1 are the `centres` of the outermost pixels (align_corners) or their outer `edges`;
    size is then the number of pixels, a size or parameter.
    """

    name: str
    tensor: str = ""
    column: int | None = None
    parameters: tuple[str, ...] = ()
    ends: Literal["", "centres", "edges"] = ""
    size: str = ""


@dataclass(frozen=True, slots=True)
class RowSum:
    """An output whose rows (along the last axis) are weighted sums of rows of the input `terms`."""

    output: str
    terms: str


class Sized(Protocol):
    """Something with a shape, such as an array."""

    @property
    def shape(self) -> Shape:
        """The dims."""


@dataclass(frozen=True, eq=False)  # compared by identity, so that it can be a key
class Contract:
    """What calls an operator accepts and how its outputs are judged.

    op is the operator's name. message is the field of a case file that holds its parameters, OP_param where it is
    empty. category is pure_io (outputs are copies of inputs, to the bit), composite, atomic_add
    (sums in any order) or index. Tensors and parameters are in the order of the operator's interface. Statuses are
    names such as "SUCCESS", "BAD_PARAM" and "NOT_SUPPORTED".

    zero_elements: size -> the status of a call where it is 0; a size that is not named may be 0. large and strided: the
    statuses of a call with a tensor of 2^31 elements or more, and with one that is not dense. workspace: whether a call
    takes a workspace. accumulate: the dtype that a kernel may accumulate in, for error bounds.

    theory_ops: an expression, the operations of one call. either_efficiency: a fraction; one of the efficiencies of
    memory and of operations must reach it, in place of the usual standards. network and source are for the operator's
    page: who uses it, and where the formula stands.

    relations: what outputs for related inputs must have to do with each other, for `run --relations`. coordinates and
    sums: by which a diagnosis recognises swapped coordinates and missing terms.
    """

    op: str
    category: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    parameters: tuple[Parameter, ...] = ()
    rules: tuple[Rule, ...] = ()
    zero_elements: Mapping[str, str] = field(default_factory=dict)
    workspace: bool = False
    accumulate: str = "float"
    large: tuple[str, ...] = (NOT_SUPPORTED,)
    strided: tuple[str, ...] = (NOT_SUPPORTED,)
    theory_ops: str = "0"
    either_efficiency: float | None = None
    network: str = ""
    source: str = ""
    relations: tuple[Relation, ...] = ()
    coordinates: tuple[Coordinate, ...] = ()
    sums: tuple[RowSum, ...] = ()
    message: str = ""

    @cached_property
    def tensors(self) -> dict[str, TensorSpec]:
        """All tensors by name, inputs first."""
        return {tensor.name: tensor for tensor in (*self.inputs, *self.outputs)}

    def given(self, params: Params) -> Contract:
        """The contract of calls with these parameters: without the tensors that exist only with others.

        A parameter that is left out has its default. There is one object for each choice of tensors.
        """
        optional = self._optional
        if not optional:
            return self
        env = {each.name: each.default for each in self.parameters if not each.follows} | dict(params)
        absent = frozenset(name for name, exists in optional.items() if not _holds(exists, env))
        if absent and absent not in self._narrowed:
            self._narrowed[absent] = self._without(absent)
        return self._narrowed[absent] if absent else self

    def _without(self, absent: frozenset[str]) -> Contract:
        """The contract without these tensors, and without what can be said only of calls that have them."""
        inputs, outputs = (
            tuple(tensor for tensor in role if tensor.name not in absent) for role in (self.inputs, self.outputs)
        )
        made = replace(self, inputs=inputs, outputs=outputs)
        lost = absent | (set(self.sizes) - set(made.sizes))
        return replace(
            made,
            relations=tuple(
                each
                for each in self.relations
                if lost.isdisjoint((each.size, each.within, each.linear, *each.constants))
            ),
            coordinates=tuple(each for each in self.coordinates if lost.isdisjoint((each.tensor, each.size))),
            sums=tuple(each for each in self.sums if lost.isdisjoint((each.output, each.terms))),
        )

    @cached_property
    def _optional(self) -> dict[str, Expression]:
        """Of the tensors that don't always exist, when they do."""
        return {name: parse_expression(each.exists) for name, each in self.tensors.items() if each.exists}

    @cached_property
    def _narrowed(self) -> dict[frozenset[str], Contract]:
        """The contracts without some of the optional tensors, by those that are left out."""
        return {}

    @cached_property
    def passed_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that are handed to an implementation."""
        return tuple(parameter for parameter in self.parameters if parameter.output is None)

    @cached_property
    def computed_parameters(self) -> frozenset[str]:
        """The parameters that are computed from the values of inputs where a spec leaves them out."""
        return frozenset(parameter.name for parameter in self.parameters if parameter.computed_from)

    @cached_property
    def _dims(self) -> dict[str, tuple[tuple[str | None, Expression], ...]]:
        """Per tensor and dim: the bare name (or None) and the expression."""
        return {
            name: tuple((e.text if e.names == {e.text} else None, e) for e in tensor.dims)
            for name, tensor in self.tensors.items()
        }

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """The names of the free sizes, in order of appearance (parameters left out)."""
        parameters = {parameter.name for parameter in self.parameters}
        bare = [name for dims in self._dims.values() for name, _ in dims if name and name not in parameters]
        return tuple(dict.fromkeys(bare))

    @cached_property
    def data_sizes(self) -> frozenset[str]:
        """The sizes that depend on the data, those of dims whose size an implementation returns."""
        counted = [parameter.output for parameter in self.parameters if parameter.output is not None]
        return frozenset(name for tensor, dim in counted for name in self.tensors[tensor].dims[dim].names)

    def capacities(self, tensor: str) -> tuple[int, ...]:
        """The axes of a tensor whose size depends on the data: in a descriptor they are capacities."""
        return tuple(axis for axis, (_, each) in enumerate(self._dims[tensor]) if each.names & self.data_sizes)

    def counts(self, outputs: Mapping[str, Sized]) -> dict[str, int]:
        """The parameters that count rows of outputs, by name; outputs are the arrays that are defined."""
        counted = {each.name: each.output for each in self.parameters if each.output is not None}
        return {name: outputs[tensor].shape[dim] for name, (tensor, dim) in counted.items() if tensor in outputs}

    def known(self, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        """The shapes with UNKNOWN for every size that depends on the data."""
        if not self.data_sizes:
            return dict(shapes)
        return {
            name: tuple(
                UNKNOWN if expression.names & self.data_sizes else size
                for size, (_, expression) in zip(shape, self._dims[name], strict=False)
            )
            for name, shape in shapes.items()
        }

    def bind(self, shapes: Mapping[str, Shape], params: Params) -> Env:
        """Sizes and parameters by name, as far as they follow from the given shapes and params; no check is made.

        A size of UNKNOWN is ignored.
        """
        env: Env = dict(params)
        for name, shape in shapes.items():
            dims = self._dims[name]
            if len(dims) == len(shape):
                for (bare, _), size in zip(dims, shape, strict=True):
                    if bare is not None and bare not in env and size != UNKNOWN:
                        env[bare] = size
        for parameter in self.passed_parameters:
            if parameter.name not in env and parameter.default is not None:
                default = parameter.default
                env[parameter.name] = parse_expression(default)(env) if parameter.follows else default
                if isinstance(env[parameter.name], list):
                    env[parameter.name] = tuple(env[parameter.name])
                if parameter.kind == "float":
                    one = parameter.length is None
                    env[parameter.name] = c_float(default) if one else tuple(map(c_float, default))
        return env

    @cached_property
    def _shapes(self) -> dict[str, Expression]:
        """Per tensor the whole shape as one expression, for the frequent case that all sizes are known."""
        return {
            name: parse_expression("(" + "".join(f"{expression.text}, " for _, expression in dims) + ")")
            for name, dims in self._dims.items()
        }

    def shape(self, tensor: str, env: Env) -> Shape:
        """The shape of a tensor under env; UNKNOWN stands for sizes that depend on the data."""
        try:
            dims: Shape = self._shapes[tensor](env)
            return dims
        except NameError:
            return tuple(env.get(bare, UNKNOWN) if bare else expression(env) for bare, expression in self._dims[tensor])

    def fits(self, tensor: str, dims: Shape, env: Env) -> bool:
        """Whether dims are the shape of a tensor under env; not where that can't be computed."""
        try:
            return self.shape(tensor, env) == dims
        except UNCOMPUTABLE:
            return False


def _holds(condition: Expression, env: Env) -> bool:
    """Whether a condition holds; not where a parameter has no value for it."""
    try:
        return bool(condition(env))
    except UNCOMPUTABLE:
        return False
