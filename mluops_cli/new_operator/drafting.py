"""From the name of an operator, and case files of it, to what its package is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from generators.contract_mistakes import OPERATOR_NAME, check_contract
from generators.contracts.model import Contract, TensorSpec
from generators.contracts.operator import Arrays, Operator
from generators.importing.casefiles import read_dump
from generators.importing.draft import CaseDraft, Note
from generators.importing.inferred_contract import COMPOSITE, category_of, contract_of_cases
from generators.importing.inferred_parameters import parameters_of_message
from generators.importing.specs import spec_of
from generators.operator_registry import operators
from generators.parameters import Env
from generators.specs.yaml_writing import entry_lines
from mluops_cli.core.discovery import find_case_files
from mluops_cli.implementations.registry import is_implementation
from mluops_cli.new_operator.package import NewOperator
from mluops_cli.new_operator.suites import small_call
from schemas.errors import InputError
from schemas.path_names import check_name
from schemas.status import BAD_PARAM

_EXAMPLE: Final = {"N": 512, "C": 1024}  # sizes of the first entry of suite network, without case files


def check_new_name(name: str) -> None:
    """InputError where an operator or its implementation can't have the name, or one has it already."""
    if not OPERATOR_NAME.fullmatch(name):
        raise InputError(f"the name is {name!r:.80}, expected a word of a-z 0-9 _ that begins with a letter")
    check_name(name, "operator")
    if name in operators():
        raise InputError(f"{name} is an operator of mluops already: `mluops docs {name}` describes it")
    if is_implementation(name):
        raise InputError(f"{name} is the name of an implementation (`mluops implementations`), expected another one")


def new_operator(name: str, sources: Sequence[Path], enum_numbering: str) -> NewOperator:
    """What the package of an operator is made of; sources are case files of it and folders of them.

    InputError where one can't be read, is of another operator, or has no contract in common with the others.
    """
    notes: Counter[str] = Counter()

    def note(text: str) -> None:
        notes[text] += 1

    drafts = _drafts(name, sources, enum_numbering, note)
    contract = contract_of_cases(name, drafts, note) if drafts else _example(name, note)
    check_contract(_operator(contract))
    call = small_call(contract, [draft.params for draft in drafts])
    if not drafts:
        network = list(entry_lines("large", {"sizes": _EXAMPLE, **({"params": call.params} if call.params else {})}))
        return NewOperator(contract, call, network, {}, 0, list(notes))
    spec = spec_of(name, drafts, _operator(contract), note, "network")
    network = spec.body if spec.entries else []
    return NewOperator(contract, call, network, spec.files, spec.cases, [*notes, *spec.left_out, *spec.errors])


def _drafts(name: str, sources: Sequence[Path], enum_numbering: str, note: Note) -> list[CaseDraft]:
    """The legal cases of the files, at least one where there are sources."""
    drafts: list[CaseDraft] = []
    for path, _ in find_case_files(sources):
        imported = read_dump(path, path.name, enum_numbering)
        for text in imported.notes:
            note(text)
        drafts += imported.drafts
    for draft in drafts:
        if draft.op != drafts[0].op:
            text = f"{draft.place} is of {draft.op}, {drafts[0].place} of {drafts[0].op}"
            raise InputError(f"case files of two operators: {text}")
        if draft.op != name:
            raise InputError(f"{draft.place}: the operator is {draft.op}, expected {name}")
    legal = [draft for draft in drafts if not draft.illegal]
    if len(legal) < len(drafts):
        note(f"{len(drafts) - len(legal)} of {len(drafts)} cases are illegal by their metadata: they are not used")
    if sources and not legal:
        raise InputError(f"no case file of a legal call of {name} in {', '.join(map(str, sources))}")
    return legal


def _example(name: str, note: Note) -> Contract:
    """A contract to begin with: one input, one output, and the parameters that the interface has for the name."""
    y = TensorSpec("y", ("float",), "ARRAY", "N C", criteria=COMPOSITE)
    return Contract(
        op=name,
        category=category_of([y]),
        inputs=(TensorSpec("x", ("float",), "ARRAY", "N C", values={"uniform": [-1, 1]}),),
        outputs=(y,),
        parameters=tuple(parameters_of_message(f"{name}_param", note)),
        zero_elements={"N": BAD_PARAM, "C": BAD_PARAM},
    )


def _operator(contract: Contract) -> Operator:
    """An operator without a reference kernel."""
    drafted = _Drafted()
    drafted.contract = contract  # type: ignore[misc]  # elsewhere one of the class
    return drafted


class _Drafted(Operator):
    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        raise NotImplementedError("this operator is a draft")
