"""`mluops show`: what a case file holds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import rich_click as click

from mluops_cli.commands.options import ByteSize, generation_option, plugin_option
from mluops_cli.commands.problems import report_warning
from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.escaping import one_line

_HASH: Final = 12  # digits of a hash in the table


@click.command(epilog="Example: mluops show cases/psamask_forward/demo/square_collect.pb --values 'x[0, :2]'")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
@click.option("--stats", is_flag=True, help="Statistics of the values of all tensors, however large; constant memory.")
@click.option(
    "--limit", default="1GiB", show_default=True, type=ByteSize(), help="Don't look into values of tensors above this."
)
@click.option("--values", "wanted", multiple=True, metavar="TENSOR[SLICES]", help="Show values, such as x[0, :2].")
@generation_option
@plugin_option
def command(
    file: Path,
    as_json: bool,
    stats: bool,
    limit: int,
    wanted: tuple[str, ...],
    enum_numbering: str,
    plugins: tuple[Path, ...],
) -> None:
    """Show the tensors, parameters, criteria and metadata of a case file.

    Values that disagree with a tensor's shape are a warning on stderr.
    """
    from mluops_cli.inspection.describe import describe, named_tensors
    from mluops_cli.inspection.slices import plain_values, sliced, value_lines
    from schemas.casefiles.reading import read_case

    with read_case(file, enum_numbering) as case:
        shown = describe(case, math.inf if stats else limit)
        tensors = named_tensors(case)
        values = {text: sliced(text, tensors).copy() for text in wanted}
    for warning in shown["warnings"]:
        report_warning(warning)
    if as_json:
        shown["values"] = {text: plain_values(each) for text, each in values.items()}
        click.echo(json.dumps(_without_nan(shown), indent=1, allow_nan=False))
        return
    for line in _lines(shown):
        click.echo(one_line(line))
    for text, each in values.items():
        click.echo(f"\n{one_line(text)}  {each.dtype} {list(each.shape)}")
        click.echo("\n".join(value_lines(each)))


def _lines(shown: dict[str, Any]) -> Iterator[str]:
    yield f"{shown['op']}  {shown['file']}  (baseline: {shown['baseline']})"
    heads = ("", "name", "id", "dtype", "layout", "shape", "min", "max", "mean", "zeros", "nan", "inf", "data", "hash")
    rows: list[tuple[str, ...]] = [heads]
    for tensor in shown["tensors"]:
        metrics = [f"{tensor[key]:.6g}" if key in tensor else "" for key in ("min", "max", "mean")]
        counts = [str(tensor.get(key, "")) for key in ("zeros", "nan", "inf")]
        shape = f"{tensor['shape']}" + (f" strides {tensor['strides']}" if tensor["strides"] else "")
        words = (tensor["role"], tensor["name"] or "", tensor["id"], tensor["dtype"], tensor["layout"], shape)
        cells = (*words, *metrics, *counts, tensor["data"], tensor.get("hash", "")[:_HASH])
        rows.append(tuple(map(one_line, cells)))
    yield from table_lines(rows, right=frozenset(range(6, 12)))
    for key, value in shown["params"].items():
        yield f"param {key} = {_short(value)}"
    for output, criteria in shown["criteria"].items():
        for name, threshold, source, *imaginary in criteria:
            parts = "".join(f", imaginary part {each:g}" for each in imaginary)
            yield f"criterion {output}: {name} <= {threshold:g}{parts} ({source})"
    for key, value in shown["meta"].items():
        if key not in ("criteria", "origins", "error_bounds"):
            yield f"{key} = {_short(value)}"
    for bound in shown["meta"].get("error_bounds", ()):
        yield f"error bound {bound['output']}: {bound['path'] or bound['values']}"
    for origin in shown["meta"].get("origins", ()):
        yield f"origin {origin['tensor']}: {origin['recipe']}, xxh3_128 {origin['hash']}"


def _short(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    return [_without_nan(each) for each in value] if isinstance(value, (list, tuple)) else value
