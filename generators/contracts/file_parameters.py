"""The parameters of a case as its file holds them: in a message of the teams' interface, or as JSON in our metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from generators.contracts.model import Contract, Parameter
from generators.parameters import Kind, as_tuples
from schemas.casefiles.reading import CaseFile
from schemas.errors import InputError, SourceLocation


def kind_of_field(field: Any) -> Kind:
    """The kind of a parameter that a field of a message holds."""
    kinds: dict[int, Kind] = {
        field.CPPTYPE_FLOAT: "float",
        field.CPPTYPE_DOUBLE: "float",
        field.CPPTYPE_BOOL: "bool",
        field.CPPTYPE_STRING: "string",
    }
    return kinds.get(field.cpp_type, "int")


def parameters_of(file: CaseFile, contract: Contract | None) -> dict[str, Any]:
    """The parameters by name: ints, floats and tuples; without a contract all that the message or our metadata holds.

    Fields that the file leaves out have the interface's defaults. InputError, with the file, where there is no message
    and no metadata of ours, or a required field is missing.
    """
    if contract is None:
        message = file.params_message()
        return as_tuples(_stored(file) or {}) if message is None else plain_message(message)
    if not contract.passed_parameters:
        return {}
    place = SourceLocation(str(file.path))
    message = parameter_message(file.node, contract)
    if message is None:
        held = _stored(file)
        if held is None:
            text = f"the case file's interface has no {_key(contract)}, and the file no metadata of ours"
            raise InputError(text, place)
        lists = dict.fromkeys(contract.computed_parameters, ())
        return lists | as_tuples(
            {each.name: held[each.name] for each in contract.passed_parameters if each.name in held}
        )
    if not message.IsInitialized():
        missing = ", ".join(message.FindInitializationErrors())
        raise InputError(f"{_key(contract)} is missing or lacks {missing}", place)
    params = {each.name: _value(message, each) for each in contract.passed_parameters}
    return {name: value for name, value in params.items() if value is not None}


def count_of(file: CaseFile, contract: Contract, parameter: Parameter) -> int | None:
    """The number of an output's defined rows that the file states; None where it states none.

    A count of 0 counts only in a file with our metadata: others write it for an unknown count.
    """
    message = parameter_message(file.node, contract)
    if message is None:
        count = (_stored(file) or {}).get(parameter.name)
    else:
        count = getattr(message, parameter.name) if message.HasField(parameter.name) else None
    return count if count or (count == 0 and file.meta is not None) else None


def parameter_message(node: Any, contract: Contract) -> Any | None:
    """The message of a Node that holds the operator's parameters, None where the interface has none for it.

    InputError, for the author of the contract, where the message lacks one of its parameters.
    """
    key = _key(contract)
    field = node.DESCRIPTOR.fields_by_name.get(key)
    if field is None:
        if contract.message:
            raise InputError(f"message is {key!r}, the interface has no such field")
        return None
    known = field.message_type.fields_by_name
    unknown = next((each.name for each in contract.parameters if each.name not in known), None)
    if unknown is not None:
        text = f"the contract of {contract.op} has a parameter {unknown!r}"
        raise InputError(f"{text}, the interface's {key} has only {', '.join(known.keys())}")
    return getattr(node, key)


def _key(contract: Contract) -> str:
    """The field of a Node that holds the operator's parameters, where the interface has one."""
    return contract.message or f"{contract.op}_param"


def plain_message(message: Any) -> dict[str, Any]:
    """A message's fields, defaults filled in: ints (enums too), floats, texts, tuples for repeated ones, dicts."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if isinstance(value, (bool, int, float, str, bytes)):
            found[field.name] = value
        elif not hasattr(value, "DESCRIPTOR"):
            found[field.name] = tuple(plain_message(each) if hasattr(each, "DESCRIPTOR") else each for each in value)
        elif message.HasField(field.name):
            found[field.name] = plain_message(value)
    return found


def _stored(file: CaseFile) -> Mapping[str, Any] | None:
    """The JSON object in our metadata, None where there is none; InputError where it is something else."""
    if file.meta is None or not file.meta.params:
        return None
    try:
        held = json.loads(file.meta.params)
    except ValueError as error:
        held = error
    if not isinstance(held, dict):
        raise InputError(f"parameters in the metadata are not a JSON object: {held}", SourceLocation(str(file.path)))
    return held


def _value(message: Any, parameter: Parameter) -> Any:
    """The parameter's value; None where neither the file nor its interface has one."""
    field = message.DESCRIPTOR.fields_by_name[parameter.name]
    value = getattr(message, parameter.name)
    if parameter.length is not None:
        return tuple(value) or (() if parameter.computed_from else None)
    return value if message.HasField(parameter.name) or field.has_default_value else None
