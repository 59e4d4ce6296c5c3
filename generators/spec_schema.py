"""The JSON Schema of spec files, for editors: `python -m generators.spec_schema` writes it into schemas/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import schemas
from generators.spec_models import SpecFile

PATH: Final = Path(schemas.__file__).parent / "case_spec.schema.json"


def schema_text() -> str:
    """The JSON Schema as it is written."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SpecFile.model_json_schema()}
    return json.dumps(_plain(schema), indent=2) + "\n"


def _plain(schema: Any) -> Any:
    """Without `additionalProperties: true`, which says nothing and which only newer releases of pydantic write."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if (key, value) != ("additionalProperties", True)}
    return schema


if __name__ == "__main__":
    PATH.write_text(schema_text(), encoding="utf-8")
