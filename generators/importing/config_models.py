"""The JSON configs of the public generator as pydantic models; keys that no model knows are left to be reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from generators.specs.fields import MOST_CASES, Seed
from schemas.criteria import NAMES
from schemas.dtypes import DTYPE_NAMES, DTYPES, LAYOUTS, DType, dtype_named

_OTHER_DTYPES = {
    "complex32": "complex_half", "complex64": "complex_float", "fp16": "half", "fp32": "float", "fp64": "double",
}  # fmt: skip
_RANK = 8  # the most dims of a sampled shape


def config_dtype(name: str) -> DType:
    """The dtype that a config means by a name that its model allows."""
    return dtype_named(_OTHER_DTYPES.get(name, name)) or DTYPES[name]


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


if TYPE_CHECKING:
    _DType: TypeAlias = str
    _Layout: TypeAlias = str
    _Criterion: TypeAlias = str
else:
    _DType = Annotated[Literal[DTYPE_NAMES + tuple(_OTHER_DTYPES)], Field(json_schema_extra={"noun": "dtype"})]
    _Layout = Annotated[Literal[LAYOUTS], Field(json_schema_extra={"noun": "layout"})]
    _Criterion = Annotated[
        Literal[tuple(name.lower() for name in NAMES)],
        BeforeValidator(_lower),
        Field(json_schema_extra={"noun": "criterion"}),
    ]

Size = Annotated[int, Field(ge=0, lt=2**63)]
_Interval = Annotated[list[Size], Field(min_length=2, max_length=2, json_schema_extra={"word": "[low, high] of sizes"})]
_Flag = Annotated[bool | Literal[0, 1], Field(json_schema_extra={"word": "true or false"})]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Numbers = Annotated[list[_Number], Field(min_length=2, max_length=2, json_schema_extra={"word": "two numbers"})]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class Distribution(_Closed):
    """random_distribution: one kind with its two numbers."""

    uniform: _Numbers = Field(default_factory=list)
    gaussian: _Numbers = Field(default_factory=list)
    normal: _Numbers = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_one(self) -> Distribution:
        if len(self.model_fields_set) != 1:
            found = " and ".join(sorted(self.model_fields_set)) or "nothing"
            raise ValueError(f"found {found}, expected one of uniform, gaussian, normal")
        return self


class RandomShape(_Closed):
    """A shape whose number of dims is sampled as well."""

    rank: Annotated[list[Annotated[int, Field(ge=0, le=_RANK)]], Field(min_length=2, max_length=2)] = [1, 4]
    dims: _Interval = [1, 64]


Shape = list[Size | list[Size]] | RandomShape


class TensorConfig(_Open):
    """One tensor of an entry."""

    shape: Shape
    dtype: _DType | list[_DType] | None = None
    layout: _Layout | None = None
    random_distribution: Distribution | None = None
    contain_nan: _Flag | None = None
    contain_inf: _Flag | None = None
    large_tensor: _Flag = False
    file_name: str = ""
    strides: list[Size] | None = None
    stride: list[Size] | None = None
    dim_stride: list[Size] | None = None


class DataType(_Open):
    """data_type: a dtype per tensor, or several such lists, one per case."""

    input_dtype: list[_DType | None] | list[list[_DType | None]] = []
    output_dtype: list[_DType | None] | list[list[_DType | None]] = []


class CaseConfig(_Open):
    """An entry of a config with the global keys under it."""

    data_type: DataType = DataType()
    random_distribution: Distribution | None = None
    evaluation_criterion: list[_Criterion] = []
    evaluation_threshold: list[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = []
    if_dynamic_threshold: _Flag = False
    dynamic_threshold: _Flag = False
    op_params: dict[str, Any] = {}
    proto_params: dict[str, Any] = {}
    contain_nan: _Flag = False
    contain_inf: _Flag = False
    large_tensor: _Flag = False
    inputs: list[TensorConfig] = []
    outputs: list[TensorConfig] = []
    count: Annotated[int, Field(ge=1, le=MOST_CASES)] = 1
    seed: Seed = 1
    cartesian: _Flag = False

    @model_validator(mode="after")
    def _check_pairs(self) -> CaseConfig:
        criteria, thresholds = len(self.evaluation_criterion), len(self.evaluation_threshold)
        if criteria != thresholds and not (self.if_dynamic_threshold or self.dynamic_threshold):
            raise ValueError(f"{criteria} evaluation_criterion, but {thresholds} evaluation_threshold")
        return self
