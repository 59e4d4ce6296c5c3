"""The JSON Schema of spec files, for editors: `python -m generators.spec_schema` writes it into schemas/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import schemas
from generators.spec_models import SpecFile

PATH: Final = Path(schemas.__file__).parent / "case_spec.schema.json"


def schema_text() -> str:
    """The JSON Schema as it is written."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SpecFile.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    PATH.write_text(schema_text(), encoding="utf-8")
