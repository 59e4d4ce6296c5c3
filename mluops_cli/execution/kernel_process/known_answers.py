"""What a kernel takes its answers from instead of computing them: case files, reference kernels, bundled kernels.

The kernel process notes what Python code opens and calls there. Code that sets out to can do without: in C, in another
process (docs/untrusted.md).
"""

from __future__ import annotations

import os
import pkgutil
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, Final

import generators.operators
from generators.operator_registry import operators
from mluops_cli.implementations.on_device.device_options import split_target
from schemas.casefiles.reading import SUFFIXES, read_case

_REFERENCES: Final = Path(os.path.realpath(generators.operators.__path__[0]))
_PROJECT: Final = _REFERENCES.parents[1]
_KERNELS: Final = _PROJECT / "mluops_cli" / "implementations"
_MODULES: Final = frozenset(each.name for each in pkgutil.iter_modules(generators.operators.__path__))
_BUNDLED: Final = ("tiled", "torch", "triton")
# They call no Python code of others; a program gets a case file, without baseline, and answers with one.
_TRUSTED: Final = ("exec", "capi", "reference", "tiled")
_MEMORY: Final = re.compile(r"/proc/(\d+)/(?:task/\d+/)?mem")
_MOST: Final = 256  # that are noted
_MANY: Final = f"more than {_MOST} files whose names end as those of case files do"  # one of them may be a case
_LONGEST: Final = 4096  # characters of a path; Linux opens none that is longer
_SHOWN: Final = 3


class KnownAnswers:
    """What the implementation `NAME[:OPTIONS]` opens and calls from now on, in this process."""

    def __init__(self, implementation: str) -> None:
        self.used: list[str] = []
        self._folders = folders_of_answers(implementation)
        if implementation.partition(":")[0] not in _TRUSTED:
            for operator in operators().values():  # loads them: their files are opened before the watch begins
                _note_calls(type(operator), partial(self._note, f"the reference kernel of {operator.contract.op}"))
            sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        # Their first argument is a file that is opened, or that gets another name to be opened by.
        if event not in ("open", "os.link", "os.rename") or not isinstance(arguments[0], (str, bytes)):
            return
        if len(arguments[0]) > _LONGEST:
            return
        with suppress(OSError, ValueError):  # the call itself raises it
            path = os.path.realpath(os.fsdecode(arguments[0]))  # a link may have any name
            if path.endswith(SUFFIXES) or self._is_kernel(path) or _is_of_another_process(path):
                self._note(path)

    def _is_kernel(self, path: str) -> bool:
        source = _source(path)
        return source.stem in _MODULES and source.parent in self._folders

    def _note(self, what: str) -> None:
        if what not in self.used and len(self.used) <= _MOST:
            self.used.append(what if len(self.used) < _MOST else _MANY)


def folders_of_answers(implementation: str) -> frozenset[Path]:
    """The folders of the modules that an implementation `NAME[:OPTIONS]` may not use: all kernels but its own."""
    name, _, options = implementation.partition(":")
    own = "" if split_target(options)[0] else name  # a callable is not the bundled kernel of that name
    return frozenset({_REFERENCES, *(_KERNELS / each for each in _BUNDLED if each != own)})


def _is_of_another_process(path: str) -> bool:
    """Whether a file is the memory of another process, such as the one that judges."""
    found = _MEMORY.fullmatch(path)
    return found is not None and int(found[1]) != os.getpid()


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
    found = [_shown(each) for each in used[: _MOST + 1] if not each.endswith(SUFFIXES) or _is_case(each)]
    more = [f"{len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return ", ".join([*found[:_SHOWN], *more])


def _shown(used: str) -> str:
    """Package files relative to the project, a compiled one by the name of its source."""
    with suppress(ValueError):
        return _source(used).relative_to(_PROJECT).as_posix()
    return used


def _source(path: str) -> Path:
    """A file; of a compiled module the file of its source."""
    found = Path(path)
    return found.parents[1] / f"{found.name.partition('.')[0]}.py" if found.parent.name == "__pycache__" else found


@cache
def _is_case(path: str) -> bool:
    with suppress(Exception):
        if Path(path).is_file():
            with read_case(Path(path)) as file:
                return file.op in operators()
    return False
