"""`--impl tiled[:nram=BYTES,clusters=N,cores=N]`: the design documents' device algorithms in NumPy.

An operator is a module of this package with KERNELS, a mapping from operator name to a subclass of Kernel.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields
from functools import cache

from mluops_cli.implementations.base import Call, CannotShow, Implementation, Outcome
from mluops_cli.implementations.callables import CallableKernel
from mluops_cli.implementations.named_options import named_options
from mluops_cli.implementations.tiled.base import Kernel
from mluops_cli.implementations.tiled.onchip import Machine
from schemas.errors import InputError


@cache
def kernels() -> dict[str, type[Kernel]]:
    """The kernels by operator, from every module of this package."""
    found: dict[str, type[Kernel]] = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(__path__)):
        found |= getattr(importlib.import_module(f"{__name__}.{module}"), "KERNELS", {})
    return found


class Tiled(Implementation):
    """The device algorithms on a machine of a given size; independent of the reference kernels."""

    name = "tiled"
    needs = "nothing; options nram=BYTES (per core), clusters=N, cores=N (per cluster)"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        machine = machine_of(options)
        self.kernels = {op: CallableKernel(kernel(machine)) for op, kernel in kernels().items()}

    @classmethod
    def operators(cls) -> tuple[str, ...]:
        """The operators with a module here."""
        return tuple(kernels())

    def call(self, call: Call) -> Outcome:
        """Run the device algorithm once; CannotShow for an operator without one."""
        if call.op not in self.kernels:
            raise CannotShow(f"tiled has no device algorithm for operator {call.op}")
        return self.kernels[call.op](call)


def machine_of(options: str) -> Machine:
    """The machine of `nram=655360,clusters=4,cores=4`, each optional; InputError for anything else."""
    given = named_options("tiled", options, {field.name: str(field.default) for field in fields(Machine)})
    for name, value in given.items():
        if not (value.isascii() and value.isdigit() and int(value) > 0):
            raise InputError(f"tiled: {name} is {value!r}, expected a whole number above 0")
    return Machine(**{name: int(value) for name, value in given.items()})
