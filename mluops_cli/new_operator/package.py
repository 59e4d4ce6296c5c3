"""The files of a package for a new operator, out of its contract and suites, written as a whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from generators.contracts.model import Contract
from mluops_cli.new_operator.source import Code, source
from mluops_cli.new_operator.suites import SmallCall, suite_lines
from schemas.atomic_files import write_failure
from schemas.errors import InputError
from schemas.status import SUCCESS

_FILES: Final = {  # path -> template
    "README.md": "README.md.j2",
    "Makefile": "Makefile.j2",
    "pyproject.toml": "pyproject.toml.j2",
    ".gitignore": "gitignore.j2",
    "{package}/__init__.py": "init.py.j2",
    "{package}/operators.py": "operators.py.j2",
    "{package}/implementation.py": "implementation.py.j2",
    "{package}/{op}.yaml": "suites.yaml.j2",
    "{package}/{op}.md": "definition.md.j2",
    "tests/this_operator.py": "this_operator.py.j2",
    "tests/test_reference.py": "test_reference.py.j2",
    "tests/test_implementation.py": "test_implementation.py.j2",
}


@dataclass(frozen=True, slots=True)
class NewOperator:
    """What a package is made of.

    network: the lines of the suite of that name. value_files: path beside the spec -> content. cases: how many given
    cases the contract comes from, 0: none. notes: what is to be looked at.
    """

    contract: Contract
    call: SmallCall
    network: Sequence[str]
    value_files: Mapping[str, bytes]
    cases: int
    notes: Sequence[str]

    @property
    def package(self) -> str:
        """The name of the Python package: never that of a module of something else."""
        return f"mluops_{self.contract.op}"


def package_files(new: NewOperator) -> dict[str, bytes]:
    """The files of the package: path -> content."""
    contract, words = new.contract, {"op": new.contract.op, "package": new.package}
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["quoted"] = source
    given = {
        **words,
        "camel": "".join(word.capitalize() for word in contract.op.split("_")),
        "imports": sorted(["Arrays", "Env", "Operator", *_classes(contract)]),
        "contract_source": source(contract, indent=4, before=len("contract = ")),
        "tensors": list(_tensors(contract)),
        "ranges": list(_ranges(contract)),
        "unpacked": list(_unpacked(contract)),
        "refused_zeros": list(_refused_zeros(contract)),
        "suites": {
            suite: "".join(f"\n{line}" for line in lines) or " []"
            for suite, lines in {"network": new.network, **suite_lines(contract, new.call)}.items()
        },
        "given": bool(new.cases),
        "origin": f" from {new.cases} case{'s' if new.cases > 1 else ''}" if new.cases else "",
        "notes": new.notes,
    }
    files = {
        path.format(**words): environment.get_template(template).render(given).encode()
        for path, template in _FILES.items()
    }
    return files | {f"{new.package}/{path}": content for path, content in new.value_files.items()}


def write_package(target: Path, files: Mapping[str, bytes]) -> None:
    """Write all files below a new folder: InputError where it exists, UnavailableError where writing fails.

    The folder appears as a whole.
    """
    if os.path.lexists(target):
        raise InputError(f"{target} exists, expected a new folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        making = Path(mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            for path, content in files.items():
                (making / path).parent.mkdir(parents=True, exist_ok=True)
                (making / path).write_bytes(content)
            making.chmod(0o755)
            os.replace(making, target)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    except OSError as error:
        raise write_failure(target, error) from error


def _classes(contract: Contract) -> set[str]:
    """The classes of `generators` that the source of a contract names."""
    found = {"Contract", "TensorSpec"}
    found |= {"Criterion"} if any(tensor.criteria for tensor in contract.outputs) else set()
    return found | ({"Parameter"} if contract.parameters else set())


# ---- the checks of the implementation: written out, so that it shares nothing with the contract ----


def _ranges(contract: Contract) -> Iterator[str]:
    """The conditions under which a parameter is refused."""
    for parameter in contract.parameters:
        if parameter.minimum is not None:
            yield f"params[{source(parameter.name)}] < {parameter.minimum}"


def _unpacked(contract: Contract) -> Iterator[tuple[str, str]]:
    """Of each tensor that gives a size: the names that its dims are bound to, and its name."""
    known: set[str] = set()
    for tensor in contract.tensors.values():
        words = tensor.shape.split()
        new = [word if word in contract.sizes and word not in known else "_" for word in words]
        known |= set(new)
        if set(new) - {"_"}:
            yield (", ".join(new) if len(new) > 1 else _tuple(new)), tensor.name


def _refused_zeros(contract: Contract) -> Iterator[tuple[str, str]]:
    """Each status that a size of 0 is answered with, and a tuple of those sizes."""
    for status in dict.fromkeys(contract.zero_elements.values()):
        if status != SUCCESS:
            yield status, _tuple([size for size, answer in contract.zero_elements.items() if answer == status])


def _tuple(words: Sequence[str]) -> str:
    return f"({', '.join(words)}{',' if len(words) == 1 else ''})"


def _tensors(contract: Contract) -> Iterator[tuple[str, str]]:
    """The name of each tensor, and the dtypes, layout and dims that it must have."""
    parameters = {parameter.name for parameter in contract.parameters}
    for tensor in contract.tensors.values():
        leader = tensor.same_dtype_as
        dtypes = tensor.dtypes if leader is None else (Code(f"given[{source(leader)}].dtype"),)
        dims = tuple(Code(f"params[{source(word)}]" if word in parameters else word) for word in tensor.shape.split())
        name = source(tensor.name)
        yield name, source((dtypes, tensor.layout, dims), indent=8, before=len(name) + 2, after=1)
