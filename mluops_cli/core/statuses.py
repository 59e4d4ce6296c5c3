"""The statuses of a case, the exit codes of commands and the signals that end them, each stated once."""

from __future__ import annotations

from typing import Final, Literal

from schemas.errors import InputError, MluopsError

Status = Literal["pass", "fail", "error", "crash", "timeout", "skip", "empty", "mistrusted", "waived", "xpass"]
Blame = Literal["implementation", "case", "tool"]

# All statuses, the worst first: the order in which reports list them.
STATUSES: Final[tuple[str, ...]] = (
    "fail", "crash", "timeout", "error", "xpass", "mistrusted", "waived", "skip", "empty", "pass",
)  # fmt: skip
FAILING: Final[frozenset[str]] = frozenset({"fail", "error", "crash", "timeout", "xpass"})
PASSING: Final[frozenset[str]] = frozenset({"pass", "empty"})  # of these, one at least makes a run a pass

PASSED: Final = 0
FAILED: Final = 1  # a case failed, a check found something, or nothing was validated
WRONG_INPUT: Final = InputError.exit_code  # the command, a spec or a case file is wrong
OUR_FAILURE: Final = MluopsError.exit_code  # mluops or the machine failed
NOTHING_SELECTED: Final = 5
INTERRUPTED: Final = 130  # Ctrl-C and the signals that ask a program to end
BROKEN_PIPE: Final = 141  # the reader of standard output is gone

EXIT_CODE_OF_BLAME: Final[dict[str | None, int]] = {"case": WRONG_INPUT, "tool": OUR_FAILURE}
