"""The operators' status codes, as the public C API numbers them."""

from __future__ import annotations

from typing import Final

from schemas.errors import InputError

STATUS_NUMBERS: Final[dict[str, int]] = {
    "SUCCESS": 0,
    "NOT_INITIALIZED": 1,
    "ALLOC_FAILED": 2,
    "BAD_PARAM": 3,
    "INTERNAL_ERROR": 4,
    "ARCH_MISMATCH": 5,
    "EXECUTION_FAILED": 6,
    "NOT_SUPPORTED": 7,
    "NUMERICAL_OVERFLOW": 8,
}
STATUS_NAMES: Final[dict[int, str]] = {number: name for name, number in STATUS_NUMBERS.items()}

PREFIX: Final = "MLUOP_STATUS_"  # of the names in the C API

SUCCESS: Final = "SUCCESS"
BAD_PARAM: Final = "BAD_PARAM"
NOT_SUPPORTED: Final = "NOT_SUPPORTED"


def status_name(status: int | str) -> str:
    """The name of a status given as a number or a name; InputError where it is neither."""
    if isinstance(status, str):
        name = status.removeprefix(PREFIX).upper()
        if name in STATUS_NUMBERS:
            return name
    elif not isinstance(status, bool) and int(status) in STATUS_NAMES:
        return STATUS_NAMES[int(status)]
    raise InputError(f"unknown operator status {status!r}: expected one of {', '.join(STATUS_NUMBERS)} or its number")
