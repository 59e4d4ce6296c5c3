"""A page per operator, Markdown, out of its contract, definition and suites: what `mluops docs` writes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

import jinja2

from generators.contracts.model import Contract, Parameter, TensorSpec
from generators.contracts.operator import Operator
from generators.specs.expansion import expand
from generators.specs.loader import load_spec, spec_files
from mluops_cli.inspection.definitions import definition
from mluops_cli.inspection.relation_texts import relation_texts

_REFUSED: Final = "refused in a spec"
_TEMPLATE: Final = """\
# {{ contract.op }}

<!-- made by `mluops docs` from the operator's contract, definition and suites; don't edit -->

{{ text }}

Category {{ contract.category }}
{%- if contract.network %}; used by {{ contract.network }}{% endif %}
{%- if contract.source %}; source: {{ contract.source }}{% endif %}.

## Tensors

| tensor | role | dtype | layout | shape | values, if a case doesn't say |
| --- | --- | --- | --- | --- | --- |
{% for role, tensor, values in tensors -%}
{{ [tensor.name | code, role, tensor | dtypes, tensor.layout, tensor | shape, values] | row }}
{% endfor %}
{%- if notes %}
{{ notes }}
{% endif %}
{%- if recipes %}
{{ recipes }}
{% endif %}
## Parameters

{% if contract.parameters -%}
| parameter | values | default | outside of that | |
| --- | --- | --- | --- | --- |
{% for parameter in contract.parameters -%}
{{ [parameter.name | code, parameter | range, parameter | default, parameter | answer, parameter.text] | row }}
{% endfor -%}
{% else -%}
None.
{% endif %}
{%- if definition %}
## Definition

{{ definition }}
{% endif %}
## Rules

| rule | holds when | otherwise | stands in |
| --- | --- | --- | --- |
{% for rule in contract.rules -%}
{{ [rule.text, rule.holds | code, rule.statuses | statuses, rule.origin] | row }}
{% endfor -%}
| dtypes, layouts, ranks and sizes as above | | BAD_PARAM | design |
| tensors are dense | | {{ contract.strided | statuses }} | design |
| every tensor has fewer than 2^31 elements | | {{ contract.large | statuses }} | design |
| handle, descriptors and the data of non-empty tensors are given | | BAD_PARAM | design |
{% for size, status in contract.zero_elements.items() -%}
| {{ size }} = 0 | | {{ status }} | design |
{% endfor %}
`design`: the design document, or the source that is named above where there is none; `vendor`: the vendor's library
checks it; `ours`: the contract alone.
"{{ refused }}": no case breaks it, so a kernel need not check it. An invalid case breaks exactly one rule.
Dense: the strides of a C array.

Workspace: {{ "a null one: BAD_PARAM (design); one too short: BAD_PARAM (ours)" if contract.workspace else "none" }}.

## Acceptance

| output | criteria | compared | |
| --- | --- | --- | --- |
{% for tensor in contract.outputs -%}
{{ [tensor.name | code, tensor.criteria | criteria, tensor.compare, tensor | remark] | row }}
{% endfor %}
{% if contract.relations -%}
`mluops run --relations` calls the kernel again. Copies and integers must be equal, sums within twice their error bound.

| relation | called with | outputs must be |
| --- | --- | --- |
{% for relation in contract.relations -%}
{{ relation | texts | row }}
{% endfor %}
{% endif -%}
Theoretical work of one call. Operations: {{ operations }}. Bytes: {{ bytes }}.

## Suites

| suite | cases | of them valid |
| --- | ---: | ---: |
{% for suite, (all, valid) in suites | dictsort -%}
| {{ suite }} | {{ all }} | {{ valid }} |
{% endfor -%}
"""


def operator_page(operator: Operator) -> str:
    """Return one operator's page, Markdown; InputError where its definition is wrong."""
    contract = operator.contract
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    environment.filters |= {
        "row": lambda cells: f"| {' | '.join(cells)} |", "code": lambda text: f"`{text}`",
        "texts": lambda relation: (relation.name, *relation_texts(relation, contract)), "dtypes": _dtypes,
        "shape": _shape, "range": _range, "default": _default, "answer": _answer, "statuses": _statuses,
        "criteria": _criteria, "remark": _remark,
    }  # fmt: skip
    return environment.from_string(_TEMPLATE).render(
        contract=contract,
        text=inspect.getdoc(type(operator)) or "",
        definition=definition(operator),
        tensors=[
            *(("input", tensor, _values(tensor)) for tensor in contract.inputs),
            *(("output", tensor, "") for tensor in contract.outputs),
        ],
        notes=_notes(contract),
        recipes=_recipes(operator),
        operations=_work(operator, "theory_ops", f"`{contract.theory_ops}`"),
        bytes=_work(operator, "theory_io_bytes", "all inputs and outputs, once each"),
        suites=_suites(contract.op),
        refused=_REFUSED,
    )


