"""Reading gate.yaml and waivers.yaml into models; errors have file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from generators.specs.mistakes import mistakes
from generators.specs.yaml_loader import load_yaml, together
from schemas.errors import InputError


class Strict(BaseModel):
    """A model of a file that people write: unknown keys are errors, and no text is read as a number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Model = TypeVar("Model", bound=BaseModel)


def load_model(path: Path, model: type[Model]) -> Model:
    """Read a YAML file into a model; InputError that names every wrong place."""
    document = load_yaml(path)
    data: Any = {} if document.data is None else document.data
    found = list(mistakes(model, data))
    if found:
        raise together([InputError(each.message, document.place(each.path, at_key=each.at_key)) for each in found])
    return model.model_validate(data)
