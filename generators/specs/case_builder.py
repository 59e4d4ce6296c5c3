"""One case out of one combination of a spec's entry: names resolved, shapes inferred, values parsed, rules checked."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from generators.contracts.case import Case, TensorPlan
from generators.contracts.checks import sound, violations
from generators.contracts.model import LARGE, UNKNOWN, Contract, Env, Shape, TensorSpec
from generators.contracts.negative_cases import check_invalid
from generators.data.distributions import Values, check_values, is_finite, parse_values
from generators.data.kinds import names_in
from generators.expressions import UNCOMPUTABLE
from generators.specs.axes import varied_paths
from generators.specs.conversions import (
    Problem,
    Raw,
    convert_dtype,
    convert_expect,
    convert_faults,
    convert_parameter,
    convert_strides,
    evaluate_size,
)  # fmt: skip
from generators.specs.yaml_loader import KeyPath
from schemas.criteria import Criterion
from schemas.errors import InputError
from schemas.status import SUCCESS
from schemas.suggest import did_you_mean
from schemas.tensor_descriptor import Descriptor

_NOTHING: Final[Raw] = {}
_BEYOND: Final = "expect_beyond_design"
_MEMO: Final = 4096  # parsed values kept; a spec written out has as many as entries
_NULL_TENSORS: Final = ("null_descriptors", "null_pointers", "size_query_null_descriptors")  # lists of tensors
_FAULTS: Final = frozenset(
    (
        *_NULL_TENSORS, "null_handle", "null_parameters", "workspace", "null_workspace_size", "size_query_null_handle",
    )
)  # fmt: skip


class CaseBuilder:
    """Builds the cases of one spec file; seed is that of entries without one."""

    def __init__(self, contract: Contract, path: Path, seed: int) -> None:
        self.contract = contract
        self._path = path
        self._seed = seed
        self._parameters = {parameter.name: parameter for parameter in contract.passed_parameters}
        self._criteria = {tensor.name: tensor.criteria for tensor in contract.outputs}
        self._known: dict[str, Collection[str]] = {  # section of an entry -> the names that it may hold
            "params": self._parameters,
            "sizes": contract.sizes,
            "inputs": [tensor.name for tensor in contract.inputs],
            "outputs": self._criteria,
            "criteria": self._criteria,
            **dict.fromkeys(_NULL_TENSORS, contract.tensors),
        }
        self._values: dict[tuple[Any, ...], tuple[Any, Values]] = {}
        self._names: dict[tuple[int, str], tuple[Any, tuple[str, ...]]] = {}

    def unknown_names(self, entry: Raw) -> Iterator[Problem]:
        """Names in an entry (those that it varies too) that the contract lacks."""
        found: list[tuple[str, str, KeyPath]] = []
        for section in self._known:
            names = entry.get(section, ())
            steps = names if isinstance(names, dict) else range(len(names))
            found += [(section, name, (section, step)) for name, step in zip(names, steps, strict=True)]
        for path, where in varied_paths(entry):
            section, _, rest = path.partition(".")
            if rest:
                found.append((section, rest.partition(".")[0], where))
        for section, name, where in found:
            known = self._known.get(section)
            if known is not None and name not in known:
                what = {"params": "parameter", "sizes": "size", "inputs": "input"}.get(section, "output")
                what = "tensor" if section in _NULL_TENSORS else what
                yield Problem(where, f"{self.contract.op} has no {what} {name!r}{did_you_mean(name, known)}")

    def varies_section(self, entry: Raw) -> bool:
        """Whether an entry varies a whole section, such as params: then names come with the values."""
        return any(path in self._known for path, _ in varied_paths(entry))

    def case(self, raw: Raw, suite: str, name: str, place: str) -> Case:
        """The case that an entry with its matrix values assigned means; Problem where it makes none."""
        inputs, outputs = raw.get("inputs", _NOTHING), raw.get("outputs", _NOTHING)
        env, shapes = self._bound(raw, inputs, outputs)
        contract = self.contract.given(env)
        criteria = self._criteria_of(raw["criteria"]) if "criteria" in raw else self._criteria
        if contract is not self.contract:
            self._refuse_absent(raw, contract)
            criteria = {tensor.name: criteria[tensor.name] for tensor in contract.outputs}
        dtypes: dict[str, str] = {}
        planned = [
            self._plan("inputs", tensor, inputs.get(tensor.name, _NOTHING), shapes, env, dtypes)
            for tensor in contract.inputs
        ]
        computed = [
            self._plan("outputs", tensor, outputs.get(tensor.name, _NOTHING), shapes, env, dtypes)
            for tensor in contract.outputs
        ]
        key = _BEYOND if _BEYOND in raw else "expect"
        if key == _BEYOND and "expect" in raw:
            raise Problem((_BEYOND,), "expect is given too, expected one of the two")
        case = Case(
            contract.op, suite, name, {each: env[each] for each in self._parameters if each in env},
            tuple(planned), tuple(computed),
            criteria,
            convert_expect(raw[key]) if key in raw else (SUCCESS,),
            key == _BEYOND,
            raw.get("breaks", 1),
            convert_faults(raw) if not _FAULTS.isdisjoint(raw) else (),
            tuple(raw.get("tags", ())), raw.get("seed", self._seed), place, raw.get("accumulate"), self._path,
        )  # fmt: skip
        self._check(case, env, raw)
        return case

    def _refuse_absent(self, raw: Raw, contract: Contract) -> None:
        """Problem where an entry names a tensor that exists only with other parameters."""
        for section in ("inputs", "outputs", "criteria", *_NULL_TENSORS):
            for number, name in enumerate(raw.get(section, ())):
                if name not in contract.tensors:
                    text = f"{name} exists only where {self.contract.tensors[name].exists}: not with these parameters"
                    raise Problem((section, number if section in _NULL_TENSORS else name), text)

    def _bound(self, raw: Raw, inputs: Raw, outputs: Raw) -> tuple[Env, dict[str, Shape]]:
        """Sizes and parameters by name, and the shapes that are given."""
        env: Env = {}
        for name, value in raw.get("params", _NOTHING).items():
            parameter = self._parameters[name]
            env[name] = (
                value
                if type(value) is int and parameter.length is None and parameter.kind == "int"
                else convert_parameter(parameter, value)
            )
        for name, value in raw.get("sizes", _NOTHING).items():
            env[name] = value if isinstance(value, int) else evaluate_size(value, env, ("sizes", name))
        shapes: dict[str, Shape] = {}
        for section, given in (("inputs", inputs), ("outputs", outputs)):
            for name, tensor in given.items():
                if "shape" in tensor:
                    shapes[name] = tuple(
                        size if isinstance(size, int) else evaluate_size(size, env, (section, name, "shape", axis))
                        for axis, size in enumerate(tensor["shape"])
                    )
        try:
            env = self.contract.bind(shapes, env)
        except UNCOMPUTABLE as error:
            raise Problem(("params",), f"a default can't be computed: {error}") from None
        for name in self._parameters:
            if name not in env and name not in self.contract.computed_parameters:
                raise Problem(("params",), f"parameter {name!r} is missing, {self.contract.op} has no default for it")
        return env, shapes

    def _plan(
        self, section: str, tensor: TensorSpec, raw: Raw, shapes: Mapping[str, Shape], env: Env, dtypes: dict[str, str]
    ) -> TensorPlan:
        name = tensor.name
        dims = shapes.get(name)
        if dims is None:
            dims = self._inferred(section, tensor, env)
        elements = math.prod(dims)
        if elements >= 2**63:
            raise Problem((section, name, "shape"), f"shape {list(dims)} has more than 2^63 - 1 elements")
        if "dtype" in raw:
            dtype = convert_dtype(raw["dtype"])
        else:
            dtype = tensor.dtypes[0] if tensor.same_dtype_as is None else dtypes[tensor.same_dtype_as]
        dtypes[name] = dtype
        strides = convert_strides(raw["strides"], dims, (section, name, "strides")) if "strides" in raw else None
        values = None
        if section == "inputs" and elements < LARGE:
            values = self._drawn(tensor, raw.get("dist", _NOTHING), dims, dtype, env)
        capacity = raw.get("capacity", False)
        if capacity and UNKNOWN in dims:
            raise Problem((section, name, "capacity"), f"{name} has no shape, expected one that is its capacity")
        if capacity and not self.contract.capacities(name):
            text = f"the shape of {name} follows from sizes and parameters, it can't be a capacity"
            raise Problem((section, name, "capacity"), text)
        return TensorPlan(name, dtype, raw.get("layout", tensor.layout), dims, strides, values, capacity)

    def _inferred(self, section: str, tensor: TensorSpec, env: Env) -> Shape:
        """The shape that follows from sizes and parameters; UNKNOWN only for sizes that depend on the data."""
        path = (section, tensor.name)
        try:
            dims = self.contract.shape(tensor.name, env)
        except UNCOMPUTABLE:
            dims = None
        if dims is not None and (not dims or min(dims) >= 0):
            return dims
        unbound = sorted(set().union(*(expression.names for expression in tensor.dims)) - env.keys())
        if dims is None or not self.contract.data_sizes.issuperset(unbound):
            raise Problem(path, f"the shape [{tensor.shape}] is missing: give it, or sizes of {', '.join(unbound)}")
        if any(size < 0 and expression.names <= env.keys() for size, expression in zip(dims, tensor.dims, strict=True)):
            raise Problem(path, f"the shape [{tensor.shape}] comes out as {list(dims)}")
        return tuple(UNKNOWN if size < 0 else size for size in dims)

    def _drawn(self, tensor: TensorSpec, dist: Raw, dims: Shape, dtype: str, env: Env) -> Values:
        path = ("inputs", tensor.name, "dist")
        try:
            names = self._names_in(dist, tensor)
            # All that parse_values reads. The memo holds dist, so no other object takes its id meanwhile; numbers
            # go in as text, because 1, 1.0 and True are equal as keys.
            key = (id(dist), tensor.name, dtype, *[repr(env.get(name)) for name in names])
            known = self._values.get(key)
            if known is None:
                known = dist, parse_values(dist, env, dtype, tensor.values, self._path.parent)
                _remember(self._values, key, known)
            check_values(known[1], dims, dtype)
            if tensor.finite and not is_finite(known[1], dtype):
                raise InputError(f"{tensor.name} of {self.contract.op} takes no NaN and Inf")
        except InputError as error:
            raise Problem(path, error.message) from None
        return known[1]

    def _names_in(self, dist: Raw, tensor: TensorSpec) -> tuple[str, ...]:
        """The sizes and parameters that a tensor's values depend on: in its dist, or in its default."""
        key = (id(dist), tensor.name)  # tensors without a dist share one empty mapping, but not their defaults
        known = self._names.get(key)
        if known is None:
            known = dist, tuple(sorted(names_in(dist) | names_in(tensor.values)))
            _remember(self._names, key, known)
        return known[1]

    def _criteria_of(self, raw: Raw) -> dict[str, tuple[Criterion, ...]]:
        own = {
            output: tuple(
                Criterion(name, float(threshold), f"spec {thresholds.place}") for name, threshold in thresholds.items()
            )
            for output, thresholds in raw.items()
        }
        return {**self._criteria, **own}

    def _check(self, case: Case, env: Env, raw: Raw) -> None:
        if case.expect != (SUCCESS,) or case.faults:
            try:
                check_invalid(case, self.contract)
            except InputError as error:
                raise Problem((_BEYOND if case.beyond_design else "expect",), error.message) from None
            return
        if sound(self.contract, case.plans, env):
            return
        found = violations(self.contract, {plan.name: plan.descriptor for plan in case.plans}, case.params, env)
        if found:
            rule, text = found[0].rule, "; ".join(violation.text for violation in found)
            if rule in self._parameters and rule not in raw.get("params", _NOTHING):
                path: KeyPath = ("params",) if "params" in raw else ()
                raise Problem(path, f"{text} ({rule} is not given: it follows from the rest)")
            raise Problem(self._path_of(rule), text)

    def _path_of(self, rule: str) -> KeyPath:
        """The key path of the entry that a broken rule is about, empty where its name holds none."""
        if rule in self._parameters:
            return ("params", rule)
        tensor, _, what = rule.partition(".")
        section = "outputs" if tensor in self._criteria else "inputs"
        key = what if what in ("dtype", "layout", "strides") else "shape"
        return (section, tensor, key) if tensor in self.contract.tensors else ()


def check_case(case: Case, contract: Contract) -> None:
    """InputError unless a case that should succeed breaks nothing, and any other exactly one rule or fault."""
    if case.valid and not case.faults:
        descriptors: dict[str, Descriptor | None] = {p.name: p.descriptor for p in case.plans}
        found = violations(contract, descriptors, case.params)
        if found:
            raise InputError("; ".join(violation.text for violation in found))
    else:
        check_invalid(case, contract)


def _remember(memo: dict[Any, Any], key: Any, value: Any) -> None:
    if len(memo) >= _MEMO:
        memo.clear()
    memo[key] = value
