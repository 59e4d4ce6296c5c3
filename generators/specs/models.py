"""The grammar of a spec file as pydantic models: what is checked before anything is expanded, and the JSON Schema.

What depends on an operator's contract (names of tensors and parameters, shapes, ranges) is checked by expansion.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from generators.data.kinds import KINDS
from generators.specs.fields import (
    Accumulate,
    Axis,
    Bound,
    Bounds,
    Count,
    Cover,
    CriterionName,
    Drawn,
    DTypeName,
    Expect,
    Fraction,
    Layout,
    Model,
    Name,
    Pair,
    Parameter,
    Rows,
    Seed,
    Shape,
    Size,
    Special,
    Strides,
    Text,
    Threshold,
    Unique,
    Workspace,
)  # fmt: skip
from schemas.status import SUCCESS


def _absent(description: str) -> Any:
    """A key that may be absent."""
    return Field(default=None, description=description)


def _empty(kind: type[Any], description: str) -> Any:
    """A mapping or list that is empty by default; pydantic copies a default of these types deeply for each entry."""
    return Field(default_factory=kind, description=description, json_schema_extra={"default": kind()})


class Dist(Model):
    """How the values of an input are sampled: at most one kind; without one the contract's default."""

    uniform: Pair = _absent(KINDS["uniform"])
    normal: Pair = _absent(KINDS["normal"])
    integers: Pair = _absent(KINDS["integers"])
    constant: Bound = _absent(KINDS["constant"])
    choice: Bounds = _absent(KINDS["choice"])
    sequence: Pair = _absent(KINDS["sequence"])
    unique: Unique = _absent(KINDS["unique"])
    clusters: Rows = _absent(KINDS["clusters"])
    file: Text = _absent(KINDS["file"])
    recipe: Text = _absent(KINDS["recipe"])
    nan: Fraction = _absent("fraction of NaNs, an exact count, at least one")
    inf: Fraction = _absent("fraction of infinities of both signs, an exact count, at least one")
    special: Special = _absent("values placed at least once each: words, numbers, bit patterns 0x...")
    special_share: Fraction = _absent("fraction of the special values together, default 0.01")


class Tensor(Model):
    """What may be given of a tensor."""

    shape: Shape = _absent("dims: integers, or expressions over params and sizes")
    dtype: DTypeName = _absent("default: the contract's first")
    layout: Layout = _absent("default: the contract's")
    strides: Strides = _absent("in elements, absent when dense; for invalid cases")


class Output(Tensor):
    """An output: what is given is asserted; in an invalid case it is taken as it is."""

    capacity: bool = Field(
        default=False, description="the given shape is a capacity: as many rows as the data make are defined"
    )


class Input(Tensor):
    """An input."""

    dist: Dist = Field(default_factory=Dist, description="how its values are sampled, default: the contract's")


class Sample(Model):
    """Random values at dotted paths, sampled again until they make a legal case."""

    count: Count = Field(description="number of cases")
    seed: Seed = Field(default=1, description="of these draws alone; --seed has no part in them")
    over: dict[str, Drawn] = Field(description="dotted path -> what to sample from")


class Fields(Model):
    """What an entry may hold besides its name."""

    params: dict[str, Parameter] = _empty(dict, "the operator's parameters")
    sizes: dict[str, Size] = _empty(dict, "the contract's free sizes, for shapes that aren't given")
    inputs: dict[str, Input] = _empty(dict, "shape, dtype and so on of the inputs, by name")
    outputs: dict[str, Output] = _empty(dict, "shape, dtype and so on of the outputs, by name")
    criteria: dict[str, dict[CriterionName, Threshold]] = _empty(dict, "per output, instead of the contract's")
    accumulate: Accumulate = _absent(
        "dtype that a kernel may accumulate in, for the error bounds; default: the contract's"
    )
    matrix: dict[str, Axis] = _empty(dict, "grid: dotted path -> values, the last varies fastest")
    zip: list[dict[str, Axis]] = _empty(list, "paired lists of one length, each mapping one more dimension of the grid")
    sample: Sample = Field(  # type: ignore[assignment]  # only ever validated
        default=None, description="random points, so many per point of the grid"
    )
    cover: Cover = _absent("instead of the whole grid, cases in which every 2 (or 3) values of different axes meet")
    exclude: list[dict[str, Any]] = _empty(list, "combinations to leave out: all given pairs equal")
    include: list[dict[str, Any]] = _empty(list, "further combinations")
    expect: Expect = Field(default=SUCCESS, description="accepted statuses")
    expect_beyond_design: Expect = _absent(
        "instead of expect, where no design and no vendor demands the check: any answer passes, --strict wants these "
        "statuses"
    )
    breaks: Count = Field(default=1, description="number of rules that an invalid case breaks, all of one status")
    tags: list[Text] = _empty(list, "words for selecting cases")
    seed: Seed = Field(default=1, description="default: --seed")
    derive: bool = Field(default=False, description="expand to the invalid cases derived from this valid one")
    null_handle: bool = Field(default=False, description="the handle is null")
    null_descriptors: list[Text] = _empty(list, "tensors whose descriptor is null")
    null_pointers: list[Text] = _empty(list, "tensors whose data pointer is null")
    null_parameters: bool = Field(default=False, description="the descriptor that holds the parameters is null")
    size_query_null_handle: bool = Field(
        default=False, description="the handle is null where the workspace size is asked for"
    )
    size_query_null_descriptors: list[Text] = _empty(
        list, "tensors whose descriptor is null where the workspace size is asked for"
    )
    workspace: Workspace = _absent("the workspace is null, or shorter than asked for")
    null_workspace_size: bool = Field(default=False, description="the pointer that takes the workspace size is null")


class Entry(Fields):
    """One entry of a suite: a case, or the cases of its matrix, zip and sample."""

    name: Name


class SpecPart(Model):
    """A file that specs include: entries, defaults and lists that they share."""

    op: Text = Field(default="", description="the operator; a file that others include may leave it out")
    include: Text = Field(default="", description="another file of this kind, in or below this file's folder")
    lists: dict[str, Any] = _empty(dict, "named lists (and a place for anchors) used below")
    defaults: Fields = Field(default_factory=Fields, description="laid under every entry")
    suites: dict[Name, list[Entry]]


class SpecFile(SpecPart):
    """A spec file: the suites of one operator."""

    op: Text = Field(description="the operator")
