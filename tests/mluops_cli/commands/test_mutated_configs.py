"""Whatever a config holds: `mluops import` and `mluops gen` agree on it, and neither fails by itself."""

from __future__ import annotations

import copy
import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generators.importing.config_models import CaseConfig, TensorConfig
from generators.operator_registry import operators
from generators.specs.loader import load_spec
from tests.mluops_cli.commands.configs import cases
from tests.mluops_cli.conftest import Cli

_CASE_KEYS = sorted(CaseConfig.model_fields | TensorConfig.model_fields)
_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 3, 0.5, -0.0, 1e300, 2**63, 10**30, math.nan, math.inf, "", "x", "False", "0,003",
    "fp16", "uint8",
    "float32", "NHWC", "diff1", "../../x", [], [0], [1, 2], [[1, 2]], {}, {"uniform": [0, 1]}, {"x": 1}, "\u2028",
]  # fmt: skip


def _mutated(config: Any, rng: random.Random) -> Any:
    """The config with one to three values replaced, removed, doubled or renamed."""
    config = copy.deepcopy(config)
    for _ in range(rng.randint(1, 3)):
        owners = [owner for owner in _owners(config) if owner]
        if not owners:
            break
        owner = rng.choice(owners)
        key = rng.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
        what = rng.randrange(4)
        if what == 0:
            del owner[key]
        elif what == 1 and isinstance(owner, list):
            owner.append(copy.deepcopy(owner[key]))
        elif what == 1:
            owner[rng.choice([*_CASE_KEYS, "x"])] = copy.deepcopy(owner[key])
        else:
            owner[key] = copy.deepcopy(rng.choice(_VALUES))
    return config


def _owners(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _owners(inner)


def test_d25_mutated_configs_never_end_in_our_failure(cli: Cli, shared: Path, tmp_path: Path) -> None:
    """300 mutants of the public configs: exit 0, 2 or 5, and what is imported of a known operator is taken by gen."""
    configs = [json.loads(path.read_text()) for path in sorted((shared / "public_cases" / "json").glob("*.json"))]
    for config in configs:
        config["manual_data"] = config["manual_data"][:3]
    rng = random.Random(12)
    folder = tmp_path / "folder"  # so that files which other tests leave beside tmp_path don't count
    folder.mkdir()
    codes: Counter[int] = Counter()
    for number in range(300):
        out = folder / str(number)
        path = folder / "config.json"
        path.write_text(json.dumps(_mutated(configs[number % len(configs)], rng)), encoding="utf-8")
        ran = cli("import", path, "--out", out)
        codes[ran.code] += 1
        assert ran.code in (0, 2, 5), (path.read_text(), ran.err)
        assert ran.code != 2 or str(path) in ran.err or "left out" in ran.err, ran.err
        assert not list(tmp_path.glob("*.yaml"))
        for spec in out.glob("*.yaml"):
            load_spec(spec)
            if spec.stem in operators():
                cases(spec)
    assert codes[0] > 50
    assert codes[2] > 50
