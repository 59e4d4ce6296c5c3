"""The JSON configs of the public generator: global keys, entries of manual_data that override them, random entries."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from generators.importing.config_models import CaseConfig, Distribution, TensorConfig, config_dtype
from generators.importing.draft import CaseDraft, Imported, TensorDraft, dist_of, plain, stricter_criteria
from generators.importing.shapes import Shape, shapes_of
from generators.specs.mistakes import Mistake, mistakes, shown
from generators.specs.yaml_loader import key_text
from schemas.criteria import NAMES
from schemas.errors import InputError, SourceLocation
from schemas.path_names import check_name
from schemas.suggest import did_you_mean
from schemas.tensor_descriptor import sparse_strides

ENTRIES: Final = ("manual_data", "random_data", "random")  # the lists of cases; the latter two draw their shapes
MARKS: Final = {"contain_nan": "nan", "contain_inf": "inf"}
MARKED_FRACTION: Final = 0.01  # of the elements, at least one: the configs give no number
_GLOBAL: Final = frozenset(("op_name", *ENTRIES))
NO_EFFECT: Final[Mapping[str, str]] = {
    "device": "mluops always stores the baseline",
    "require_value": "mluops always stores values",
    "write_data": "mluops always stores values",
    "supported_mlu_platform": "`mluops run` selects what runs on a platform",
    "onchip_dtype": "mluops doesn't set it",
    "evaluation_threshold_imag": "a spec's thresholds apply to both parts",
}
"""Keys that are known and change nothing here, and why."""


class NoConfig(InputError):  # noqa: N818  an InputError, reported as one
    """A JSON file that is something else than a config."""


@dataclass(slots=True)
class Config:
    """A config being read: where it lies, its operator, and what was met on the way."""

    path: Path
    op: str = ""
    imported: Imported = field(default_factory=Imported)

    def place(self, key: str = "") -> SourceLocation:
        """Where a key path stands."""
        return SourceLocation(str(self.path), key=key or None)

    def check_keys(self, found: Mapping[str, Any], known: frozenset[str], where: str) -> None:
        """Note the keys that mean nothing here."""
        for key in found:
            if key in NO_EFFECT:
                self.imported.note(f"{key} has no effect: {NO_EFFECT[key]}")
            elif key not in known:
                hint = did_you_mean(key, known)
                self.imported.note(f"unknown key {key!r} {where}{hint if 'did you mean' in hint else ''}")


def read_config(path: Path) -> Imported:
    """The cases of a config, and the errors of its entries; NoConfig or InputError where the file is no config."""
    config = Config(path)
    common = _load(path)
    if not isinstance(common, dict):
        raise NoConfig(f"found {shown(common)}, expected a config: an object with op_name", config.place())
    if not isinstance(common.get("op_name"), str):
        lacks = "op_name" not in common and not any(section in common for section in ENTRIES)
        raise (NoConfig if lacks else InputError)("no op_name: this is no config of the generator", config.place())
    config.op = check_name(common["op_name"], "operator", config.place("op_name"))
    config.check_keys(common, frozenset(CaseConfig.model_fields) | _GLOBAL, "of the config")
    if not any(section in common for section in ENTRIES):
        raise InputError(f"no cases: expected {' or '.join(ENTRIES[:2])}", config.place())
    for section in ENTRIES:
        raw = common.get(section, [])
        for index, entry in enumerate(raw if isinstance(raw, list) else [raw]):
            try:
                config.imported.drafts += _entry(config, common, entry, section, index)
            except InputError as error:
                config.imported.errors.append(error)
    # A mistake in a global key is one mistake, however many entries it is in.
    config.imported.errors = list({str(error): error for error in config.imported.errors}.values())
    return config.imported


def _load(path: Path) -> Any:
    place = SourceLocation(str(path))
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=_unique_keys)
    except OSError as error:
        raise InputError(f"can't read the config: {error.strerror or error}", place) from None
    except json.JSONDecodeError as error:
        raise InputError(error.msg, SourceLocation(str(path), error.lineno, error.colno)) from None
    except (
        ValueError,
        RecursionError,
    ) as error:  # a key twice, not UTF-8, a number of too many digits, nested too deep
        raise InputError(f"no JSON config: {error}", place) from None


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    double = next((key for key, count in Counter(key for key, _ in pairs).items() if count > 1), None)
    if double is not None:
        raise ValueError(f"the key {double!r} stands twice in one object")
    return dict(pairs)


# ---- one entry ----


def _entry(config: Config, common: Mapping[str, Any], local: Any, section: str, index: int) -> list[CaseDraft]:
    """The cases of one entry; none where something is wrong with its keys, which goes to the config's errors.

    InputError where something else is wrong.
    """
    where = f"{section}[{index}]"
    if not isinstance(local, dict):
        raise InputError(f"found {shown(local)}, expected an object", config.place(where))
    given = {key: value for key, value in {**common, **local}.items() if key not in _GLOBAL}
    wrong = list(mistakes(CaseConfig, given))
    if wrong:
        config.imported.errors += [_error(config, local, where, each) for each in wrong]
        return []
    entry = CaseConfig.model_validate(given)
    config.check_keys(local, frozenset(CaseConfig.model_fields), f"in {section}")
    for role in ("inputs", "outputs"):
        for tensor in given.get(role, ()):
            config.check_keys(tensor, frozenset(TensorConfig.model_fields), f"of {role}")
    place = config.place(where)
    return [
        _case(config, entry, dtypes, shapes, where)
        for dtypes in _dtypes(entry, place)
        for shapes in shapes_of(config.op, entry, section != "manual_data", place)
    ]


def _error(config: Config, local: Mapping[str, Any], where: str, wrong: Mistake) -> InputError:
    """What is wrong with an entry, with its key path: below the entry, or of a global key."""
    path = wrong.path
    own = f"{where}.{key_text(path)}" if not path or path[0] in local else key_text(path)
    return InputError(wrong.message, config.place(own.rstrip(".")))


def _case(
    config: Config, entry: CaseConfig, dtypes: Sequence[str | None], shapes: Sequence[Shape], where: str
) -> CaseDraft:
    given = [*((tensor, True) for tensor in entry.inputs), *((tensor, False) for tensor in entry.outputs)]
    tensors = [
        _tensor(config, entry, tensor, dtype, shape, is_input, where)
        for (tensor, is_input), dtype, shape in zip(given, dtypes, shapes, strict=True)
    ]
    params, large = _params(config, entry, where)
    large = large or bool(entry.large_tensor) or any(tensor.large_tensor for tensor, _ in given)
    return CaseDraft(
        config.op,
        f"{config.path.name}: {where}",
        tensors[: len(entry.inputs)],
        tensors[len(entry.inputs) :],
        params,
        _criteria(config, entry),
        ("large",) if large else (),
    )


def _dtypes(entry: CaseConfig, place: SourceLocation) -> Iterator[list[str | None]]:
    """The dtypes of all tensors, per combination: lists side by side, those of one tensor and those of data_type."""
    columns: list[list[str | None]] = []
    for tensors, common in (
        (entry.inputs, entry.data_type.input_dtype),
        (entry.outputs, entry.data_type.output_dtype),
    ):
        rows: list[Any] = common if common and all(isinstance(row, list) for row in common) else [common]
        for index, tensor in enumerate(tensors):
            names: list[Any] = [row[index] if index < len(row) else None for row in rows]
            if tensor.dtype is not None:
                names = tensor.dtype if isinstance(tensor.dtype, list) else [tensor.dtype]
            columns.append([None if name is None else config_dtype(name).name for name in names])
    count = max((len(column) for column in columns), default=1)
    if any(len(column) not in (1, count) for column in columns):
        raise InputError(f"dtype lists of different lengths: {[len(column) for column in columns]}", place)
    for number in range(count):
        yield [column[number if len(column) > 1 else 0] for column in columns]


def _tensor(
    config: Config,
    entry: CaseConfig,
    tensor: TensorConfig,
    dtype: str | None,
    shape: Shape,
    is_input: bool,
    where: str,
) -> TensorDraft:
    given = (tensor.strides, tensor.stride, tensor.dim_stride)
    strides: Sequence[int] | None = next((each for each in given if each is not None), None)
    try:
        sparse = None if strides is None else sparse_strides(shape, strides)
    except ValueError as error:
        raise InputError(str(error), config.place(where)) from None
    draft = TensorDraft(shape, dtype, tensor.layout, sparse)
    if not is_input:
        if tensor.file_name:
            config.imported.note("file_name of an output is not read: baselines are computed")
        return draft
    distribution = tensor.random_distribution or entry.random_distribution
    if tensor.file_name:
        draft.stored = _stored(config, tensor.file_name, dtype, shape, where)
    elif distribution is not None:
        draft.dist = _dist(config, distribution)
    for key, word in MARKS.items():
        own = getattr(tensor, key)
        if getattr(entry, key) if own is None else own:
            draft.dist[word] = MARKED_FRACTION
    return draft


def _dist(config: Config, given: Distribution) -> dict[str, Any]:
    (name,) = given.model_fields_set
    first, second = (plain(number) for number in getattr(given, name))
    return dist_of("uniform" if name == "uniform" else "normal", first, second, config.imported.note)


def _stored(config: Config, name: str, dtype: str | None, shape: Shape, where: str) -> NDArray[Any]:
    """The values of file_name, relative to the config: .npy, numbers as text, or raw elements in the tensor's dtype."""
    path, place = config.path.parent / name, config.place(where)
    known = config_dtype(dtype or "float")
    if known.storage is None:
        raise InputError(f"file_name {path}: values of dtype {known.name} can't be read", place)
    try:
        if not path.is_file():
            reason = "it is no regular file" if path.exists() else "no such file"
            raise InputError(f"file_name {path}: {reason}", place)
        if path.suffix == ".npy":
            found: NDArray[Any] = np.load(path, allow_pickle=False)
        elif path.suffix in (".txt", ".csv"):
            words = path.read_text(encoding="utf-8-sig").replace(",", " ").split()
            found = np.array(list(map(float if known.is_float else int, words)))
        else:
            found = np.fromfile(path, known.storage, math.prod(shape) + 1)
        with np.errstate(over="raise"):
            stored = found.astype(known.storage, casting="same_kind" if found.size else "unsafe").reshape(shape)
        if not known.is_float and not np.array_equal(stored.ravel(), found.ravel()):
            raise InputError(f"file_name {path}: a value doesn't fit {known.name}", place)
        return stored
    except FloatingPointError:
        raise InputError(f"file_name {path}: a value is beyond the largest of {known.name}", place) from None
    except OSError as error:
        raise InputError(f"file_name {path}: {error.strerror or error}", place) from None
    except (ValueError, TypeError, OverflowError, EOFError) as error:
        raise InputError(f"file_name {path}: {error}", place) from None


