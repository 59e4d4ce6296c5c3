"""Triton in its interpreter, which it has to be told before any kernel is defined."""

from __future__ import annotations

import os

from tests.mluops_cli.execution.conftest import run

__all__ = ["run"]

os.environ["TRITON_INTERPRET"] = "1"
