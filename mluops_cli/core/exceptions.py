"""What an exception says, for a record."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Final

_REASON: Final = 2000  # characters of an error's text that go into a record


def describe(raised: BaseException) -> str:
    """Type, text and last line of an exception, however hostile its text is."""
    kind = type(raised).__name__
    text = _attempt(lambda: str(raised), "an exception without a readable text")
    text = text if len(text) <= _REASON else text[:_REASON] + " ..."
    frames = _attempt(lambda: traceback.extract_tb(raised.__traceback__), [])
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{kind}: {text}{where}" if text else f"{kind}{where}"


def _attempt(ask: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return ask()
    except BaseException:
        return otherwise
