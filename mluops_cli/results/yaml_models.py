"""YAML files that say how results are to be taken (gate.yaml, waivers.yaml), read into models with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from generators.specs.yaml_loader import load_yaml, together
from schemas.errors import InputError
from schemas.suggest import did_you_mean


class Strict(BaseModel):
    """A model of a file that people write: unknown keys are errors, words aren't taken for numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Model = TypeVar("Model", bound=BaseModel)


def load_model(path: Path, model: type[Model]) -> Model:
    """Read a YAML file into a model; InputError with every place that is wrong."""
    document = load_yaml(path)
    data: Any = {} if document.data is None else document.data
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise together([_located(document, model, each) for each in error.errors(include_url=False)]) from None


def _located(document: Any, model: type[BaseModel], error: Any) -> InputError:
    path = error["loc"]
    unknown = error["type"] == "extra_forbidden"
    # What is missing stands nowhere: the place is that of the mapping it is missing from.
    missing = error["type"] == "missing"
    place = document.place(path[:-1] if missing else path, at_key=unknown)
    if missing:
        return InputError(f"{path[-1]} is missing", place)
    if unknown:
        return InputError(f"unknown key {path[-1]!r}{did_you_mean(str(path[-1]), _keys(model, path[:-1]))}", place)
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    expected = message if message != error["msg"] and error["msg"].startswith("Value error") else f"expected {message}"
    return InputError(f"{expected}, found {_short(error['input'])}", place)


def _keys(model: Any, path: tuple[str | int, ...]) -> list[str]:
    """The keys of the model that a key path leads to."""
    for step in path:
        fields = getattr(model, "model_fields", {})
        if step in fields:
            model = fields[step].annotation
        # A list's or a mapping's, or an optional one's, own model.
        while getattr(model, "__args__", None):
            model = next((each for each in reversed(model.__args__) if each is not type(None)), None)
    return list(getattr(model, "model_fields", {}))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