def _params(config: Config, entry: CaseConfig, where: str) -> tuple[dict[str, Any], bool]:
    """The operator's parameters, and whether they mark a tensor as large."""
    given = {**entry.proto_params, **entry.op_params}
    large = given.pop("large_tensor", False)
    if not isinstance(large, bool):
        raise InputError(f"large_tensor is {shown(large)}, expected true or false", config.place(where))
    for key in NO_EFFECT.keys() & given.keys():
        config.imported.note(f"{key} has no effect: {NO_EFFECT[key]}")
    return {key: _whole(value) for key, value in given.items() if key not in NO_EFFECT}, large


def _whole(value: Any) -> Any:
    return [_whole(each) for each in value] if isinstance(value, list) else plain(value)


def _criteria(config: Config, entry: CaseConfig) -> list[dict[str, float]]:
    if entry.if_dynamic_threshold or entry.dynamic_threshold:
        config.imported.note("dynamic thresholds: give them with `mluops gen --dynamic-thresholds`")
        return []
    if not entry.evaluation_criterion:
        return []
    names = [NAMES[name.upper()] for name in entry.evaluation_criterion]
    criteria = stricter_criteria(zip(names, entry.evaluation_threshold, strict=True), config.imported.note)
    return [dict(criteria) for _ in entry.outputs]
