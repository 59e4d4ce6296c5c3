"""What all tests share: where the material beside the project lies, if it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public material beside the project; tests that read it skip where it is missing."""
    folder = PROJECT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the folder shared/ beside the project")
    return folder
