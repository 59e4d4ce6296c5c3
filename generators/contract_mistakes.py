"""What is wrong with an operator's contract, found when the operator is registered: file, line, what is allowed."""

from __future__ import annotations

import linecache
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from generators.contracts.conditions import of_parameters
from generators.contracts.file_parameters import kind_of_field, parameter_message
from generators.contracts.model import Contract, Parameter, TensorSpec
from generators.contracts.operator import Operator
from generators.data.distributions import OPTIONS
from generators.data.kinds import KINDS, names_in
from generators.error_bounds.precision import PRECISIONS
from generators.expressions import parse_expression
from generators.parameters import TYPES
from schemas.criteria import CRITERIA
from schemas.dtypes import DTYPES, LAYOUTS
from schemas.errors import InputError, SourceLocation
from schemas.protos import messages
from schemas.status import STATUS_NUMBERS
from schemas.suggest import did_you_mean

CATEGORIES: Final = ("pure_io", "composite", "atomic_add", "index")
OPERATOR_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_LISTED: Final = 12  # words of a message that names all that are allowed
Mistake = tuple[str, str]  # a word of the source where it stands, and what is wrong


def check_contract(operator: Operator) -> None:
    """InputError with file and line of the first mistake in the operator's contract; its text names all of them."""
    contract = getattr(operator, "contract", None)
    if not isinstance(contract, Contract):
        raise InputError("has no contract", _place(operator, "contract"))
    found = list(dict.fromkeys(_mistakes(operator))) or list(_of_message(contract))
    cases = operator.cases
    if cases is not None and not cases.is_file():
        found.append(("cases", f"cases is {str(cases)!r}, expected the path of a YAML file that exists"))
    if found:
        texts = "; ".join(text for _, text in found)
        raise InputError(f"contract of {contract.op}: {texts}", _place(operator, found[0][0]))


def _place(operator: Operator, word: str) -> SourceLocation | None:
    """Where a word stands in quotes, or as a keyword: in the operator's class or below, else anywhere in its file."""
    kind = type(operator)
    file = kind.reference.__code__.co_filename
    lines = linecache.getlines(file)
    if not lines:  # a class of no file
        return None
    head = re.compile(rf"class {re.escape(kind.__name__)}\b")
    first = next((number for number, line in enumerate(lines, 1) if head.match(line)), 1)
    wanted = re.compile(rf"[\"']{re.escape(word)}[\"']|\b{re.escape(word)}\s*[:=]")
    numbers = (*range(first, len(lines) + 1), *range(1, first))
    return SourceLocation(file, next((number for number in numbers if wanted.search(lines[number - 1])), first))


def _mistakes(operator: Operator) -> Iterator[Mistake]:
    contract = operator.contract
    if not isinstance(contract.op, str) or not OPERATOR_NAME.fullmatch(contract.op):
        yield contract.op, f"op is {contract.op!r}, expected a name of a-z 0-9 _"
    yield from _unknown(contract.category, "category", CATEGORIES)
    yield from _unknown(contract.accumulate, "accumulate", PRECISIONS)
    yield from _duplicates([each.name for each in (*contract.inputs, *contract.outputs)], "tensor")
    yield from _duplicates([each.name for each in contract.parameters], "parameter")
    yield from _statuses(contract)
    shapes = [each for tensor in contract.tensors.values() for each in _shape_mistakes(tensor)]
    yield from shapes
    for parameter in contract.parameters:
        yield from _of_parameter(parameter, contract)
    if shapes:  # no size is known
        return
    names = {*contract.sizes, *(each.name for each in contract.parameters)}
    seen: list[str] = []
    for tensor in contract.tensors.values():
        yield from _of_tensor(tensor, seen, names, is_input=tensor in contract.inputs)
        seen.append(tensor.name)
    for rule in contract.rules:
        yield from _expression(rule.holds, f"rule {rule.text!r}", names)
        for word in {word for values in rule.breaks for word in values}:
            yield from _unknown(word, f"breaks of rule {rule.text!r}", names)
    for role in (contract.inputs, contract.outputs):
        yield from _of_optional(role, contract)
    for size in contract.zero_elements:
        yield from _unknown(size, "zero_elements", names)
    for parameter in contract.parameters:
        if parameter.follows:
            yield from _expression(parameter.default, f"default of {parameter.name}", names)
        yield from _of_list(parameter, operator, names)
    yield from _expression(contract.theory_ops, "theory_ops", names)
    yield from _of_relations(contract, names)


