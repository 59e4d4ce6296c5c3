"""Syntax errors of YAML in words about the file, with the line that they are in."""

from __future__ import annotations

from typing import Any, Final

import yaml

from schemas.errors import InputError, SourceLocation

_LINE_WIDTH: Final = 100  # characters of a line that an error shows
# libyaml's messages, and ours; {line} is where the mapping, list or quote began.
_SYNTAX: Final = {
    "did not find expected key": "this line is indented unlike the keys of the mapping that starts in line {line}",
    "did not find expected '-' indicator": "this line is indented unlike the list that starts in line {line}",
    "mapping values are not allowed in this context": "a key can't stand here: is it indented too far, or is a text "
    "with a colon not in quotes?",
    "block sequence entries are not allowed in this context": "a list can't start here: put it into the next line",
    "could not find expected ':'": "a key without a colon: expected `key: value`",
    "did not find expected ',' or ']'": "the list that starts in line {line} isn't closed: expected , or ]",
    "did not find expected ',' or '}'": "the mapping that starts in line {line} isn't closed: expected , or }}",
    "found unexpected end of stream": "the quote that opens in line {line} isn't closed",
    "found character that cannot start any token": "a value can't start with this character: put it in quotes",
}


def syntax_error(file: str, text: str, error: yaml.MarkedYAMLError) -> InputError:
    """A syntax error in our words, with the line of the file and a caret below the place."""
    mark: Any = error.problem_mark or error.context_mark
    if mark is None:
        return InputError(str(error.problem), SourceLocation(file))
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    before, rest = line[: mark.column], line[mark.column :]
    opened = error.context_mark.line + 1 if error.context_mark else mark.line + 1
    problem = str(error.problem)
    message = _SYNTAX[problem].format(line=opened) if problem in _SYNTAX else problem
    if rest.startswith("\t") or (before.endswith("\t") and not before.strip()):
        message = "found a tab, expected spaces"
    start = max(0, mark.column - _LINE_WIDTH // 2)
    shown = line[start : start + _LINE_WIDTH].replace("\t", " ")
    caret = f"\n    {shown}\n    {' ' * (mark.column - start)}^" if line.strip() else ""
    return InputError(f"{message}{caret}", SourceLocation(file, mark.line + 1, mark.column + 1))
