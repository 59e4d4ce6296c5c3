"""The marker `mluops`: the cases that it names, and a test for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import pytest

from generators.contracts.case import Case
from generators.specs.fields import Model, Seed, word
from generators.specs.mistakes import mistakes
from generators.specs.selection import LARGE_SUITE, select_cases, small_suites
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.discovery import open_case
from mluops_cli.execution.case.case_run import prepare
from mluops_cli.pytest_plugin import MARKER
from mluops_cli.pytest_plugin.case_in_test import MluopsCase
from mluops_cli.search.case_making import write_case
from schemas.errors import InputError, MluopsError

Several = str | Path | Sequence[str | Path]
_FIXTURE: Final = "mluops_case"
_WORD: Final = re.compile(r"[^\W\d_]\w*(-\w+)*")
# A suite or a tag of such a name would change how pytest runs the test.
_ACTING: Final = frozenset({"skip", "skipif", "xfail", "parametrize", "usefixtures", "filterwarnings", MARKER})


class _Arguments(Model):
    """The types of the marker's arguments."""

    operators: list[Annotated[str, word("the name of an operator")]]
    suite: Annotated[Several | None, word("a word or a list of them")]
    spec: Annotated[Several | None, word("a path or a list of them")]
    seed: Seed
    options: Annotated[str, word("one text such as '--bound fail'")]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A case that a marker names, and the options that judge it."""

    case: Case
    options: CaseOptions


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make a test per case. The collection fails for a wrong marker, and for one on a function without the fixture.

    Of the markers of the function, its class and its module the nearest count; several in one place add up.
    """
    found = list(metafunc.definition.iter_markers_with_node(MARKER))
    nearest, _ = found[0]
    if _FIXTURE not in metafunc.fixturenames:
        if nearest is metafunc.definition:  # that of a class or module is for those of its tests that take the fixture
            pytest.fail(f"a test with @pytest.mark.{MARKER} takes the fixture {_FIXTURE}", pytrace=False)
        return
    chosen: dict[str, Chosen] = {}
    for node, mark in found:
        if node is nearest:
            for each in _chosen(mark, metafunc.definition.path.parent):
                chosen.setdefault(each.case.id, each)
    config = metafunc.config
    parameters = [
        pytest.param(each, id=case, marks=marks_of(config, each.case.suite, each.case.tags))
        for case, each in chosen.items()
    ]
    metafunc.parametrize(_FIXTURE, parameters, indirect=True)


def _chosen(mark: pytest.Mark, folder: Path) -> list[Chosen]:
    """The cases of one marker, at least one."""
    try:
        found = list(_named(folder, *mark.args, **mark.kwargs))
    except TypeError as error:  # an argument that it doesn't have
        raise _failure(str(error).replace("_named()", "it")) from None
    except MluopsError as error:
        raise _failure(str(error)) from None
    if not found:
        given = [*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())]
        raise _failure(f"({', '.join(given)}) selects no case")
    return found


def _failure(text: str) -> BaseException:
    """What ends the collection of a module whose marker is wrong, with one message."""
    return pytest.fail.Exception(f"@pytest.mark.{MARKER}: {text}", pytrace=False)


def _named(
    folder: Path,
    *operators: str,
    suite: Several | None = None,
    spec: Several | None = None,
    seed: int = 1,
    options: str = "",
) -> Iterator[Chosen]:
    """The cases of a marker with these arguments; without suite those of all suites but the large one."""
    given = {"operators": list(operators), "suite": suite, "spec": spec, "seed": seed, "options": options}
    if wrong := list(mistakes(_Arguments, given)):
        raise InputError("; ".join(f"{each.path[0]}: {each.message}" for each in wrong))
    judged = CaseOptions()
    if options:
        from mluops_cli.pytest_plugin.judging_options import judging_options  # here: it imports click

        judged = judging_options(options)  # first: it may name a file with operators
    suites = {word.strip() for text in _several(suite) for word in str(text).split(",")} - {""}
    specs = [folder / each for each in _several(spec)]
    for case in select_cases(operators, suites, specs, seed):
        if suites or case.suite != LARGE_SUITE:
            yield Chosen(case, judged)


def _several(given: Several | None) -> Sequence[str | Path]:
    if given is None:
        return ()
    return (given,) if isinstance(given, (str, Path)) else given


def marks_of(config: pytest.Config, suite: str, tags: Sequence[str]) -> list[pytest.MarkDecorator]:
    """The suite and the tags of a case as markers, so that -m selects by them; --strict-markers knows them.

    Those that are no words, or that pytest acts on, are left out.
    """
    if _KNOWN not in config.stash:
        config.stash[_KNOWN] = set()
        if config.getoption("markexpr"):  # it may name a suite that no collected case is of
            for name in sorted({LARGE_SUITE, *small_suites()}):
                _register(config, name)
    words = [name for name in dict.fromkeys((suite, *tags)) if name not in _ACTING and _WORD.fullmatch(name)]
    for name in words:
        _register(config, name)
    return [getattr(pytest.mark, name) for name in words]


def _register(config: pytest.Config, name: str) -> None:
    if name not in config.stash[_KNOWN]:
        config.stash[_KNOWN].add(name)
        config.addinivalue_line("markers", f"{name}: cases of this suite or with this tag (mluops)")


_KNOWN: Final = pytest.StashKey[set[str]]()


@contextmanager
def opened(chosen: Chosen, folder: Path) -> Iterator[MluopsCase]:
    """Make the case for the block, its files below the folder; where that fails, the test ends with one message."""
    files: Sequence[str] = ()
    try:
        try:
            planned = write_case(chosen.case, folder)
            files = planned.files
            file = open_case(planned)
            prepared = prepare(file, chosen.options)
        except MluopsError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        with file:
            yield MluopsCase(planned, prepared, chosen.options)
    finally:
        for each in files:
            Path(each).unlink(missing_ok=True)
