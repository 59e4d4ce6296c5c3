"""The JSON configs of the public generator: global keys, entries of manual_data that override them, random entries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from generators.importing.draft import (
    CaseDraft,
    TensorDraft,
    as_list,
    as_mapping,
    criteria_by_output,
    dist_of,
    plain,
    their_dtype,
)
from generators.importing.shapes import shapes_of
from schemas.criteria import NAMES
from schemas.dtypes import LAYOUTS
from schemas.errors import InputError, SourceLocation
from schemas.suggest import did_you_mean

ENTRIES: Final = ("manual_data", "random_data", "random")  # the lists of cases; the latter two draw their shapes
MARKS: Final = {"contain_nan": "nan", "contain_inf": "inf"}
MARK_SHARE: Final = 0.01  # of the elements, at least one: the configs don't say how many
_CASE: Final = frozenset((
    "data_type", "random_distribution", "evaluation_criterion", "evaluation_threshold", "if_dynamic_threshold",
    "dynamic_threshold", "op_params", "proto_params", "contain_nan", "contain_inf", "large_tensor", "inputs", "outputs",
    "count", "seed", "cartesian",
))  # fmt: skip
_GLOBAL: Final = frozenset(("op_name", *ENTRIES))
_TENSOR: Final = frozenset((
    "shape", "dtype", "layout", "random_distribution", "contain_nan", "contain_inf", "file_name", "strides", "stride",
    "dim_stride", "large_tensor",
))  # fmt: skip
NO_EFFECT: Final[Mapping[str, str]] = {
    "device": "our files always carry their baseline",
    "require_value": "our files always hold their values",
    "write_data": "our files always hold their values",
    "supported_mlu_platform": "which platforms run a case is for the run to say",
    "onchip_dtype": "our files don't set it",
    "evaluation_threshold_imag": "a spec's thresholds hold for both parts",
}
"""Keys that are known and change nothing here, and why."""


@dataclass(slots=True)
class Config:
    """A config being read: where it lies, and what was met on the way that doesn't go over as it stands."""

    path: Path
    notes: Counter[str] = field(default_factory=Counter)

    def place(self, key: str = "") -> SourceLocation:
        """Where a key path stands."""
        return SourceLocation(str(self.path), key=key or None)

    def check_keys(self, found: Mapping[str, Any], known: frozenset[str], where: str) -> None:
        """Note the keys that mean nothing here."""
        for key in found:
            if key in NO_EFFECT:
                self.notes[f"{key} has no effect: {NO_EFFECT[key]}"] += 1
            elif key not in known:
                self.notes[f"unknown key {key!r} {where}{_hint(key, known)}"] += 1


def read_config(path: Path) -> tuple[list[CaseDraft], Counter[str]]:
    """The cases of a config and what of it doesn't go over, counted; InputError where it is no config."""
    config = Config(path)
    try:
        data = json.loads(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=_unique_keys)
    except OSError as error:
        raise InputError(f"can't read the config: {error.strerror}", SourceLocation(str(path))) from None
    except json.JSONDecodeError as error:
        raise InputError(error.msg, SourceLocation(str(path), error.lineno, error.colno)) from None
    except (ValueError, RecursionError) as error:  # a key twice, not UTF-8, nested without end
        raise InputError(f"no JSON config: {error}", SourceLocation(str(path))) from None
    common = as_mapping(data, "the config", config.place())
    op = common.get("op_name")
    if not isinstance(op, str):
        raise InputError("no op_name: this is no config of the generator", config.place())
    config.check_keys(common, _CASE | _GLOBAL, "of the config")
    if not any(section in common for section in ENTRIES):
        raise InputError(f"no cases: expected {' or '.join(ENTRIES[:2])}", config.place())
    drafts: list[CaseDraft] = []
    for section in ENTRIES:
        raw = common.get(section, [])
        for index, entry in enumerate(raw if isinstance(raw, list) else [raw]):
            where = f"{section}[{index}]"
            local = as_mapping(entry, where, config.place(where))
            config.check_keys(local, _CASE, f"in {section}")
            drafts += _cases(config, op, {**common, **local}, where, drawn=section != "manual_data")
    return drafts, config.notes


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    double = next((key for key, count in Counter(key for key, _ in pairs).items() if count > 1), None)
    if double is not None:
        raise ValueError(f"the key {double!r} stands twice in one object")
    return dict(pairs)


