"""The bundled faulty kernels in the place of mutants, for implementations whose source can't be mutated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mluops_cli.implementations.loading import module_name
from mluops_cli.search.faulty_kernels.catalogue import (
    MODULES,
    RIGHT,
    faults,
    implementation,
    kernel_file,
    precision_faults,
)
from mluops_cli.search.mutation.mutants import Found, Mutant
from mluops_cli.search.mutation.sources import SourceModule
from mluops_cli.search.mutation.trial import CaseResult
from schemas.errors import InputError
from schemas.suggest import did_you_mean

_KIND = "faulty_kernel"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The kernels of one operator: how the right one is run, its modules, and what makes the mutants."""

    impl: str
    modules: tuple[str, ...]
    make: Callable[[Sequence[SourceModule], Sequence[CaseResult]], Found]


def catalogue_of(op: str) -> Catalogue:
    """The catalogue of an operator; InputError where it has none."""
    if op not in MODULES:
        raise InputError(f"the catalogue has no kernels of {op}{did_you_mean(op, MODULES)}")
    names = [*faults(op), *precision_faults(op)]
    files = {name: kernel_file(op, name) for name in (*names, RIGHT)}

    def make(sources: Sequence[SourceModule], results: Sequence[CaseResult]) -> Found:
        cases = frozenset(result.case for result in results)
        return Found(
            [
                Mutant(f"{file.name}:{name}", file.name, 0, _KIND, (), None, cases, implementation(op, name))
                for name, file in files.items()
                if name != RIGHT
            ]
        )

    return Catalogue(implementation(op, RIGHT), tuple({module_name(file) for file in files.values()}), make)


def catalogued() -> tuple[str, ...]:
    """The operators with kernels."""
    return tuple(MODULES)
