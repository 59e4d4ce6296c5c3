"""Plug-ins: Python files with operators and implementations, given by `--plugin PATH`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from generators.operator_registry import add_operators
from mluops_cli.implementations.loading import load_file
from mluops_cli.implementations.registry import add_implementations

_loaded: Final[set[Path]] = set()


def load_plugins(paths: Iterable[Path]) -> None:
    """Load Python files and register their OPERATORS and IMPLEMENTATIONS, once each; an error names the file."""
    for path in map(Path.resolve, paths):
        if path not in _loaded:
            with np.errstate():  # reference kernels run in this process too
                module = load_file(path)
            add_operators(module)
            add_implementations(module)
            _loaded.add(path)
