"""The OPTIONS of `--impl torch` and `triton`: a callable, if one is named, and the device."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from schemas.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from mluops_cli.implementations.on_device.device import Device

KINDS: Final = ("cpu", "cuda", "mlu", "xpu")
_DEVICE: Final = re.compile(rf"({'|'.join(KINDS)})(:\d+)?")
_TARGET: Final = re.compile(r"(?P<target>[^=]+?:[^\W\d][\w.]*)(?:,(?P<rest>.*))?")


def split_target(options: str) -> tuple[str, str]:
    """Split `FILE.py:NAME[,name=value...]` into the callable and the rest; the callable is empty where there is none.

    FILE may have commas and no equals sign.
    """
    found = _TARGET.fullmatch(options)
    return ("", options) if found is None else (found["target"], found["rest"] or "")


def device_named(implementation: str, name: str) -> Device:
    """Return the device; InputError for a name that none has, UnavailableError where the machine lacks it."""
    if not _DEVICE.fullmatch(name):
        kinds = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise InputError(f"{implementation}: device is {name!r}, expected {kinds}, perhaps with a number (cuda:1)")
    if reason := import_problem("torch", "torch"):
        raise UnavailableError(reason)
    from mluops_cli.implementations.on_device.device import Device

    return Device(name)


def devices() -> Iterator[str]:
    """Yield the devices that torch finds here, with the names of those that have one; torch must be installed."""
    torch: Any = importlib.import_module("torch")
    with suppress(Exception):  # not installed, or broken: then there is no mlu
        importlib.import_module("torch_mlu")
    yield "cpu"
    for kind in KINDS[1:]:
        module: Any = getattr(torch, kind, None)
        if module is not None and module.is_available():
            for number in range(module.device_count()):
                yield f"{kind}:{number} ({module.get_device_name(number)})"


def import_problem(module: str, extra: str) -> str | None:
    """Return why a module can't be imported, and which extra brings it; None where it can."""
    try:
        importlib.import_module(module)
    except Exception as error:  # a broken installation raises anything
        text = " ".join(str(error).split())
        return f"can't import {module}: {text} (pip install 'mluops[{extra}]')"
    return None