def _suites(op: str) -> dict[str, tuple[int, int]]:
    """Return the number of cases, and of those expected to succeed, per suite."""
    counts: dict[str, tuple[int, int]] = {}
    for path in spec_files(op):
        for case in expand(load_spec(path)):
            total, valid = counts.get(case.suite, (0, 0))
            counts[case.suite] = total + 1, valid + case.valid
    return counts


def _notes(contract: Contract) -> str:
    """Return which sizes a spec may give, and which of them no input's shape gives."""
    given = {name for tensor in contract.inputs for expression in tensor.dims for name in expression.names}
    free = [name for name in contract.sizes if name not in given]
    notes = [
        ("Sizes (`sizes` in a spec)", contract.sizes),
        ("Not given by any input:", [name for name in free if name not in contract.data_sizes]),
        ("Given by the values of the inputs:", [name for name in free if name in contract.data_sizes]),
    ]
    found = [f"{text} {', '.join(f'`{name}`' for name in names)}." for text, names in notes if names]
    if contract.data_sizes:
        found.append("In the rules such a size is -1 where a spec doesn't give it.")
    found += [f"`{name}` exists where `{each.exists}`." for name, each in contract.tensors.items() if each.exists]
    finite = ", ".join(f"`{tensor.name}`" for tensor in contract.inputs if tensor.finite)
    return " ".join([*found, f"No NaN and Inf in {finite}."] if finite else found)


def _recipes(operator: Operator) -> str:
    """Return what the operator itself knows to draw, as its method says."""
    own = type(operator).draw
    return "" if own is Operator.draw else inspect.cleandoc(own.__doc__ or "")


def _work(operator: Operator, method: str, common: str) -> str:
    """Return how theoretical work is counted: the contract's expression, or the operator's own docstring."""
    own: Any = getattr(type(operator), method)
    return common if own is getattr(Operator, method) else (inspect.getdoc(own) or "").rstrip(".")


def _dtypes(tensor: TensorSpec) -> str:
    return f"as `{tensor.same_dtype_as}`" if tensor.same_dtype_as else ", ".join(tensor.dtypes)


def _shape(tensor: TensorSpec) -> str:
    return f"`[{', '.join(tensor.shape.split())}]`"


def _values(tensor: TensorSpec) -> str:
    def text(value: Any) -> str:
        if isinstance(value, Mapping):
            return ", ".join(f"{key}: {text(each)}" for key, each in value.items())
        return f"[{', '.join(map(text, value))}]" if isinstance(value, (list, tuple)) else str(value)

    return f"`{text(tensor.values)}`" if tensor.values else ""


def _range(parameter: Parameter) -> str:
    if parameter.output is not None:
        counted = f"dim {parameter.output[1]} of `{parameter.output[0]}`"
        return f"{counted}, which the data decide; no argument: an implementation returns it as a scalar of this name"
    if parameter.choices is not None:
        found = ", ".join(f"{value} (the word `{word}`)" for word, value in parameter.choices.items())
    elif parameter.minimum is not None and parameter.minimum == parameter.maximum:
        found = str(parameter.minimum)
    elif parameter.minimum is not None and parameter.maximum is not None:
        found = f"{parameter.minimum} to {parameter.maximum}"
    elif parameter.minimum is not None:
        found = f"{parameter.minimum} or more"
    else:
        found = "any" if parameter.maximum is None else f"{parameter.maximum} or less"
    if parameter.kind == "bool":
        found = "true or false"
    elif parameter.kind == "float":
        found = f"a C float, {found}"
    elif parameter.kind == "string" and parameter.choices is None:
        found = "any text"
    values = {"int": "integers", "float": "numbers"}.get(parameter.kind, "values")
    length = f"`{parameter.length}`" if isinstance(parameter.length, str) else parameter.length
    return f"{length} {values}, each {found}" if length is not None else found


def _default(parameter: Parameter) -> str:
    if parameter.computed_from:
        return f"computed from `{parameter.computed_from}`"
    return "" if parameter.default is None else f"`{parameter.default}`"


def _answer(parameter: Parameter) -> str:
    limits = parameter.choices, parameter.minimum, parameter.maximum
    if parameter.output is not None or (parameter.kind != "bool" and all(each is None for each in limits)):
        return ""
    return f"{_statuses(parameter.statuses)} ({parameter.origin})" if parameter.statuses else _statuses(())


def _statuses(statuses: tuple[str, ...]) -> str:
    return " or ".join(statuses) or _REFUSED


def _criteria(criteria: tuple[Any, ...]) -> str:
    listed = ", ".join(f"{each.name} <= {each.threshold:g}" for each in criteria)
    return f"{listed} ({'; '.join(dict.fromkeys(each.source for each in criteria))})"


def _remark(tensor: TensorSpec) -> str:
    fill = f"set to {tensor.fill} before the call" if tensor.fill is not None else ""
    return "not compared where a tensor is empty" if tensor.undefined_when_empty else fill
