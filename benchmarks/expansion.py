"""How fast specs become cases: ids, shapes, parameters, criteria and all checks, without data."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from benchmarks.measure import Row, ratio, seconds
from generators.specs.expansion import expand
from generators.specs.loader import load_spec

_MATRIX = """\
op: psamask_forward
suites:
  grid:
    - name: case
      params: {w_mask: 3}
      sizes: {N: 2}
      matrix:
        params.psa_type: [collect, distribute]
        params.h_mask: [%s]
        sizes.H: [%s]
        sizes.W: [%s]
"""
_ENTRY = "    - {name: a%d, params: {psa_type: collect, h_mask: 3, w_mask: 5}, inputs: {x: {shape: [2, 7, %d, 15]}}}\n"


def rows() -> list[Row]:
    """Cases per second of a 100,000-case matrix; and reading a spec written out against PyYAML's own C loader."""
    with tempfile.TemporaryDirectory() as folder:
        return [_grid(Path(folder) / "grid.yaml"), _written_out(Path(folder) / "written.yaml")]


def _grid(path: Path) -> Row:
    path.write_text(_MATRIX % tuple(", ".join(map(str, range(1, end + 1))) for end in (50, 40, 25)))
    spec = load_spec(path)
    count = sum(1 for _ in expand(spec))
    taken = [seconds(lambda: sum(1 for _ in expand(spec))) for _ in range(7)]
    rate = count / statistics.median(taken)
    return Row("expand a matrix", rate, "cases/s", 20_000, at_least=True, note=f"{count:,} cases")


def _written_out(path: Path) -> Row:
    import yaml

    count = 5_000
    entries = "".join(_ENTRY % (number, 1 + number % 97) for number in range(count))
    path.write_text(f"op: psamask_forward\nsuites:\n  written:\n{entries}")
    return ratio(
        f"read and expand {count:,} entries written out / yaml.CSafeLoader",
        lambda: sum(1 for _ in expand(load_spec(path))),
        lambda: yaml.load(path.read_text(), Loader=yaml.CSafeLoader),
        pairs=3,
    )
