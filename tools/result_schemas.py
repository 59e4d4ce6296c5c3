"""JSON Schemas of what a run writes and what judges it; `python -m tools.result_schemas` rebuilds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

import schemas
from mluops_cli.core.record import record_schema
from mluops_cli.results.gate import Policy
from mluops_cli.results.waivers import WaiverFile

FOLDER: Final = Path(schemas.__file__).parent


class Summary(BaseModel):
    """OUT/summary.json. Newer versions may add keys."""

    model_config = ConfigDict(extra="allow")

    mluops: str = Field(description="version")
    impl: str = Field(description="the implementation that was run")
    cases: int = Field(description="cases with a result")
    not_run: int = Field(description="selected cases without one")
    counts: dict[str, int] = Field(description="status -> cases")
    unproven: list[str] = Field([], description="operators of which no valid case was judged, but some were skipped")
    beyond_bound: int = Field(0, description="cases that passed beyond their error bound")
    exit_code: int
    validated: bool = Field(description="whether any case passed or was empty")
    interrupted: bool
    strict: bool = Field(description="whether mistrusted counts as a failure")
    shard: str = Field("", description="I/N of --shard; empty where all selected cases were run")
    selection: dict[str, Any] | None = Field(
        None, description="with --shard, all selected cases: their number and the hash of their ids and files"
    )
    seconds: float
    started: str | None = Field(None, description="ISO 8601 with offset")
    environment: dict[str, Any] = Field({}, description="platform, cpu, device, host, versions")
    options: dict[str, Any] = Field({}, description="plugins, repeat and whatever else decides the results, for replay")
    signature: str = Field("", description="of impl and options, by the key of the user who ran: for replay")


def built() -> dict[str, str]:
    """File name -> its content."""
    made = {
        "result.schema.json": record_schema(),
        "summary.schema.json": TypeAdapter(Summary).json_schema(),
        "gate.schema.json": Policy.model_json_schema(),
        "waivers.schema.json": WaiverFile.model_json_schema(),
    }
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {name: json.dumps(draft | schema, indent=2, sort_keys=True) + "\n" for name, schema in made.items()}


if __name__ == "__main__":
    for name, content in built().items():
        (FOLDER / name).write_text(content, encoding="utf-8")
