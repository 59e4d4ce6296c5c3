"""What the tests of `mluops import` share: a config, and the cases of a spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from generators.contracts.case import Case
from generators.specs.expansion import expand
from generators.specs.loader import load_spec

GRID = {"shape": [4, 3, 1, 2], "random_distribution": {"uniform": [-1, 1]}, "layout": "ARRAY"}
CONFIG: dict[str, Any] = {
    "op_name": "roi_crop_forward",
    "data_type": {"input_dtype": ["float32", "float32"], "output_dtype": ["float32"]},
    "evaluation_criterion": ["diff1", "diff2"],
    "evaluation_threshold": [0.003, 0.003],
    "manual_data": [
        {
            "inputs": [{"shape": [2, 5, 5, 1], "random_distribution": {"uniform": [0, 0]}, "layout": "NHWC"}, GRID],
            "outputs": [{"shape": [4, 3, 1, 1], "layout": "NHWC"}],
        }
    ],
}


def write_config(folder: Path, name: str = "config.json", **keys: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(CONFIG | keys))
    return folder / name


def cases(path: Path) -> list[Case]:
    return list(expand(load_spec(path)))