def _hint(key: str, known: frozenset[str]) -> str:
    hint = did_you_mean(key, known)
    return hint if "did you mean" in hint else ""


# ---- one entry ----


def _cases(config: Config, op: str, entry: Mapping[str, Any], where: str, drawn: bool) -> Iterator[CaseDraft]:
    place = config.place(where)
    raws = {
        role: [
            as_mapping(each, f"{role}[{index}]", place)
            for index, each in enumerate(as_list(entry.get(role, []), role, place))
        ]
        for role in ("inputs", "outputs")
    }
    for role, tensors in raws.items():
        for tensor in tensors:
            config.check_keys(tensor, _TENSOR, f"of {role}")
    for dtypes in _dtypes(entry, raws, place):
        for shapes in shapes_of(op, raws, entry, drawn, place):
            yield _case(config, op, entry, raws, dtypes, shapes, where)


def _case(
    config: Config,
    op: str,
    entry: Mapping[str, Any],
    raws: Mapping[str, Sequence[Mapping[str, Any]]],
    dtypes: Sequence[str | None],
    shapes: Sequence[tuple[int, ...]],
    where: str,
) -> CaseDraft:
    place = config.place(where)
    tensors = [
        _tensor(config, {**_inherited(entry), **raw}, dtype, shape, place, role == "inputs")
        for (role, raw), dtype, shape in zip(
            ((role, raw) for role in raws for raw in raws[role]), dtypes, shapes, strict=True
        )
    ]
    inputs, outputs = tensors[: len(raws["inputs"])], tensors[len(raws["inputs"]) :]
    large = entry.get("large_tensor") or any(raw.get("large_tensor") for role in raws.values() for raw in role)
    return CaseDraft(
        op,
        f"{config.path.name}: {where}",
        inputs,
        outputs,
        _params(config, entry, place),
        _criteria(config, entry, len(outputs), place),
        ("large",) if large else (),
    )


def _inherited(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in ("random_distribution", *MARKS) if key in entry}


def _dtypes(
    entry: Mapping[str, Any], raws: Mapping[str, Sequence[Mapping[str, Any]]], place: SourceLocation
) -> Iterator[list[str | None]]:
    """The dtypes of all tensors, per combination: lists side by side, those of one tensor and those of data_type."""
    given = as_mapping(entry.get("data_type", {}), "data_type", place)
    columns: list[list[str | None]] = []
    for role, key in (("inputs", "input_dtype"), ("outputs", "output_dtype")):
        common = as_list(given.get(key, []), f"data_type.{key}", place)
        several = bool(common) and all(isinstance(each, list) for each in common)
        rows = common if several else [common]
        for index, raw in enumerate(raws[role]):
            own = raw.get("dtype", [row[index] if index < len(row) else None for row in rows])
            names = own if isinstance(own, list) else [own]
            columns.append([None if name is None else their_dtype(name, place).name for name in names])
    count = max((len(column) for column in columns), default=1)
    if any(len(column) not in (1, count) for column in columns):
        raise InputError(f"dtype lists of different lengths: {[len(column) for column in columns]}", place)
    for number in range(count):
        yield [column[number if len(column) > 1 else 0] for column in columns]


