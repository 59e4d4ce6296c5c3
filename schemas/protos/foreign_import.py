"""Importing modules of others: plug-ins, kernels, operators and implementations of entry points."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from schemas.process_state import preserved_import_state
from schemas.protos import messages


@contextmanager
def foreign_import() -> Iterator[None]:
    """Import a module of others in the block: the process stays as it was.

    Our message classes are made first: protobuf reads the defaults of floats by the locale, which the module may set.
    """
    messages.pool()
    with preserved_import_state():
        yield
