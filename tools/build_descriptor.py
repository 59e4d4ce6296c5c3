"""Compiles the .proto files into the shipped descriptor: `python -m tools.build_descriptor` (needs protoc)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from schemas.errors import MluopsError, UnavailableError
from schemas.protos.messages import DESCRIPTOR

PROTOS: Final = ("mluoptest.proto", "mluops_case.proto")  # in the order of their imports


def compiler() -> str | None:
    """The path of protoc, beside this interpreter or on PATH; None where there is none."""
    return shutil.which("protoc", path=str(Path(sys.executable).parent)) or shutil.which("protoc")


def compile_descriptor(target: Path) -> None:
    """Write the FileDescriptorSet of both .proto files to target; UnavailableError without protoc."""
    protoc = compiler()
    if protoc is None:
        raise UnavailableError("protoc is not installed: it comes with the dev extra (pip install -e '.[dev]')")
    command = [protoc, "-I", str(DESCRIPTOR.parent), f"--descriptor_set_out={target}", *PROTOS]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise MluopsError(done.stderr.strip())


if __name__ == "__main__":
    try:
        compile_descriptor(DESCRIPTOR)
    except MluopsError as error:
        sys.exit(str(error))
