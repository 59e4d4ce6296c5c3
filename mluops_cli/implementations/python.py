"""`--impl python:FILE.py:NAME` or `python:package.module:NAME`: a callable as an implementation.

f(op, inputs, outputs, params[, descriptors][, handle])        returns None, a status, or a dict of status and scalars
f.workspace_size(op, inputs, outputs, params[, size][, ...])   returns bytes; one that takes `size` writes them to
                                                               size[0] and returns a status
f.synchronize()                                                waits for work that f has only started
"""

from __future__ import annotations

from mluops_cli.implementations.base import Call, Implementation, Outcome
from mluops_cli.implementations.callables import CallableKernel
from mluops_cli.implementations.loading import load_callable


class Python(Implementation):
    """A function, object or class of a Python file or module; a class is instantiated once per worker."""

    name = "python"
    needs = "FILE.py:NAME or package.module:NAME"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        self.kernel = CallableKernel(load_callable("python", options))

    def call(self, call: Call) -> Outcome:
        """Run the callable once."""
        return self.kernel(call)
