"""The contract of an operator: what it accepts and how it is accepted, as data.

Shape inference, validation of specs, invalid cases, documentation and reports all derive from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any, Final, Literal, Protocol

from generators.expressions import GLOBALS, UNCOMPUTABLE, Expression, parse_expression
from schemas.criteria import Criterion
from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS
from schemas.tensor_descriptor import Descriptor

Shape = tuple[int, ...]
Params = Mapping[str, Any]  # parameter name -> int, float or tuple of ints
Env = dict[str, Any]  # sizes and parameters by name

LARGE: Final = 2**31  # elements from which on a tensor counts as large
UNKNOWN: Final = -1  # a size that only the data tell
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
    expected_zero_fraction: float = 0.0  # share of zeros beyond which only a suspicious baseline goes
    compare: Literal["elementwise", "rulebook"] = "elementwise"
    undefined_when_empty: bool = False  # whether a call with an empty tensor may leave it unwritten

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
    output = (tensor, dim): the count of an output's rows, a size that only the data tell. Implementations don't get it;
    it is in the file for its readers.
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
class Violation:
    """One broken rule: what it says, the statuses a correct implementation may answer with, and where it stands."""

    rule: str
    statuses: tuple[str, ...]
    text: str
    origin: str = DESIGN


class Sized(Protocol):
    """Something with a shape, such as an array."""

    @property
    def shape(self) -> Shape: ...


class Tensor(Protocol):
    """What Contract.sound looks at: a Descriptor, or a TensorPlan."""

    @property
    def dtype(self) -> str: ...
    @property
    def layout(self) -> str: ...
    @property
    def dims(self) -> Shape: ...
    @property
    def strides(self) -> Shape | None: ...


@dataclass(frozen=True)
class Contract:
    """Everything an operator accepts, computes on and is accepted by; see the module's docstring."""

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
    nan_inf: bool = True  # whether floating inputs may hold NaN and Inf
    network: str = ""
    source: str = ""

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
        """The sizes that only the data tell: of dims whose size an implementation returns."""
        counted = [parameter.output for parameter in self.parameters if parameter.output is not None]
        return frozenset(name for tensor, dim in counted for name in self.tensors[tensor].dims[dim].names)

    def capacities(self, tensor: str) -> tuple[int, ...]:
        """The axes of a tensor whose size only the data tell: what a descriptor says there is a capacity."""
        return tuple(axis for axis, (_, each) in enumerate(self._dims[tensor]) if each.names & self.data_sizes)

    def counts(self, outputs: Mapping[str, Sized]) -> dict[str, int]:
        """The parameters that count rows of outputs, by name; outputs are the arrays that are defined."""
        counted = {each.name: each.output for each in self.parameters if each.output is not None}
        return {name: outputs[tensor].shape[dim] for name, (tensor, dim) in counted.items() if tensor in outputs}

    def known(self, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        """The shapes with UNKNOWN for every size that only the data tell."""
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
        """Sizes and parameters by name, as far as the given shapes and params tell; no check is made.

        A size of UNKNOWN tells nothing.
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
        """The shape of a tensor under env; UNKNOWN stands for sizes that only the data tell."""
        try:
            dims: Shape = self._shapes[tensor](env)
            return dims
        except NameError:
            return tuple(env.get(bare, UNKNOWN) if bare else expression(env) for bare, expression in self._dims[tensor])

    @cached_property
    def _soundness(self) -> CodeType:
        """Everything that violations looks for, as one expression that is true where it finds nothing."""
        names = {name: f"_{position}" for position, name in enumerate(self.tensors)}
        checks = [check for parameter in self.passed_parameters for check in _range_checks(parameter)]
        for name, tensor in self.tensors.items():
            own = names[name]
            followed = f"({names[tensor.same_dtype_as]}.dtype,)" if tensor.same_dtype_as else repr(tensor.dtypes)
            checks += [f"{own}.dtype in {followed}", f"{own}.dims == {self._shapes[name].text}"]
            checks += [f"{own}.strides is None", f"prod({own}.dims) < {LARGE}"]
            checks += [] if tensor.layout == "ARRAY" else [f"{own}.layout == {tensor.layout!r}"]
        checks += [f"({rule.holds})" for rule in self.rules]
        checks += [f"{size} != 0" for size, status in self.zero_elements.items() if status != SUCCESS]
        return compile(" and ".join(checks), "<contract>", "eval")

    def sound(self, tensors: Iterable[Tensor], env: Env) -> bool:
        """A quick yes to whether violations finds nothing; False means: ask it. tensors are in the contract's order."""
        scope: Env = {f"_{position}": tensor for position, tensor in enumerate(tensors)}
        scope |= dict.fromkeys(self.data_sizes, UNKNOWN) | env
        try:
            return bool(eval(self._soundness, GLOBALS, scope))
        except UNCOMPUTABLE:
            return False  # something is missing

    def violations(
        self, descriptors: Mapping[str, Descriptor | None], params: Params, env: Env | None = None
    ) -> list[Violation]:
        """The broken rules in the order operators check them: descriptors, parameters, dtypes, layouts, ranks, sizes,
        strides, large tensors, zero elements.

        An absent (None) descriptor is a violation of its own; the rest is then not looked at.
        """
        missing = [name for name in self.tensors if descriptors.get(name) is None]
        if missing:
            return [Violation(f"{name}.descriptor", (BAD_PARAM,), f"{name} has no descriptor") for name in missing]
        given = {name: descriptor for name, descriptor in descriptors.items() if descriptor is not None}
        if env is None:
            env = self.bind({name: given[name].dims for name in self.tensors}, params)
        found = [violation for parameter in self.passed_parameters for violation in _parameter(parameter, env)]
        for tensor in self.tensors.values():
            found += self._tensor(tensor, given, env)
        if any(violation.rule.endswith(".rank") for violation in found):
            return found
        broken = [
            Violation(rule.text, rule.statuses, f"not true: {rule.text} ({rule.holds})", rule.origin)
            for rule in self.rules
            if self._breaks(rule, env)
        ]
        found += [violation for violation in broken if violation.statuses]
        strided = [name for name in self.tensors if given[name].strides is not None]
        found += [Violation(f"{name}.strides", self.strided, f"{name} is strided") for name in strided]
        large = [name for name in self.tensors if given[name].elements >= LARGE]
        if large:
            text = ", ".join(f"{name} has {given[name].elements} elements" for name in large)
            found.append(Violation("large", self.large, f"{text}, expected fewer than {LARGE}"))
        if not found:
            # What no implementation answers for, and zero elements, count only in a case that is right otherwise.
            found += [violation for violation in broken if not violation.statuses]
            zero = [size for size, status in self.zero_elements.items() if status != SUCCESS and env.get(size) == 0]
            found += [
                Violation(f"{size} = 0", (self.zero_elements[size],), f"{size} is 0, expected 1 or more")
                for size in zero
            ]
        return found

    def _breaks(self, rule: Rule, env: Env) -> bool:
        expression = parse_expression(rule.holds)
        try:
            return not expression(env)
        except UNCOMPUTABLE:
            return False  # sizes only the data tell, or a broken parameter that is reported as such

    def _tensor(self, tensor: TensorSpec, given: Mapping[str, Descriptor], env: Env) -> list[Violation]:
        descriptor = given[tensor.name]
        name, dims = tensor.name, descriptor.dims
        allowed = (given[tensor.same_dtype_as].dtype,) if tensor.same_dtype_as else tensor.dtypes
        found = []
        if descriptor.dtype not in allowed:
            text = f"{name} has dtype {descriptor.dtype}, expected {' or '.join(allowed)}"
            found.append(Violation(f"{name}.dtype", (BAD_PARAM,), text))
        # Tensors of layout ARRAY carry no layout rule (OPERATORS.md, rules common to all seven).
        if tensor.layout != "ARRAY" and descriptor.layout != tensor.layout:
            text = f"{name} has layout {descriptor.layout}, expected {tensor.layout}"
            found.append(Violation(f"{name}.layout", (BAD_PARAM,), text))
        if len(dims) != len(self._dims[name]):
            text = f"{name} has {len(dims)} dims {list(dims)}, expected {len(self._dims[name])}: [{tensor.shape}]"
            return [*found, Violation(f"{name}.rank", (BAD_PARAM,), text)]
        try:
            if dims == self._shapes[name](env):
                return found
        except UNCOMPUTABLE:
            pass  # a name that another violation left unbound; the other dims are still looked at
        for axis, (size, (bare, expression)) in enumerate(zip(dims, self._dims[name], strict=True)):
            try:
                expected = env[bare] if bare else expression(env)
            except (KeyError, *UNCOMPUTABLE):
                continue
            if not isinstance(expected, int):
                continue  # a parameter that is reported as such
            if size != expected:
                reason = f"{expression.text} = " if expression.names else ""
                text = f"{name} dim {axis} is {size}, expected {reason}{expected}"
                found.append(Violation(f"{name}.dim{axis}", (BAD_PARAM,), text))
        return found


def _range_checks(parameter: Parameter) -> Iterator[str]:
    """What _parameter looks for, as expressions."""
    name, least, most = parameter.name, parameter.name, parameter.name
    if parameter.length is not None:
        yield f"len({name}) == {parameter.length}"
        least, most = f"min({name})", f"max({name})"
    if parameter.choices is not None:
        given = name if parameter.length is not None else f"{name},"
        yield f"{{*({given})}} <= {{{', '.join(map(str, parameter.choices.values()))}}}"
    if parameter.minimum is not None:
        yield f"{least} >= {parameter.minimum}"
    if parameter.maximum is not None:
        yield f"{most} <= {parameter.maximum}"


def misshapen(parameter: Parameter, value: Any) -> str | None:
    """What is wrong with the form of a parameter's value: one number, or a tuple of as many as it has."""
    if parameter.length is None:
        return f"{parameter.name} is {list(value)}, expected one number" if isinstance(value, tuple) else None
    if isinstance(value, tuple) and len(value) == parameter.length:
        return None
    return f"{parameter.name} is {value}, expected {parameter.length} integers"


def _range_text(minimum: int | None, maximum: int | None) -> str:
    """The legal values of a parameter in words."""
    if minimum is None:
        return f"{maximum} or less"
    if maximum is None:
        return f"{minimum} or more"
    return str(minimum) if minimum == maximum else f"{minimum} to {maximum}"


def _parameter(parameter: Parameter, env: Env) -> list[Violation]:
    name, value = parameter.name, env.get(parameter.name)
    if value is None:
        return [Violation(name, (), f"parameter {name} is missing")]
    wrong = misshapen(parameter, value)
    if wrong is not None:
        return [Violation(name, (), wrong)]
    values: tuple[Any, ...] = value if isinstance(value, tuple) else (value,)
    for each in values:
        if parameter.choices is not None and each not in parameter.choices.values():
            expected = ", ".join(f"{number} ({word})" for word, number in parameter.choices.items())
        elif (parameter.minimum is not None and each < parameter.minimum) or (
            parameter.maximum is not None and each > parameter.maximum
        ):
            expected = _range_text(parameter.minimum, parameter.maximum)
        else:
            continue
        return [Violation(name, parameter.statuses, f"{name} is {value}, expected {expected}", parameter.origin)]
    return []
