"""What a kernel takes its answers from instead of computing them: case files, reference kernels, bundled kernels.

The kernel process notes what Python code opens and calls there and in its forks, and which programs it starts. Code
that sets out to can do without: in C, in a program of its own (docs/untrusted.md).
"""

from __future__ import annotations

import os
import pkgutil
import re
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, Final

import generators.operators
from generators.operator_registry import operators
from mluops_cli.execution.kernel_process.forked_notes import ForkedNotes
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
_ANSWER, _PROGRAM = "a", "p"  # the first letter of a note of a fork
_LONGEST: Final = 4096  # characters of a path; Linux opens none that is longer
_UNKNOWN: Final = "a process from C code"
_SHOWN: Final = 3
# Their first argument is a file that is opened, or that gets another name to be opened by; or a program.
_OPENS: Final = ("open", "os.link", "os.rename")
_FORKS: Final = ("os.fork", "os.forkpty")
_STARTS: Final = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "pty.spawn")
# They build kernels, or tell what the machine has: libraries start them.
_TOOLS: Final = re.compile(
    r"(?:[\w.]+-)*(?:cc|c\+\+|gcc|g\+\+|clang|clang\+\+|icx|icpx|hipcc|cncc|nvcc|ptxas|nvlink|fatbinary|cuobjdump"
    r"|nvdisasm|ninja|as|ar|ld|lld|ldconfig|objdump|nvidia-smi|cnmon|uname)(?:-[\d.]+)?"
)


class KnownAnswers:
    """What the implementation `NAME[:OPTIONS]` opens, calls and starts from now on, in this process and its forks."""

    def __init__(self, implementation: str) -> None:
        self._home = os.getpid()
        self._forked = ForkedNotes()
        self._answers: list[str] = []
        self._programs: list[str] = []
        # Whether processes are no matter, or Python code has started one: C code can't be told from it then.
        self._processes = implementation.partition(":")[0] in _TRUSTED
        self._folders = folders_of_answers(implementation)
        if not self._processes:
            for operator in operators().values():  # loads them: their files are opened before the watch begins
                _note_calls(type(operator), partial(self._note, f"the reference kernel of {operator.contract.op}"))
            sys.addaudithook(self._hear)

    def found(self) -> dict[str, list[str]]:
        """The keys of a reply that tell what was noted so far."""
        for note in self._forked.read():
            self._note(note[1:], program=note[:1] == _PROGRAM)
        if not self._processes and resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt:
            self._note(_UNKNOWN, program=True)
        return {"known_answers": self._answers, "programs": self._programs}

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        self._processes |= event in _STARTS or event in _FORKS
        if event in _STARTS or event in _OPENS:
            with suppress(OSError, ValueError, TypeError):  # the call itself raises it
                first = arguments[0][0] if event == "pty.spawn" else arguments[0]
                if isinstance(first, (str, bytes, Path)) and len(text := os.fsdecode(first)) <= _LONGEST:
                    self._hear_of(text, event)

    def _hear_of(self, text: str, event: str) -> None:
        """Note a program that is started, or a file that is opened."""
        if event in _STARTS:
            name = Path(text.split(maxsplit=1)[0] if event == "os.system" and text.split() else text).name
            if not _TOOLS.fullmatch(name):
                self._note(name, program=True)
            return
        path = os.path.realpath(text)  # a link may have any name
        if path.endswith(SUFFIXES) or self._is_kernel(path) or _is_of_another_process(path):
            self._note(path)

    def _is_kernel(self, path: str) -> bool:
        source = _source(path)
        return source.stem in _MODULES and source.parent in self._folders

    def _note(self, what: str, *, program: bool = False) -> None:
        found = self._programs if program else self._answers
        if what not in found and len(found) <= _MOST:
            found.append(what if len(found) < _MOST else _MANY)
            if os.getpid() != self._home:
                self._forked.write(f"{_PROGRAM if program else _ANSWER}{found[-1]}")


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
