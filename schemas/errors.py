"""Errors: each is one message for the person who typed, with a source location and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A file, a line and column in it (from 1), and a key path."""

    file: str
    line: int | None = None
    column: int | None = None
    key: str | None = None

    def __str__(self) -> str:
        text = self.file
        if self.line is not None:
            text += f":{self.line}"
            if self.column is not None:
                text += f":{self.column}"
        return f"{text}: {self.key}" if self.key else text


class MluopsError(Exception):
    """Our own failure: exit code 3."""

    exit_code = 3


class InputError(MluopsError):
    """The command, a spec or a case file is wrong: exit code 2.

    The message says what was found and what was expected; it begins with the source location, if that is known. An
    operator or implementation raises it with the message alone: what calls it adds the place.
    """

    exit_code = 2

    def __init__(self, message: str, place: SourceLocation | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place

    def __reduce__(self) -> tuple[type[InputError], tuple[str, SourceLocation | None]]:
        return type(self), (self.message, self.place)


@contextmanager
def located(place: SourceLocation) -> Iterator[None]:
    """Add the source location to an InputError raised inside that has none."""
    try:
        yield
    except InputError as error:
        if error.place is not None:
            raise
        raise InputError(error.message, place) from None


class UnavailableError(MluopsError):
    """The machine lacks something (a library, a package, disk space): exit code 3."""
