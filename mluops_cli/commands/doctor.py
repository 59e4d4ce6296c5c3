"""`mluops doctor`: checks that the machine has everything that mluops needs."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import rich_click as click

from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.hardware.machine import cores
from mluops_cli.core.statuses import OUR_FAILURE
from mluops_cli.core.units import format_bytes
from schemas.version import __version__

_EXTRAS: Final = {
    "torch": "torch",
    "triton": "triton",
    "cluster": "distributed",
    "zstd": "zstandard",
    "pytest": "pytest",
    "history": "ruptures",
}  # extra -> the module it brings
_SCARCE: Final = 2**30  # bytes of memory or disk below which a network suite can't be handled


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; ok is None for an optional part that is not installed."""

    what: str
    found: str
    ok: bool | None = True


@click.command(epilog="Example: mluops doctor")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
def command(folder: Path) -> int:
    """Check this machine: versions, memory, free disk at FOLDER, optional parts. Exit code 3 if one is missing."""
    findings = [*_machine(folder), *_requirements(), *_extras(), *_parts()]
    marks = {True: "ok", False: "MISSING", None: "-"}
    for line in table_lines([(marks[each.ok], each.what, each.found) for each in findings]):
        click.echo(line)
    return OUR_FAILURE if any(finding.ok is False for finding in findings) else 0


def _machine(folder: Path) -> Iterator[Finding]:
    import psutil

    from generators.casegen.worker_pool import available_memory  # as control groups limit it

    yield Finding("mluops", __version__)
    yield Finding("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Finding("cores", str(cores()))
    available = available_memory()
    text = f"{format_bytes(available)} available of {format_bytes(psutil.virtual_memory().total)}"
    yield Finding("memory", text + _scarce(available), available >= _SCARCE)
    free = shutil.disk_usage(folder).free
    yield Finding("disk", f"{format_bytes(free)} free at {folder.resolve()}{_scarce(free)}", free >= _SCARCE)


def _scarce(size: int) -> str:
    return "" if size >= _SCARCE else f", a network suite needs {format_bytes(_SCARCE)}"


def _requirements() -> Iterator[Finding]:
    """The packages that mluops requires, with their minimum versions."""
    try:
        lines = importlib.metadata.requires("mluops") or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding("package", "mluops is not installed: pip install .", False)
        return
    for line in lines:
        match = re.fullmatch(r"([\w.-]+)\s*>=\s*([\d.]+)", line)
        if match is None:
            continue  # an extra
        name, least = match.groups()
        version = _version(name)
        if version is None:
            yield Finding(name, f"not installed, needs {least} or newer", False)
        elif _numbers(version) < _numbers(least):
            yield Finding(name, f"{version}, needs {least} or newer", False)
        else:
            yield Finding(name, version)


def _extras() -> Iterator[Finding]:
    for extra, module in _EXTRAS.items():
        if find_spec(module) is None:
            yield Finding(f"[{extra}]", f"not installed (pip install mluops[{extra}])", None)
        else:
            yield Finding(f"[{extra}]", f"{module} {_version(module) or ''}".rstrip())


def _parts() -> Iterator[Finding]:
    """The parts of mluops that are loaded for the check."""
    if find_spec("torch") is not None:
        yield _tried("devices", _devices)
    yield _inputs()
    yield _tried("BLAS", _blas)
    yield _tried("protobuf runtime", _protobuf)
    yield _tried("operators", _operators)


def _tried(what: str, ask: Any) -> Finding:
    try:
        return Finding(what, ask())
    except Exception as error:  # every failure is a line of the report
        return Finding(what, f"{type(error).__name__}: {error}", False)


def _inputs() -> Finding:
    from mluops_cli.execution.kernel_process.shared_memory import fixed_inputs_are_safe

    if fixed_inputs_are_safe():
        return Finding("inputs", "implementations can't write to those of large case files")
    return Finding("inputs", "/proc/self/fd is refused: an implementation that sets out to can write to them", None)


def _blas() -> str:
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".rstrip()


def _protobuf() -> str:
    from google.protobuf.internal import api_implementation

    from schemas.protos.messages import pool

    pool()
    return f"{api_implementation.Type()}; the case file's descriptor loads"


def _devices() -> str:
    from mluops_cli.implementations.on_device.device_options import devices

    return ", ".join(devices())


def _operators() -> str:
    from generators.operator_registry import operators

    return ", ".join(sorted(operators()))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
