"""The grammar of a spec file as pydantic models: what is checked before anything is expanded, and the JSON Schema.

What depends on an operator's contract (names of tensors and parameters, shapes, ranges) is checked by expansion.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from generators.data.distributions import KINDS
from generators.specs.fields import (
    Axis,
    Bound,
    Bounds,
    Count,
    CriterionName,
    Drawn,
    DTypeName,
    Expect,
    Layout,
    Name,
    Pair,
    Parameter,
    Rows,
    Seed,
    Shape,
    Share,
    Size,
    Strides,
    Tag,
    Threshold,
    Unique,
    Workspace,
)  # fmt: skip


class Model(BaseModel):
    """A mapping of the spec: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid")


class Dist(Model):
    """How the values of an input are drawn: at most one kind, without one the contract's."""

    uniform: Pair = Field(default=None, description=KINDS["uniform"])
    normal: Pair = Field(default=None, description=KINDS["normal"])
    integers: Pair = Field(default=None, description=KINDS["integers"])
    constant: Bound = Field(default=None, description=KINDS["constant"])
    choice: Bounds = Field(default=None, description=KINDS["choice"])
    sequence: Pair = Field(default=None, description=KINDS["sequence"])
    unique: Unique = Field(default=None, description=KINDS["unique"])
    clusters: Rows = Field(default=None, description=KINDS["clusters"])
    file: Tag = Field(default=None, description=KINDS["file"])
    recipe: Tag = Field(default=None, description=KINDS["recipe"])
    nan: Share = Field(default=None, description="share of NaNs, an exact count, at least one")
    inf: Share = Field(default=None, description="share of infinities of both signs, an exact count, at least one")
    special: Bounds = Field(
        default=None, description="values placed at least once each: words, numbers, bit patterns 0x..."
    )
    special_share: Share = Field(default=None, description="share of the special values together, default 0.01")


class Output(Model):
    """An output: what is given is asserted; in an invalid case it is taken as it is."""

    shape: Shape = Field(default=None, description="dims: integers, or expressions over params and sizes")
    dtype: DTypeName = Field(default=None, description="default: the contract's first")
    layout: Layout = Field(default=None, description="default: the contract's")
    strides: Strides = Field(default=None, description="in elements, absent when dense; for invalid cases")


class Input(Output):
    """An input."""

    dist: Dist = Field(default_factory=Dist, description="how its values are drawn, default: the contract's way")


class Sample(Model):
    """Random values at dotted paths, drawn anew until they make a legal case."""

    count: Count = Field(description="number of cases")
    seed: Seed = Field(default=1, description="of these draws alone; --seed has no part in them")
    over: dict[str, Drawn] = Field(description="dotted path -> what to draw from")


class Fields(Model):
    """What an entry may hold besides its name."""

    params: dict[str, Parameter] = Field(default={}, description="the operator's parameters")
    sizes: dict[str, Size] = Field(default={}, description="the contract's free sizes, for shapes that aren't given")
    inputs: dict[str, Input] = {}
    outputs: dict[str, Output] = {}
    criteria: dict[str, dict[CriterionName, Threshold]] = Field(
        default={}, description="per output, instead of the contract's"
    )
    matrix: dict[str, Axis] = Field(default={}, description="grid: dotted path -> values, the last varies fastest")
    zip: list[dict[str, Axis]] = Field(
        default=[], description="paired lists of one length, each mapping one more dimension of the grid"
    )
    sample: Sample = Field(  # type: ignore[assignment]  # only ever validated
        default=None, description="random points, so many per point of the grid"
    )
    exclude: list[dict[str, Any]] = Field(default=[], description="combinations to leave out: all given pairs equal")
    include: list[dict[str, Any]] = Field(default=[], description="further combinations")
    expect: Expect = Field(default="SUCCESS", description="accepted statuses")
    expect_beyond_design: Expect = Field(
        default=None,
        description="instead of expect, where no design and no vendor demands the check: any answer passes, --strict "
        "wants these statuses",
    )
    tags: list[Tag] = []
    seed: Seed = Field(default=1, description="default: --seed")
    derive: StrictBool = Field(default=False, description="expand to the invalid cases derived from this valid one")
    null_handle: StrictBool = False
    null_descriptors: list[Tag] = []
    null_pointers: list[Tag] = []
    workspace: Workspace = Field(default=None, description="the workspace is withheld (null) or too short")
    null_workspace_size: StrictBool = False


class Entry(Fields):
    """One entry of a suite: a case, or the cases of its matrix, zip and sample."""

    name: Name


class SpecFile(Model):
    """A spec file: the suites of one operator."""

    op: Tag
    lists: dict[str, Any] = Field(default={}, description="named lists (and a place for anchors) used below")
    defaults: Fields = Field(default_factory=Fields, description="laid under every entry")
    suites: dict[Name, list[Entry]]
