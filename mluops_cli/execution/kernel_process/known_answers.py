"""What a kernel takes its answers from instead of computing them: case files, reference kernels, bundled kernels.

The kernel process notes what Python code opens and calls there and in its forks, and which programs it starts. C code
and the programs can do all of it unseen (docs/untrusted.md).
"""

from __future__ import annotations

import multiprocessing.util
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
_MANY_PROGRAMS: Final = f"more than {_MOST} programs"
_POOL: Final = "a process of multiprocessing"
_SHOWN: Final = 3
# Audit events. The first argument is a file that is opened, or that gets another name to be opened by.
_OPENS: Final = frozenset({"open", "os.link", "os.rename"})
# The first argument is a program or its words, the second one the words of the others.
_STARTS: Final = frozenset({"os.system", "pty.spawn", "subprocess.Popen", "os.posix_spawn", "os.exec"})
_SYMBOL: Final = "ctypes.dlsym"
_IN_C: Final = frozenset({
    "system", "popen", "fork", "vfork", "clone", "posix_spawn", "posix_spawnp",
    "execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "fexecve",
})  # fmt: skip
# They build kernels, or tell what the machine has: libraries start them.
_TOOLS: Final = re.compile(
    r"(?:[\w.]+-)*(?:cc|c\+\+|gcc|g\+\+|clang|clang\+\+|icx|icpx|hipcc|nvc\+\+|nvcc|ptxas|ptxas-blackwell|nvlink|fatbinary"
    r"|cuobjdump|nvdisasm|cncc|cnas|cnlink|ninja|as|ar|ld|ld\.\w+|lld|ldconfig|objdump|c\+\+filt|nvidia-smi|cnmon|rocminfo"
    r"|lscpu|uname|file|which)(?:-[\d.]+)?"
)
_SHELL: Final = "sh"
_COMPOUND: Final = re.compile(r"[;&|<>()`$\n]")  # in a command of a shell that is more than one program and its words


class KnownAnswers:
    """What the implementation `NAME[:OPTIONS]` opens, calls and starts from now on, in this process and its forks."""

    def __init__(self, implementation: str) -> None:
        self._home = os.getpid()
        self._forked = ForkedNotes()
        self._answers: list[str] = []
        self._programs: list[str] = []
        self._folders = folders_of_answers(implementation)
        if implementation.partition(":")[0] not in _TRUSTED:
            for operator in operators().values():  # loads them: their files are opened before the watch begins
                _note_calls(type(operator), partial(self._note, f"the reference kernel of {operator.contract.op}"))
            _note_processes(partial(self._note, _POOL, program=True))
            sys.addaudithook(self._hear)

    def found(self) -> dict[str, list[str]]:
        """The keys of a reply that tell what was noted so far."""
        for note in self._forked.read():
            self._note(note[1:], program=note[0] == _PROGRAM)
        return {"known_answers": self._answers, "programs": self._programs}

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _OPENS:
            with suppress(Exception):  # the call itself raises it
                self._note_file(_text(arguments[0]))
        elif event in _STARTS:
            with suppress(Exception):
                self._note_program(_program(event, arguments))
        elif event == _SYMBOL and arguments[1] in _IN_C:
            self._note_program(f"{arguments[1]}() of C")

    def _note_file(self, name: str) -> None:
        path = os.path.realpath(name)  # a link may have any name
        if path.endswith(SUFFIXES) or self._is_kernel(path) or _is_of_another_process(path):
            self._note(path)

    def _note_program(self, name: str) -> None:
        if not _TOOLS.fullmatch(name):
            self._note(name, program=True)

    def _is_kernel(self, path: str) -> bool:
        source = _source(path)
        return source.stem in _MODULES and source.parent in self._folders

    def _note(self, what: str, *, program: bool = False) -> None:
        found = self._programs if program else self._answers
        if what not in found and len(found) <= _MOST:
            found.append(what if len(found) < _MOST else _MANY_PROGRAMS if program else _MANY)
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


def _text(name: Any) -> str:
    """A file or a program as text; ValueError where it is longer than any that a system opens."""
    text = os.fsdecode(name)
    if len(text) > _LONGEST:
        raise ValueError(f"a name of {len(text)} characters")
    return text


def _program(event: str, arguments: tuple[Any, ...]) -> str:
    """The name of the program that an event of _STARTS is about."""
    first = arguments[0]
    if event == "pty.spawn":
        first = first if isinstance(first, str) else first[0]
    if event == "os.system":
        return _of_command(os.fsdecode(first))
    name = Path(_text(first)).name
    if name == _SHELL and event != "pty.spawn":
        words = [os.fsdecode(each) for each in arguments[1]]
        return _of_command(words[2]) if words[1:2] == ["-c"] else name
    return name


def _of_command(command: str) -> str:
    """The program that a command of a shell starts, the shell itself where it is more than that."""
    words = command[:_LONGEST].split()
    return Path(words[0]).name if words and not _COMPOUND.search(command) else _SHELL


def _note_processes(note: Callable[[], None]) -> None:
    """Let the start of a process by multiprocessing tell, which no audit event does; forks are no programs."""
    start: Callable[..., Any] = multiprocessing.util.spawnv_passfds

    @wraps(start)
    def noted(path: Any, args: Sequence[Any], *rest: Any) -> Any:
        if "resource_tracker" not in str(args[-1]):  # a process that removes what is left of shared memory
            note()
        return start(path, args, *rest)

    setattr(multiprocessing.util, start.__name__, noted)


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