def _tensor(
    config: Config,
    raw: Mapping[str, Any],
    dtype: str | None,
    shape: tuple[int, ...],
    place: SourceLocation,
    drawn: bool,
) -> TensorDraft:
    layout = raw.get("layout")
    if layout is not None and layout not in LAYOUTS:
        raise InputError(f"unknown layout {layout!r}{did_you_mean(str(layout), LAYOUTS)}", place)
    draft = TensorDraft(shape, dtype, layout)
    strides = next((raw[key] for key in ("strides", "stride", "dim_stride") if key in raw), None)
    if strides is not None:
        draft.strides = tuple(as_list(strides, "strides", place))
    if not drawn:
        return draft
    if raw.get("file_name"):
        draft.stored = _stored(config, raw["file_name"], dtype, shape, place)
    elif "random_distribution" in raw:
        draft.dist = _dist(config, raw["random_distribution"], place)
    for key, word in MARKS.items():
        if raw.get(key):
            draft.dist[word] = MARK_SHARE
    return draft


def _dist(config: Config, raw: Any, place: SourceLocation) -> dict[str, Any]:
    given = as_mapping(raw, "random_distribution", place)
    if len(given) != 1:
        raise InputError(f"random_distribution is {dict(given)!r}, expected one distribution", place)
    ((name, numbers),) = given.items()
    kind = {"uniform": "uniform", "gaussian": "normal", "normal": "normal"}.get(name)
    if kind is None:
        raise InputError(f"unknown random_distribution {name!r}, expected uniform or gaussian", place)
    numbers = as_list(numbers, name, place)
    if len(numbers) != 2 or not all(isinstance(each, (int, float)) for each in numbers):
        raise InputError(f"{name} is {numbers!r}, expected two numbers", place)

    def note(message: str) -> None:
        config.notes[message] += 1

    return dist_of(kind, plain(numbers[0]), plain(numbers[1]), note)


def _stored(
    config: Config, name: Any, dtype: str | None, shape: tuple[int, ...], place: SourceLocation
) -> NDArray[Any]:
    """The values of file_name, relative to the config: .npy, numbers as text, or raw elements in the tensor's dtype."""
    path = config.path.parent / str(name)
    known = their_dtype(dtype or "float", place)
    try:
        if path.suffix == ".npy":
            found: NDArray[Any] = np.load(path, allow_pickle=False)
        elif path.suffix in (".txt", ".csv"):
            words = path.read_text(encoding="utf-8-sig").replace(",", " ").split()
            found = np.array(list(map(float if known.is_float else int, words)))
        else:
            found = np.fromfile(path, known.storage)
        return found.astype(known.storage, casting="same_kind" if found.size else "unsafe").reshape(shape)
    except OSError as error:
        raise InputError(f"file_name {path}: {error.strerror or error}", place) from None
    except (ValueError, TypeError) as error:
        raise InputError(f"file_name {path}: {error}", place) from None


def _params(config: Config, entry: Mapping[str, Any], place: SourceLocation) -> dict[str, Any]:
    given = {
        **as_mapping(entry.get("proto_params", {}), "proto_params", place),
        **as_mapping(entry.get("op_params", {}), "op_params", place),
    }
    for key in NO_EFFECT.keys() & given.keys():
        config.notes[f"{key} has no effect: {NO_EFFECT[key]}"] += 1
    return {key: value for key, value in given.items() if key not in NO_EFFECT}


def _criteria(config: Config, entry: Mapping[str, Any], outputs: int, place: SourceLocation) -> list[dict[str, float]]:
    if entry.get("if_dynamic_threshold") or entry.get("dynamic_threshold"):
        config.notes["dynamic thresholds: give them with `mluops gen --dynamic-thresholds`"] += 1
        return []
    names = [
        str(each).upper() for each in as_list(entry.get("evaluation_criterion", []), "evaluation_criterion", place)
    ]
    thresholds = as_list(entry.get("evaluation_threshold", []), "evaluation_threshold", place)
    if len(names) != len(thresholds):
        raise InputError(f"{len(names)} evaluation_criterion, but {len(thresholds)} evaluation_threshold", place)
    unknown = next((name for name in names if name not in NAMES), None)
    if unknown is not None:
        raise InputError(f"unknown criterion {unknown.lower()!r}{did_you_mean(unknown.lower(), NAMES.values())}", place)
    return criteria_by_output(outputs, [NAMES[name] for name in names], thresholds) if names else []
