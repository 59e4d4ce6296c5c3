"""The mutants of an implementation for one operator: those that its cases can tell from the right source."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mluops_cli.search.mutation.mutators.source_walk import FunctionLines, Parsed, Region, parse
from mluops_cli.search.mutation.sources import Mutation, SourceModule
from mluops_cli.search.mutation.trial import CaseResult
from schemas.errors import InputError


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutant: its id (file:line:column:kind:number), the changed source, and the cases that run the changed lines.

    mutation None: the implementation impl is the mutant.
    """

    id: str
    file: str
    line: int
    kind: str
    diff: tuple[str, ...]
    mutation: Mutation | None
    cases: frozenset[int]
    impl: str = ""


@dataclass(slots=True)
class Found:
    """The mutants of one operator, and the functions that no case runs: `file:line name`."""

    mutants: list[Mutant] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)


def find_mutants(modules: Sequence[SourceModule], results: Sequence[CaseResult]) -> Found:
    """Make the mutants of some modules; results are those of a traced trial of the right source.

    A module none of whose functions runs is left out. InputError where a module can't be parsed.
    """
    reach = _Reach(results)
    parsed = {module: _parsed(module) for module in modules}
    parsed = {module: found for module, found in parsed.items() if any(map(reach.of(module.file), found.functions))}
    live = _live_regions(parsed, reach)
    found = Found()
    for module, each in parsed.items():
        shown = shown_file(module)
        runs = reach.of(module.file)
        for function in each.functions:
            if not runs(function):
                found.unreached.append(f"{shown}:{function.lines.start} {function.name}")
        found.mutants += _mutants(module, each, shown, reach, live)
    return found


def shown_file(module: SourceModule) -> str:
    """The file's name for people: below the current folder if it is there, otherwise after its module."""
    relative = os.path.relpath(module.file)
    if not relative.startswith(".."):
        return relative
    parents = module.name.split(".")[: None if os.path.basename(module.file) == "__init__.py" else -1]
    return "/".join((*parents, os.path.basename(module.file)))


def _parsed(module: SourceModule) -> Parsed:
    try:
        return parse(module.text)
    except SyntaxError as error:
        raise InputError(f"{module.file}:{error.lineno}: can't be parsed: {error.msg}") from None


class _Reach:
    """Which case runs which line."""

    def __init__(self, results: Sequence[CaseResult]) -> None:
        self.all = frozenset(result.case for result in results)
        self.lines: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.classes: dict[str, set[str]] = defaultdict(set)
        for result in results:
            for file, lines in result.lines.items():
                for line in lines:
                    self.lines[file][line].add(result.case)
            for file, names in result.classes.items():
                self.classes[file].update(names)

    def of(self, file: str) -> _Runs:
        """Whether a function of the file runs in any case."""
        return _Runs(self.lines[file].keys())

    def cases(self, file: str, region: Region) -> frozenset[int]:
        """The cases that run a region; all of them where it runs when the module is loaded."""
        if not region.function:
            return self.all
        return frozenset(case for line in region.lines for case in self.lines[file].get(line, ()))


@dataclass(frozen=True, slots=True)
class _Runs:
    lines: Iterable[int]

    def __call__(self, function: FunctionLines) -> bool:
        return any(line in function.lines for line in self.lines)


def _live_regions(parsed: Mapping[SourceModule, Parsed], reach: _Reach) -> set[tuple[str, Region]]:
    """What runs when the modules are loaded and can matter: (file, region).

    That is what gives a value to a name which a function that runs mentions, or another such region. What a class holds
    matters if one of its methods runs.
    """
    names: set[str] = set()
    waiting: list[tuple[str, Region, frozenset[str]]] = []
    for module, each in parsed.items():
        runs = reach.of(module.file)
        names.update(*(function.names for function in each.functions if runs(function)))
        waiting += [
            (module.file, region, mentioned)
            for region, mentioned in each.mentioned.items()
            if _may_matter(region, each, reach, module.file)
        ]
    live: set[tuple[str, Region]] = set()
    while found := [item for item in waiting if not item[1].names or item[1].names & names]:
        live.update((file, region) for file, region, _ in found)
        names.update(*(mentioned for _, _, mentioned in found))
        waiting = [item for item in waiting if item not in found]
    return live


def _may_matter(region: Region, parsed: Parsed, reach: _Reach, file: str) -> bool:
    if not region.owner or region.owner in reach.classes[file]:
        return True
    methods = [each for each in parsed.functions if each.name.startswith(f"{region.owner}.")]
    return not methods or any(map(reach.of(file), methods))


def _mutants(
    module: SourceModule, parsed: Parsed, shown: str, reach: _Reach, live: set[tuple[str, Region]]
) -> list[Mutant]:
    runs = reach.of(module.file)
    reached = {function.name for function in parsed.functions if runs(function)}
    numbers: Counter[str] = Counter()
    texts = {module.text}
    made: list[Mutant] = []
    for edit, region in sorted(parsed.edits, key=lambda item: (item[0].start, item[0].stop)):
        text = parsed.source.edited(edit)
        line = parsed.source.line(edit.start)
        column = edit.start - parsed.source.data.rfind(b"\n", 0, edit.start)
        name = f"{shown}:{line}:{column}:{edit.kind}"
        numbers[name] += 1  # before anything is left out: an id is the same for every operator and selection
        matters = region.function in reached if region.function else (module.file, region) in live
        if not matters or text in texts or not _compiles(text):
            continue
        texts.add(text)
        made.append(
            Mutant(
                f"{name}:{numbers[name]}",
                shown,
                line,
                edit.kind,
                tuple(parsed.source.diff(text)),
                Mutation(module.name, module.file, text),
                reach.cases(module.file, region),
            )
        )
    return made


def _compiles(text: str) -> bool:
    try:
        compile(text, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
