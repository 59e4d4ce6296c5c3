"""The stand-in for the vendor library and its runtime (tests/standin), compiled for the tests of this folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PROJECT

COMPILER = shutil.which("cc") or shutil.which("gcc")
SOURCES = PROJECT / "tests" / "standin"
FLAGS = ("-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


def build(folder: Path, name: str, source: Path, *flags: str) -> Path:
    if COMPILER is None:
        pytest.skip("needs a C compiler")
    library = folder / name
    subprocess.run([COMPILER, *FLAGS, *flags, "-o", str(library), str(source), "-lm"], check=True)
    return library


def variant(folder: Path, standin: str, *changes: tuple[str, str]) -> str:
    """The options that name a stand-in library with changes of its source."""
    text = (SOURCES / "mluop.c").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    source = folder / "variant.c"
    source.write_text(text.replace('"standin.h"', f'"{SOURCES / "standin.h"}"'))
    return f"library={build(folder, 'libvariant.so', source)},{standin.partition(',')[2]}"


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The options that name the stand-in."""
    folder = tmp_path_factory.mktemp("standin")
    runtime = build(folder, "libcnrt.so", SOURCES / "cnrt.c")
    return f"library={build(folder, 'libmluops.so', SOURCES / 'mluop.c')},runtime={runtime}"


@pytest.fixture(autouse=True)
def _no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STANDIN_FAULT", "STANDIN_STATUS", "STANDIN_DEVICES", "STANDIN_STRICT"):
        monkeypatch.delenv(name, raising=False)
