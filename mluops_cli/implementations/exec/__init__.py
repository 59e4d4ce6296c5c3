"""`--impl exec:COMMAND`: a program in any language (docs/exec.md).

In the command `{dir}` stands for a folder with a raw file per tensor, `{case}` for a case file and `{out}` for the file
that the program writes. Exit code 0 is SUCCESS, 64 + n the operator status n; any other end of the program is a crash.
"""

from __future__ import annotations

import os
import shlex
import shutil
from contextlib import ExitStack
from typing import ClassVar, Final

from generators.contracts.faults import CALL_FAULTS
from mluops_cli.implementations.base import (
    AdapterError,
    Call,
    CannotShow,
    Implementation,
    Outcome,
    OutOfBounds,
    adapter_errors,
)
from mluops_cli.implementations.exec import files, folder
from mluops_cli.implementations.exec.input_hashes import InputHashes
from mluops_cli.implementations.exec.program import run_program
from mluops_cli.processes.scratch_dir import scratch_directory, sweep
from schemas.errors import InputError, UnavailableError
from schemas.status import SUCCESS

_PLACEHOLDERS: Final = ("{dir}", "{case}", "{out}")


class Exec(Implementation):
    """A command that is run once per call, without a shell."""

    name: ClassVar[str] = "exec"
    needs: ClassVar[str] = "a command with {dir}, or with {case} and {out}"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        try:
            self.command = shlex.split(options)
        except ValueError as error:
            raise InputError(f"exec: the command can't be split into words: {error}: {options}") from None
        used = {word for word in _PLACEHOLDERS if word in options}
        if used not in ({"{dir}"}, {"{case}", "{out}"}):
            found = f"it has {', '.join(sorted(used))}" if used else "it has none of them"
            raise InputError(f"exec: a command has {{dir}}, or {{case}} and {{out}}: {found}: {options!r}")
        self.exchange = folder if "{dir}" in used else files
        program = shutil.which(self.command[0])
        if program is None:
            is_file = os.path.isfile(self.command[0])
            problem = (
                f"{self.command[0]!r} is not executable" if is_file else f"there is no program {self.command[0]!r}"
            )
            raise InputError(f"exec: {problem}")
        self.command[0] = program
        sweep()

    def call(self, call: Call) -> Outcome:
        """Write what the program reads, run it, read what it wrote.

        CannotShow for a fault that no program sees, Crashed where the program ends in another way than with an answer,
        OutOfBounds where it changed its inputs or the size of an output, BadAnswer for results without a meaning,
        AdapterError where its files can't be written.
        """
        refuse_unshown(call)
        with ExitStack() as stack:
            with adapter_errors("exec: can't write the program's files"):
                scratch = stack.enter_context(scratch_directory())
                paths = self.exchange.write(call, scratch)
                hashes = InputHashes(self.exchange.read_only(call, scratch))
            status = run_program([_filled(word, paths) for word in self.command])
            if changed := hashes.changed():
                raise OutOfBounds(f"{changed} was changed")
            if status != SUCCESS:
                return Outcome(status)
            try:
                outcome: Outcome = self.exchange.read(call, scratch, status)
            except UnavailableError as error:  # this process can open no more files
                raise AdapterError(f"exec: can't read what the program wrote: {error}") from error
            return outcome


def refuse_unshown(call: Call) -> None:
    """CannotShow for a fault of the call that no file tells a program."""
    for fault in call.faults:
        if fault.kind in CALL_FAULTS or fault.of_size_query:
            raise CannotShow(f"exec: a program can't be shown the fault {fault}")


def _filled(word: str, paths: dict[str, str]) -> str:
    for name, path in paths.items():
        word = word.replace("{" + name + "}", path)
    return word
