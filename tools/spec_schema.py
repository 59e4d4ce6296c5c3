"""The JSON Schema of spec files, for editors: `python -m tools.spec_schema` writes it into schemas/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import schemas
from generators.specs.models import SpecFile

_OURS: Final = ("word", "noun")  # what generators.specs.mistakes reads
PATH: Final = Path(schemas.__file__).parent / "case_spec.schema.json"


def schema_text() -> str:
    """The JSON Schema as it is written: the same whatever release of pydantic makes it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SpecFile.model_json_schema()}
    return json.dumps(_plain(schema), indent=2, sort_keys=True) + "\n"


def _plain(schema: Any) -> Any:
    """Without our own keywords, and what only some releases write: additionalProperties true, an allOf of one."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if len(schema.get("allOf", ())) == 1:
        schema = {**schema, **schema["allOf"][0]}
        del schema["allOf"]
    return {
        key: _plain(value)
        for key, value in schema.items()
        if (key, value) != ("additionalProperties", True) and not (key in _OURS and isinstance(value, str))
    }


if __name__ == "__main__":
    PATH.write_text(schema_text(), encoding="utf-8")
