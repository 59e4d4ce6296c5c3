"""`--impl exec:COMMAND`: a program in any language (docs/exec.md).

`{case}` and `{out}` in the command are the case file and the file that the program writes, `{dir}` a folder with a raw
file per tensor. Exit code 0 is SUCCESS, 64+n the operator status n; any other end of the program is a crash.
"""

from __future__ import annotations

import shlex
import shutil
from typing import ClassVar, Final

from generators.contracts.faults import NULL_HANDLE, NULL_WORKSPACE_SIZE, WORKSPACE_NULL, WORKSPACE_SHORT
from mluops_cli.implementations.base import Call, CannotShow, Implementation, Outcome, OutOfBounds
from mluops_cli.implementations.exec import files, folder
from mluops_cli.implementations.exec.input_hashes import Given
from mluops_cli.implementations.exec.program import run_program
from mluops_cli.processes.scratch_dir import scratch_directory, sweep
from schemas.errors import InputError, UnavailableError
from schemas.status import SUCCESS

# Faults that no program can be shown.
_HIDDEN: Final = (NULL_HANDLE, NULL_WORKSPACE_SIZE, WORKSPACE_NULL, WORKSPACE_SHORT)


class Exec(Implementation):
    """A command that is run once per call, without a shell."""

    name: ClassVar[str] = "exec"
    needs = "a command with {dir}, or with {case} and {out}"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        try:
            self.command = shlex.split(options)
        except ValueError as error:
            raise InputError(f"exec: the command can't be split into words: {error}: {options}") from None
        given = {word for word in ("{dir}", "{case}", "{out}") if word in options}
        if given not in ({"{dir}"}, {"{case}", "{out}"}):
            found = f"it has {', '.join(sorted(given))}" if given else "it has none of them"
            raise InputError(f"exec: a command has {{dir}}, or {{case}} and {{out}}: {found}: {options!r}")
        self.exchange = folder if "{dir}" in given else files
        program = shutil.which(self.command[0])
        if program is None:
            raise UnavailableError(f"exec: there is no program {self.command[0]!r}")
        self.command[0] = program
        sweep()

    def call(self, call: Call) -> Outcome:
        """Write what the program reads, run it, read what it wrote; Crashed where it ended by itself otherwise.

        OutOfBounds where it wrote to what it was to read, or more than an output; BadAnswer for what it tells.
        """
        hidden = next((fault for fault in call.faults if fault in _HIDDEN), None)
        if hidden is not None:
            raise CannotShow(f"exec: a program can't be shown the fault {hidden}")
        with scratch_directory() as room:
            places = self.exchange.write(call, room)
            given = Given(self.exchange.given(call, room))
            status = run_program([_filled(word, places) for word in self.command])
            if changed := given.changed():
                raise OutOfBounds(f"{changed} was changed")
            return self.exchange.read(call, room, status) if status == SUCCESS else Outcome(status)


def _filled(word: str, places: dict[str, str]) -> str:
    for name, path in places.items():
        word = word.replace("{" + name + "}", path)
    return word