def _of_message(contract: Contract) -> Iterator[Mistake]:
    """Parameters that the message of the interface holds none of, or of another kind."""
    try:
        message = parameter_message(messages.Node(), contract)
    except InputError as error:
        yield contract.message or "parameters", error.message
        return
    for parameter in contract.parameters:
        if message is None:
            return
        kind = kind_of_field(message.DESCRIPTOR.fields_by_name[parameter.name])
        if kind != parameter.kind:
            yield parameter.name, f"kind of {parameter.name} is {parameter.kind!r}, the interface's field is {kind!r}"


def _statuses(contract: Contract) -> Iterator[Mistake]:
    given: list[tuple[str, Iterable[str]]] = [("large", contract.large), ("strided", contract.strided)]
    given += [(f"zero_elements of {size}", (status,)) for size, status in contract.zero_elements.items()]
    given += [(f"statuses of {each.name}", each.statuses) for each in contract.parameters]
    given += [(f"statuses of rule {rule.text!r}", rule.statuses) for rule in contract.rules]
    for where, statuses in given:
        if isinstance(statuses, str):
            yield statuses, f"{where} is the text {statuses!r}, expected a tuple of names"
        else:
            for status in statuses:
                yield from _unknown(status, where, STATUS_NUMBERS)


def _shape_mistakes(tensor: TensorSpec) -> Iterator[Mistake]:
    for word in tensor.shape.split():
        try:
            parse_expression(word)
        except ValueError as error:
            yield tensor.shape, f"shape of {tensor.name}: {error}"


def _of_tensor(tensor: TensorSpec, before: list[str], names: Collection[str], *, is_input: bool) -> Iterator[Mistake]:
    if isinstance(tensor.dtypes, str) or not tensor.dtypes:
        yield tensor.name, f"dtypes of {tensor.name} is {tensor.dtypes!r}, expected a tuple of names"
    else:
        for dtype in tensor.dtypes:
            yield from _unknown(dtype, f"dtypes of {tensor.name}", DTYPES)
    yield from _unknown(tensor.layout, f"layout of {tensor.name}", LAYOUTS)
    for expression in tensor.dims:
        if expression.names != {expression.text}:
            for _, message in _expression(expression.text, f"shape of {tensor.name}", names):
                yield tensor.shape, message
    if tensor.same_dtype_as is not None and tensor.same_dtype_as not in before:
        text = f"same_dtype_as of {tensor.name} is {tensor.same_dtype_as!r}, expected a tensor before it"
        yield tensor.same_dtype_as, text
    for criterion in tensor.criteria:
        yield from _unknown(criterion.name, f"criteria of {tensor.name}", CRITERIA)
    for dist in (tensor.values or {}, *tensor.variants) if is_input else ():
        for kind in dist.keys() - {*OPTIONS}:
            yield from _unknown(kind, f"values of {tensor.name}", KINDS)
        for name in names_in(dist):
            yield from _unknown(name, f"values of {tensor.name}", names)


def _of_optional(role: tuple[TensorSpec, ...], contract: Contract) -> Iterator[Mistake]:
    """Mistakes in the tensors of a role that don't always exist: files name none, so they come last."""
    parameters = [parameter.name for parameter in contract.passed_parameters]
    for before, tensor in zip((None, *role), role, strict=False):
        if tensor.exists:
            yield from _expression(tensor.exists, f"exists of {tensor.name}", parameters)
        elif before is not None and before.exists:
            yield tensor.name, f"{tensor.name} always exists, expected it before {before.name}, which does not"
        leader = contract.tensors.get(tensor.same_dtype_as or "")
        if leader is not None and leader.exists not in ("", tensor.exists):
            text = f"same_dtype_as of {tensor.name} is {leader.name!r}, expected a tensor that exists where it does"
            yield leader.name, text


