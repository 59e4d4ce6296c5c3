"""`mluops show`: what a case file holds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from mluops_cli.commands.options import ByteSize, plugin_option
from mluops_cli.commands.tables import table_lines

if TYPE_CHECKING:
    from schemas.casefile import CaseFile
    from schemas.tensors import TensorRecord

_BLOCK: Final = 1 << 20  # elements looked at at once


@click.command(epilog="Example: mluops show cases/psamask_forward/demo/small.pb")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
@click.option(
    "--limit", default="1GiB", show_default=True, type=ByteSize(), help="Don't look into values of tensors above this."
)
@plugin_option
def command(file: Path, as_json: bool, limit: int, plugins: tuple[Path, ...]) -> None:
    """Show the tensors, parameters, criteria and metadata of a case file.

    Values that disagree with a tensor's shape are a warning on stderr.
    """
    from schemas.casefile import read_case

    with read_case(file) as case:
        shown = _describe(case, limit)
    for warning in shown["warnings"]:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        click.echo(json.dumps(_without_nan(shown), indent=1, allow_nan=False))
    else:
        for line in _lines(shown):
            click.echo(line)


def _describe(case: CaseFile, limit: int) -> dict[str, Any]:
    from generators.binding import plain_message
    from schemas.criteria import baseline_device, criteria_of
    from schemas.errors import InputError

    warnings: list[str] = []
    params = case.params_message()
    meta = case.meta
    try:
        criteria = [[(each.name, each.threshold, each.source) for each in output] for output in criteria_of(case)]
    except InputError as error:
        warnings.append(str(error))
        criteria = [[] for _ in case.outputs]
    names = _contract_names(case)
    records = [*(("input", each) for each in case.inputs), *(("output", each) for each in case.outputs)]
    return {
        "file": str(case.path),
        "op": case.op,
        "device": baseline_device(case.node),
        "tensors": [
            {"role": role, "name": name, **_tensor(record, limit, warnings)}
            for (role, record), name in zip(records, names, strict=True)
        ],
        "params": plain_message(params) if params is not None else {},
        "criteria": {record.id: given for record, given in zip(case.outputs, criteria, strict=True)},
        "meta": {} if meta is None else {field.name: _plain(value) for field, value in meta.ListFields()},
        "warnings": warnings,
    }


def _contract_names(case: CaseFile) -> list[str | None]:
    """The tensors' names in the operator's contract, by position; None where there is none."""
    from generators.operator import operators

    operator = operators().get(case.op)
    if operator is not None:
        contract = operator.contract
        if (len(case.inputs), len(case.outputs)) == (len(contract.inputs), len(contract.outputs)):
            return list(contract.tensors)
    return [None] * (len(case.inputs) + len(case.outputs))


def _plain(value: Any) -> Any:
    from generators.binding import plain_message

    if hasattr(value, "DESCRIPTOR"):
        return plain_message(value)
    return value if isinstance(value, (str, int, float)) else [_plain(each) for each in value]


def _tensor(record: TensorRecord, limit: int, warnings: list[str]) -> dict[str, Any]:
    from schemas.errors import InputError

    shown: dict[str, Any] = {
        "id": record.id,
        "dtype": record.dtype.name,
        "layout": record.layout,
        "shape": list(record.shape),
        "strides": list(record.strides) if record.strides is not None else None,
        "data": _source(record),
    }
    if not record.has_values:
        return shown
    try:
        count = record.value_count()
        if count != record.span:
            warnings.append(f"{record.place}: {count} values, expected {record.span} for shape {shown['shape']}")
        if record.span * record.dtype.width <= limit:
            shown |= _statistics(record)
    except InputError as error:
        warnings.append(str(error))
    return shown


def _source(record: TensorRecord) -> str:
    from schemas.proto import print_text

    if record.source == "path":
        return f"path {record.header.path}"
    if record.source == "random_data":
        return f"random_data {' '.join(print_text(record.random).split())}"
    return record.source or ("absent" if record.absent else "none")


def _statistics(record: TensorRecord) -> dict[str, Any]:
    """Least, largest and mean finite value, and the number of zeros, NaNs and infinities, block by block."""
    import numpy as np

    values = record.stored().reshape(-1)
    if values.dtype.kind == "c":
        values = values.view(values.real.dtype)
    floating = values.dtype.kind not in "iub"
    low, high, total, finite, zeros, nans = math.inf, -math.inf, 0.0, 0, 0, 0
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        zeros += block.size - int(np.count_nonzero(block))
        if floating:
            with np.errstate(invalid="ignore"):
                block = block.astype(np.float64)
            nans += int(np.count_nonzero(np.isnan(block)))
            block = block[np.isfinite(block)]
        finite += block.size
        if block.size:
            low, high = min(low, block.min().item()), max(high, block.max().item())
            total += float(block.sum(dtype=np.float64))
    if not finite:
        low = high = total = math.nan
    counts = {"zeros": zeros, "nan": nans, "inf": values.size - finite - nans}
    return {"min": low, "max": high, "mean": total / finite if finite else math.nan, **counts}


def _lines(shown: dict[str, Any]) -> Iterator[str]:
    yield f"{shown['op']}  {shown['file']}  (baseline: {shown['device']})"
    rows = [("", "name", "id", "dtype", "layout", "shape", "min", "max", "mean", "zeros", "nan", "inf", "data")]
    for tensor in shown["tensors"]:
        figures = [f"{tensor[key]:.6g}" if key in tensor else "" for key in ("min", "max", "mean")]
        counts = [str(tensor.get(key, "")) for key in ("zeros", "nan", "inf")]
        shape = f"{tensor['shape']}" + (f" strides {tensor['strides']}" if tensor["strides"] else "")
        words = (tensor["role"], tensor["name"] or "", tensor["id"], tensor["dtype"], tensor["layout"], shape)
        rows.append((*words, *figures, *counts, tensor["data"]))
    yield from table_lines(rows, right=frozenset(range(6, 12)))
    for key, value in shown["params"].items():
        yield f"param {key} = {_short(value)}"
    for output, criteria in shown["criteria"].items():
        for name, threshold, source in criteria:
            yield f"criterion {output}: {name} <= {threshold:g} ({source})"
    for key, value in shown["meta"].items():
        if key not in ("criteria", "origins"):
            yield f"{key} = {_short(value)}"
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
