"""Options that several commands share, and the values they read."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import rich_click as click

from mluops_cli.core.hardware.machine import cores
from mluops_cli.implementations.plugins import load_plugins
from schemas.casefiles.enum_numbering import CURRENT, NUMBERINGS
from schemas.errors import InputError
from schemas.seeds import SEEDS

_UNITS: Final = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip


class ByteSize(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on only
    """A number of bytes such as 64MiB, 1.5GB or 4096."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
        if match is None or match[2].upper() not in _UNITS:
            self.fail(f"{value!r} is not a size; expected one such as 64MiB, 1.5GB or 4096", param, ctx)
        return int(float(match[1]) * _UNITS[match[2].upper()])


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names separated by commas."""

    name = "name,.."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        """The set of names."""
        if isinstance(value, frozenset):
            return value
        names = frozenset(name.strip() for name in value.split(",")) - {""}
        if not names:
            self.fail("expected names separated by commas", param, ctx)
        return names


class Seconds(click.FloatRange):
    """A finite time above 0; click's own range lets nan through."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number of seconds."""
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on only
    """A time such as 90, 90s, 5m or 1.5h; the value counts seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number of seconds."""
        if isinstance(value, (int, float)):
            return float(value)
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", value)
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is not a time; expected one such as 90s, 5m or 1.5h", param, ctx)
        return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


@contextmanager
def made_folder(out: Path) -> Iterator[None]:
    """The folder that a command writes to, which doesn't stay where nothing was written; InputError where it can't be.

    Folders above it that had to be made don't stay either.
    """
    # Not Path.exists: before Python 3.14 it raises OSError for a name that is too long.
    new = [folder for folder in (out, *out.parents) if not os.path.exists(folder)]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: can't make this folder: {error.strerror}") from None
    try:
        yield
    finally:
        with suppress(OSError):  # not empty
            for folder in new:
                folder.rmdir()


def seed_option(text: str) -> Callable[..., Any]:
    """--seed N; text: what is made of it."""
    return click.option("--seed", default=1, show_default=True, type=click.IntRange(0, SEEDS - 1), help=text)


def _load(ctx: click.Context, param: click.Parameter, value: tuple[Path, ...]) -> tuple[Path, ...]:
    if value:
        from mluops_cli.execution.kernel_process.floating_point import MODE

        with MODE.of_implementation():  # what the files set for floating-point numbers is not for our own
            load_plugins(value)
    return value


def plugin_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--plugin PATH, loaded before anything else is looked at; the command gets the paths as `plugins`."""
    return click.option(
        "--plugin",
        "plugins",
        type=click.Path(path_type=Path),
        multiple=True,
        is_eager=True,
        callback=_load,
        help="A Python file with OPERATORS and IMPLEMENTATIONS to add.",
    )(command)


def suites_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--suite S,..: the command gets the set of names as `suites`, empty where none is given."""
    return click.option(
        "--suite", "suites", type=Names(), default=frozenset(), metavar="S,..", help="Only these suites."
    )(command)


def spec_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--spec PATH, several times: the command gets the paths as `specs`."""
    return click.option(
        "--spec", "specs", multiple=True, type=click.Path(path_type=Path), help="Only the specs in this file or folder."
    )(command)


def jobs_option(what: str) -> Callable[[Any], Any]:
    """-j N, of as many as there are cores; what they are, for --help."""
    return click.option("-j", "--jobs", default=cores, show_default="cores", type=click.IntRange(1), help=what)


def keywords_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """-k EXPR: an expression over case ids (core.filters.parse_keywords); the command gets it as `keywords`."""
    return click.option(
        "-k", "keywords", metavar="EXPR", help="Only cases whose id matches: parts, and, or, not, ( )."
    )(command)


def generation_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--generation current|old: the enum numbering of binary case files."""
    return click.option(
        "--generation",
        "enum_numbering",
        type=click.Choice(NUMBERINGS),
        default=CURRENT,
        show_default=True,
        help="Enum numbering of .pb files: old for those of older generators.",
    )(command)
