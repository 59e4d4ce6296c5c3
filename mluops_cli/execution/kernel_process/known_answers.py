"""What a kernel takes its answers from instead of computing them: case files, reference kernels, bundled kernels.

The kernel process notes what Python code opens and calls there. Code that sets out to can do without: in C, in another
process (docs/untrusted.md).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, Final

import generators.operators
from generators.operator_registry import operators
from schemas.casefiles.reading import SUFFIXES, read_case

_PROJECT: Final = Path(generators.operators.__path__[0]).parents[1]
_REFERENCES: Final = "generators/operators"
_KERNELS: Final = "mluops_cli/implementations"
_BUNDLED: Final = ("tiled", "torch", "triton")
# They call no Python code of others; a program gets a case file, without baseline, and answers with one.
_TRUSTED: Final = ("exec", "capi", "reference", "tiled")
_MOST: Final = 256  # that are noted
_SHOWN: Final = 3


class KnownAnswers:
    """What the implementation of this name opens and calls from now on, in this process."""

    def __init__(self, implementation: str) -> None:
        self.used: list[str] = []
        others = [f"{_KERNELS}/{name}" for name in _BUNDLED if name != implementation]
        self._folders = tuple(f"{_PROJECT / each}{os.sep}" for each in (_REFERENCES, *others))
        if implementation not in _TRUSTED:
            for operator in operators().values():  # loads them: their files are opened before the watch begins
                _note_calls(type(operator), partial(self._note, f"the reference kernel of {operator.contract.op}"))
            sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], (str, bytes)):
            return
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.endswith(SUFFIXES) or path.startswith(self._folders):
            self._note(path)

    def _note(self, what: str) -> None:
        if what not in self.used and len(self.used) < _MOST:
            self.used.append(what)


def _note_calls(kind: type[Any], note: Callable[[], None]) -> None:
    """Let a class's reference kernel tell that it is called."""
    reference = kind.reference

    @wraps(reference)
    def noted(*arguments: Any, **rest: Any) -> Any:
        note()
        return reference(*arguments, **rest)

    kind.reference = noted


def phrase_of(used: Sequence[str]) -> str:
    """A phrase on what KnownAnswers has noted, empty where it is nothing.

    Files with the suffix of a case file count only where they are one.
    """
    found = [_shown(each) for each in used[:_MOST] if not each.endswith(SUFFIXES) or _is_case(each)]
    more = [f"{len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return ", ".join([*found[:_SHOWN], *more])


def _shown(used: str) -> str:
    """Package files relative to the project, a compiled one by the name of its source."""
    with suppress(ValueError):
        path = Path(used).relative_to(_PROJECT)
        if path.parent.name == "__pycache__":
            path = path.parents[1] / f"{path.name.partition('.')[0]}.py"
        return path.as_posix()
    return used


@cache
def _is_case(path: str) -> bool:
    with suppress(Exception):
        if Path(path).is_file():
            with read_case(Path(path)) as file:
                return file.op in operators()
    return False
