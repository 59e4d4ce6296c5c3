"""The contract of an operator: what it accepts and how it is accepted, as data.

Shape inference, validation of specs, invalid cases, documentation and reports all derive from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, Protocol

from generators.contracts.relations import Relation
from generators.expressions import Expression, parse_expression
from schemas.criteria import Criterion
from schemas.status import BAD_PARAM, NOT_SUPPORTED

Shape = tuple[int, ...]
Params = Mapping[str, Any]  # parameter name -> int, float or tuple of ints
Env = dict[str, Any]  # sizes and parameters by name

LARGE: Final = 2**31  # elements from which on a tensor counts as large
UNKNOWN: Final = -1  # a size that depends on the data
# Where a rule stands: "design" or "design SECTION"; "vendor", which the vendor's library checks; "ours", nobody else's.
DESIGN: Final = "design"
VENDOR: Final = "vendor"
OURS: Final = "ours"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor of an operator.

    shape is in sizes, parameters and expressions of both, a word per dim: "N H W h_mask*w_mask". A bare name that is
    still unbound takes the tensor's own size; everything else must agree. values is the default distribution of an
    input in the words of the YAML spec, bounds may be expressions. criteria are those of an output.
    """

    name: str
    dtypes: tuple[str, ...]
    layout: str
    shape: str
    same_dtype_as: str | None = None
    values: Mapping[str, Any] | None = None
    criteria: tuple[Criterion, ...] = ()
    fill: int | None = None  # what the caller sets an output to before the call, instead of a sentinel
    expected_zero_fraction: float = 0.0  # a baseline with a larger fraction of zeros is suspicious
    compare: Literal["elementwise", "rulebook"] = "elementwise"
    finite: bool = False  # whether NaN and Inf are outside the contract
    undefined_when_empty: bool = False  # whether a call with an empty tensor may leave it unwritten
    variants: tuple[Mapping[str, Any], ...] = ()  # further distributions that are legal, for mluops fuzz

    @property
    def dims(self) -> tuple[Expression, ...]:
        """The expressions of the shape."""
        return tuple(parse_expression(word) for word in self.shape.split())


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: an integer, or `length` of them.

    minimum and maximum are inclusive; choices names the legal values. default is an integer or an expression; without
    one the parameter must be given, or be bound by a shape. statuses are what breaking the range is answered with;
    empty: such a case is refused when a spec is expanded. origin says where the range stands, as in Rule.
    output = (tensor, dim): the count of an output's rows, a size that depends on the data. It is in the file for its
    readers; implementations don't get it.
    """

    name: str
    minimum: int | None = None
    maximum: int | None = None
    choices: Mapping[str, int] | None = None
    length: int | None = None
    default: int | str | None = None
    statuses: tuple[str, ...] = (BAD_PARAM,)
    origin: str = DESIGN
    output: tuple[str, int] | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A relation between sizes and parameters that must hold.

    breaks lists assignments (sizes or parameters by name) that break this rule alone, for derived invalid cases.
    statuses empty: a case that breaks it is refused when a spec is expanded, nothing is expected of an implementation.
    origin says where the rule stands (DESIGN, VENDOR, OURS); what is OURS alone no implementation has to check.
    """

    text: str
    holds: str
    statuses: tuple[str, ...] = (BAD_PARAM,)
    breaks: tuple[Mapping[str, Any], ...] = ()
    origin: str = DESIGN


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
    """What an operator accepts and how its outputs are accepted; see the module's docstring."""

    op: str
    category: str  # pure_io, composite, atomic_add, index
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    parameters: tuple[Parameter, ...] = ()
    rules: tuple[Rule, ...] = ()
    zero_elements: Mapping[str, str] = field(default_factory=dict)  # size -> status when it is 0
    workspace: bool = False
    accumulate: str = "float"  # dtype that a kernel may accumulate in, for error bounds
    large: tuple[str, ...] = (NOT_SUPPORTED,)
    strided: tuple[str, ...] = (NOT_SUPPORTED,)
    theory_ops: str = "0"  # expression over sizes and parameters
    either_efficiency: float | None = None  # standard of its own: one of the two efficiencies reaches this
    network: str = ""
    source: str = ""
    relations: tuple[Relation, ...] = ()  # between outputs for related inputs, for mluops run --relations
    coordinates: tuple[Coordinate, ...] = ()  # by which a diagnosis recognises swapped ones
    sums: tuple[RowSum, ...] = ()  # by which a diagnosis recognises a missing term

    @cached_property
    def tensors(self) -> dict[str, TensorSpec]:
        """All tensors by name, inputs first."""
        return {tensor.name: tensor for tensor in (*self.inputs, *self.outputs)}

    @cached_property
    def passed_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that are handed to an implementation."""
        return tuple(parameter for parameter in self.parameters if parameter.output is None)

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
        """The sizes that depend on the data: those of dims whose size an implementation returns."""
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
                env[parameter.name] = parse_expression(default)(env) if isinstance(default, str) else default
                if isinstance(env[parameter.name], list):
                    env[parameter.name] = tuple(env[parameter.name])
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
