"""The OPTIONS of `--impl NAME:OPTIONS` where they are `name=value,name=value`."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.errors import InputError
from schemas.suggest import did_you_mean


def named_options(implementation: str, text: str, defaults: Mapping[str, str]) -> dict[str, str]:
    """The value of every option, the default where it isn't given; InputError for another name, or one given twice."""
    given: dict[str, str] = {}
    for option in filter(None, text.split(",")):
        name, _, value = (part.strip() for part in option.partition("="))
        if name not in defaults:
            raise InputError(f"{implementation} has no option {name!r}{did_you_mean(name, defaults)}")
        if name in given:
            raise InputError(f"{implementation}: option {name} is given twice")
        given[name] = value
    return {**defaults, **given}
