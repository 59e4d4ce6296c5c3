"""The case that an argument CASE names: by its id, or by a part of it that no other one has."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from schemas.errors import InputError
from schemas.suggest import did_you_mean

_LISTED: Final = 10  # names in a message
_SHOWN: Final = 3  # cases that a part of an id fits


def case_named(text: str, ids: Collection[str], kind: str, of: str) -> str:
    """Return the id that the text names; InputError where there is none, or several.

    kind and of: what is looked for, such as `failing case` and `of this run`.
    """
    if text in ids:
        return text
    found = [name for name in ids if text in name]
    if len(found) == 1:
        return found[0]
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise InputError(f"{text} fits {len(found)} {kind}s: {', '.join(found[:_SHOWN])}{more}; give the whole id")
    names = ids if "/" in text else {name.rpartition("/")[2] for name in ids}
    hint = did_you_mean(text, names)
    if len(names) > _LISTED and not hint.endswith("?"):
        hint = f": expected one of {len(names)}, such as {min(names)}"
    raise InputError(f"no {kind} {of} is called {text}{hint}")