def _of_list(parameter: Parameter, operator: Operator, names: Collection[str]) -> Iterator[Mistake]:
    """Mistakes in the length of a list, and in what it is computed from."""
    name, contract = parameter.name, operator.contract
    if isinstance(parameter.length, str):
        yield from _expression(parameter.length, f"length of {name}", names)
    if parameter.computed_from:
        if parameter.length is None:
            yield (
                name,
                f"computed_from of {name} is {parameter.computed_from!r}, but {name} is no list: expected a length",
            )
        yield from _unknown(
            parameter.computed_from, f"computed_from of {name}", [each.name for each in contract.inputs]
        )
        if type(operator).computed_parameter is Operator.computed_parameter:
            yield name, f"computed_from of {name} needs a method `computed_parameter` of the operator"


def _of_parameter(parameter: Parameter, contract: Contract) -> Iterator[Mistake]:
    name = parameter.name
    yield from _unknown(parameter.kind, f"kind of {name}", TYPES)
    if parameter.kind not in TYPES:
        return
    if parameter.kind in ("bool", "string") and (parameter.minimum is not None or parameter.maximum is not None):
        yield name, f"{name} is a {parameter.kind} with a range, expected choices or neither"
    if parameter.minimum is not None and parameter.maximum is not None and parameter.minimum > parameter.maximum:
        yield name, f"{name} has minimum {parameter.minimum} and maximum {parameter.maximum}"
    if parameter.output is not None:
        tensor, dim = parameter.output
        spec = {each.name: each for each in contract.outputs}.get(tensor)
        if spec is None or not 0 <= dim < len(spec.shape.split()):
            yield name, f"output of {name} is {parameter.output!r}, expected an output's name and the number of a dim"
        elif spec.exists:
            yield tensor, f"output of {name} is {parameter.output!r}, expected an output that always exists"
    elif parameter.default is not None and not parameter.follows:
        own = Contract(op="", category="", inputs=(), outputs=(), parameters=(parameter,))
        value = tuple(parameter.default) if isinstance(parameter.default, list) else parameter.default
        broken = [each for each in of_parameters(own) if each.broken({name: value})]
        if broken:
            yield name, f"default: {broken[0].violation({name: value}).text}"


def _of_relations(contract: Contract, names: Collection[str]) -> Iterator[Mistake]:
    tensors = contract.tensors
    for each in contract.relations:
        where = f"relation {each.name!r}"
        for size in (each.size, each.within):
            if size:
                yield from _unknown(size, where, names)
        for tensor in (*each.axes, *each.columns, *each.constants, *([each.linear] if each.linear else ())):
            yield from _unknown(tensor, where, tensors)
        for text in (*each.constants.values(), each.where):
            if text:
                yield from _expression(text, where, names)
    for one in contract.coordinates:
        for tensor in [one.tensor] if one.tensor else []:
            yield from _unknown(tensor, f"coordinate {one.name!r}", tensors)
        for name in (*one.parameters, *([one.size] if one.size else ())):
            yield from _unknown(name, f"coordinate {one.name!r}", names)
    for row in contract.sums:
        for tensor in (row.output, row.terms):
            yield from _unknown(tensor, "sums", tensors)


def _expression(text: str, where: str, names: Collection[str]) -> Iterator[Mistake]:
    try:
        read = parse_expression(text).names
    except ValueError as error:
        yield text, f"{where}: {error}"
        return
    for name in sorted(read):
        for _, message in _unknown(name, where, names):
            yield text, message


def _unknown(word: Any, where: str, known: Collection[str]) -> Iterator[Mistake]:
    """Nothing where the word is known, else that it is not, with what is allowed or the nearest of many."""
    if word in known:
        return
    listed = sorted(known) if isinstance(known, (set, frozenset)) else known
    allowed = f": expected one of {', '.join(listed)}" if len(known) <= _LISTED else did_you_mean(str(word), known)
    yield str(word), f"{where}: unknown {word!r}{allowed}"


def _duplicates(names: list[str], what: str) -> Iterator[Mistake]:
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield name, f"{names.count(name)} {what}s are called {name!r}, expected one"
