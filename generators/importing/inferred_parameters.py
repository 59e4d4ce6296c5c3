"""The parameters of an operator, from the message that the interface has for them, or from the values of cases."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from generators.contracts.file_parameters import kind_of_field, plain_message
from generators.importing.draft import CaseDraft, Note, short
from generators.parameters import Kind, Parameter
from schemas.errors import InputError
from schemas.protos import messages

_SHOWN: Final = 4  # values that a text names, if they fit
_WIDTH: Final = 60  # characters of a list of them


def message_fields(message: str) -> list[Any]:
    """The descriptors of the fields of an operator's message by the name of its field; none where there is none."""
    field = messages.Node.DESCRIPTOR.fields_by_name.get(message)
    return [] if field is None else list(field.message_type.fields)


def plain_integers(drafts: Sequence[CaseDraft]) -> dict[str, tuple[int, ...]]:
    """The parameters that are one integer and no word of an enum: name -> values, case by case."""
    enums = {field.name for field in message_fields(drafts[0].message) if field.enum_type is not None}
    columns = {name: [draft.params.get(name) for draft in drafts] for name in drafts[0].params if name not in enums}
    floats = {name for draft in drafts for name in draft.floats}
    return {
        name: tuple(int(value) for value in column if value is not None)
        for name, column in columns.items()
        if name not in floats and all(type(value) is int for value in column)
    }


def parameters_of_cases(drafts: Sequence[CaseDraft], dims: Collection[str], note: Note) -> Iterator[Parameter]:
    """The parameters that the cases have; dims are those that are dims of tensors, which are 1 or more.

    note is called with what no contract has a place for. InputError where cases have different messages, or lists of
    different lengths.
    """
    first = drafts[0]
    for draft in drafts:
        if draft.message != first.message:
            found, other = draft.message or "no message", first.message or "none"
            raise InputError(f"{draft.place}: the parameters are in {found}, in {first.place} in {other}")
    fields = {field.name: field for field in message_fields(first.message)}
    for name in fields or dict.fromkeys(name for draft in drafts for name in draft.params):
        values = [draft.params[name] for draft in drafts if name in draft.params]
        if any(isinstance(each, dict) for value in values for each in (value if isinstance(value, list) else [value])):
            note(f"parameter {name} is a message, which no contract has a place for: left out")
            continue
        lengths = {len(value) if isinstance(value, list) else None for value in values}
        if len(lengths) > 1:
            found = " and ".join(sorted(map(str, lengths)))
            raise InputError(
                f"{first.place}: parameter {name} has {found} values: give case files with one number of them"
            )
        (length,) = lengths or {None}
        if length == 0:
            note(f"parameter {name} is an empty list in all cases: left out")
        elif values:
            field = fields.get(name)
            kind = kind_of_field(field) if field is not None else _kind_of_values(name, drafts)
            yield _parameter(name, kind, values, length, field, minimum=1 if name in dims else None)


def parameters_of_message(message: str, note: Note) -> Iterator[Parameter]:
    """The parameters that the interface has for an operator, without a case of it."""
    fields = message_fields(message)
    values = plain_message(getattr(messages.Node(), message)) if fields else {}
    for field in fields:
        if isinstance(values.get(field.name, ()), tuple):
            note(f"parameter {field.name} of {message} is a list or a message: left out, add a list with its length")
        else:
            yield _parameter(field.name, kind_of_field(field), [], None, field, minimum=None)


def _parameter(
    name: str, kind: Kind, values: Sequence[Any], length: int | None, field: Any, minimum: int | None
) -> Parameter:
    default = field.default_value if field is not None and field.has_default_value and length is None else None
    default = short(default) if isinstance(default, float) else default
    if minimum is not None and any(value < minimum for value in values):
        minimum = 0
    return Parameter(
        name,
        minimum=minimum,
        length=length,
        default=default,
        text=_text(values, field),
        kind=kind,
    )


def _kind_of_values(name: str, drafts: Sequence[CaseDraft]) -> Kind:
    """The kind of a parameter whose values are all that is known."""
    value = next(draft.params[name] for draft in drafts if name in draft.params)
    one = value[0] if isinstance(value, list) else value
    if isinstance(one, (bool, str)):
        return "bool" if isinstance(one, bool) else "string"
    return "float" if any(name in draft.floats for draft in drafts) else "int"


def _text(values: Sequence[Any], field: Any) -> str:
    """What is known of the values, for the operator's page: the words of an enum, what the cases have."""
    words = [] if field is None or field.enum_type is None else list(field.enum_type.values)
    named = _listed([f"{value.number} {value.name}" for value in words])
    shown = _listed(list(dict.fromkeys(map(str, values))))
    return "; ".join(text for text in (named, f"{shown} in the given case files" if shown else "") if text)


def _listed(texts: Sequence[str]) -> str:
    """The texts with commas, as many as fit in a line."""
    several = next(count for count in range(min(len(texts), _SHOWN), -1, -1) if len(", ".join(texts[:count])) <= _WIDTH)
    return ", ".join([*texts[:several], *(["..."] if several < len(texts) else [])])
