"""What a `mluops gen` is to make: the cases of specs, or existing files that are to be completed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from schemas.case_ids import id_parts

if TYPE_CHECKING:
    from generators.casegen.thresholds import Metrics
    from generators.casegen.worker_pool import Task
    from generators.casegen.write_options import WriteOptions
    from mluops_cli.core.filters import Matcher

_BESIDE: Final = 64 << 20  # bytes a worker takes besides a case's tensors
_PEAK: Final = 2.5  # memory of a case that is being made, in bytes of its tensors


@dataclass(slots=True)
class Plan:
    """What a gen is to make: a task per case, the bytes of its files by case id, and what is wrong with the others.

    recipes: by case id, where the case is one of the specs. ops are the operators of the specs.
    """

    tasks: list[Task] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    recipes: dict[str, str] = field(default_factory=dict)
    ops: set[str] = field(default_factory=set)


def generations(
    ops: Sequence[str], suites: frozenset[str], specs: Sequence[Path], matches: Matcher, options: WriteOptions
) -> Plan:
    """The selected cases of the specs."""
    from generators.casegen.case_data import case_bytes
    from generators.casegen.generate import generate
    from generators.casegen.recipes import case_recipe
    from generators.casegen.size_estimate import planned_size
    from generators.casegen.worker_pool import Task
    from generators.specs.selection import select_cases

    metrics = _metrics(options)
    plan = Plan()
    for case in select_cases(ops, suites, specs, options.seed):
        plan.ops.add(case.op)
        if matches(case.id):
            plan.recipes[case.id] = recipe = case_recipe(case, options, metrics)
            plan.tasks.append(Task(case.id, _peak(case_bytes(case)), partial(generate, case, options, metrics, recipe)))
            plan.sizes[case.id] = planned_size(case, options)
    return plan


def completions(sources: Sequence[Path], matches: Matcher, options: WriteOptions) -> Plan:
    """The existing files that can be completed, with the bytes of their tensors, and what is wrong with the others."""
    from generators.casegen.completion import bind_known, complete
    from generators.casegen.worker_pool import Task
    from generators.contracts.bound_case import stored_bytes
    from mluops_cli.core.discovery import plan_cases
    from schemas.casefiles.reading import read_case
    from schemas.errors import MluopsError

    metrics = _metrics(options)
    plan = Plan()
    for planned in plan_cases(sources, enum_numbering=options.enum_numbering):
        if not matches(planned.id):
            continue
        path, name = Path(planned.file), id_parts(planned.id)[2]
        try:
            with read_case(path, options.enum_numbering) as file:
                bound = bind_known(file, name, planned.manifest_meta)
                size = stored_bytes(bound)
                if bound.id in plan.sizes:
                    raise MluopsError(f"{planned.file}: another file has the case id {bound.id} too")
        except MluopsError as error:
            plan.problems.append(str(error))
            continue
        make = partial(complete, path, name, planned.manifest_meta, options, metrics)
        plan.tasks.append(Task(bound.id, _peak(size), make))
        plan.sizes[bound.id] = size
    return plan


def _metrics(options: WriteOptions) -> Metrics | None:
    """What measures an output where thresholds are to be dynamic."""
    if not options.dynamic_thresholds:
        return None
    from mluops_cli.judging.metrics import metrics

    return metrics


def _peak(size: int) -> int:
    return int(_PEAK * size) + _BESIDE
