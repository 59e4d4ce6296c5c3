"""`--impl capi[:library=libmluops.so,runtime=libcnrt.so,device=0]`: the vendor library through its C interface.

What the library answers differently from the contracts is listed in docs/vendor.md.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import ClassVar

from mluops_cli.implementations.base import Call, CannotShow, Implementation, Outcome
from mluops_cli.implementations.capi.library import Library
from mluops_cli.implementations.capi.runtime import Runtime, StatusError, load_library
from mluops_cli.implementations.capi.session import Session
from mluops_cli.implementations.capi.symbols import OPERATORS
from mluops_cli.implementations.named_options import named_options
from schemas.errors import InputError, UnavailableError

_DEFAULTS = {"library": "libmluops.so", "runtime": "libcnrt.so", "device": "0"}


class CApi(Implementation):
    """The library, loaded once per worker, with a handle and a queue."""

    name: ClassVar[str] = "capi"
    needs: ClassVar[str] = "the vendor library; options library=libmluops.so, runtime=libcnrt.so, device=0"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        given = named_options("capi", options, _DEFAULTS)
        if not given["device"].isdecimal():
            raise InputError(f"capi: device is {given['device']!r}, expected a number from 0")
        self.runtime = Runtime(given["runtime"], int(given["device"]))
        self.library = Library(given["library"], self.runtime.queue)

    @classmethod
    def unavailable(cls) -> str | None:
        """Return why the libraries of the default names can't be loaded, None where they can."""
        try:
            for name in ("runtime", "library"):
                load_library(_DEFAULTS[name])
        except UnavailableError as error:
            return str(error)
        return None

    @classmethod
    def operators(cls) -> tuple[str, ...]:
        """Return the operators whose signatures are known."""
        return tuple(OPERATORS)

    def device(self) -> str:
        """Return "MLU": the interface does not tell the model."""
        return "MLU"

    def flush_cache(self) -> None:
        """Write to more memory than the device's caches hold."""
        self.runtime.flush_cache()

    def close(self) -> None:
        """Destroy the handle and the queue."""
        self.library.close()
        self.runtime.close()

    def call(self, call: Call) -> Outcome:
        """Run the operator once; a refusal of the library or of the device is the status."""
        function = OPERATORS.get(call.op)
        if function is None:
            raise CannotShow(f"capi: no signature is known for operator {call.op}")
        for needed in function.names:
            if not self.library.has(needed):
                raise CannotShow(f"capi: {self.library.name} has no function {needed}")
        try:
            with ExitStack() as stack:
                return Session(self.runtime, self.library, function, call, stack).run()
        except StatusError as refused:
            print(f"capi: {refused}", file=sys.stderr)  # kept with the record
            return Outcome(refused.status)
