"""Fingerprints of the bundled cases: `python -m tools.fingerprints` writes tests/fingerprints.json.

A fingerprint is three hashes: of the case's parameters and tensors, of its inputs, of its baseline. A case of the
network suite is too large to be made here: its second hash is of how its inputs are sampled, and the third is empty.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import xxhash

from generators.casegen.generate import generate
from generators.casegen.node import recipe
from generators.casegen.write_options import WriteOptions
from generators.contracts.case import Case
from generators.operator_registry import operators
from generators.specs.expansion import expand_operator
from generators.specs.selection import LARGE_SUITE
from schemas.errors import InputError
from schemas.version import DATA_VERSION

PATH: Final = Path(__file__).resolve().parent.parent / "tests" / "fingerprints.json"

Fingerprint = list[str]
Fingerprints = dict[str, Fingerprint]


def bundled_cases() -> list[Case]:
    """Every case of the built-in specs."""
    return [case for op in sorted(operators()) for case in expand_operator(op)]


def compute(cases: Sequence[Case], jobs: int = 2) -> Fingerprints:
    """Case id -> fingerprint, in the order of ids."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(jobs, context) as pool:
        made = list(pool.map(partial(_fingerprint, out=Path(folder)), cases, chunksize=16))
    return dict(sorted(zip((case.id for case in cases), made, strict=True)))


def _fingerprint(case: Case, out: Path) -> Fingerprint:
    if case.suite == LARGE_SUITE:
        described = [(plan.name, plan.dtype, plan.dims) for plan in case.plans]
        sampled = [(plan.name, recipe(plan)) for plan in case.inputs]
        return [_hash([sorted(case.params.items()), described]), _hash([case.seed, sampled]), ""]
    return fingerprint_of(generate(case, WriteOptions(out, inline_limit=1 << 40)), len(case.inputs))


def fingerprint_of(entry: Mapping[str, Any], inputs: int) -> Fingerprint:
    """The fingerprint of a case from its entry in a manifest; inputs: how many of its tensors are inputs."""
    tensors = entry["tensors"]
    described = [{key: value for key, value in tensor.items() if key != "hash"} for tensor in tensors]
    hashes = [tensor.get("hash") for tensor in tensors]
    return [_hash([entry["params"], entry["faults"], described]), _hash(hashes[:inputs]), _hash(hashes[inputs:])]


def _hash(value: Any) -> str:
    return xxhash.xxh3_64_hexdigest(json.dumps(value, sort_keys=True).encode())


def read(path: Path = PATH) -> tuple[int, Fingerprints]:
    """The data version that the recorded fingerprints were made at, and the fingerprints."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return data["data_version"], data["cases"]


def changed(recorded: Mapping[str, Fingerprint], found: Mapping[str, Fingerprint]) -> Iterator[str]:
    """A line per case that is recorded with another fingerprint: its id and what differs."""
    words = ("parameters", "inputs", "baseline")
    for case in sorted(recorded.keys() & found.keys()):
        pairs = zip(words, recorded[case], found[case], strict=True)
        different = [word for word, old, new in pairs if old != new]
        if different:
            yield f"{case}: other {', '.join(different)}"


def text(found: Mapping[str, Fingerprint], data_version: int) -> str:
    """The file's content: a line per case."""
    lines = ",\n".join(f"{json.dumps(case)}: {json.dumps(found[case])}" for case in sorted(found))
    return f'{{"data_version": {data_version}, "cases": {{\n{lines}\n}}}}\n'


def rewrite(found: Mapping[str, Fingerprint], path: Path = PATH, data_version: int = DATA_VERSION) -> None:
    """Record the fingerprints; InputError where cases changed and the data version was not raised."""
    if path.exists():
        old, recorded = read(path)
        lines = list(changed(recorded, found))
        if lines and data_version <= old:
            listed = "\n".join(lines)
            raise InputError(
                f"{listed}\n{len(lines)} cases changed: raise DATA_VERSION in schemas/version.py above {old}"
            )
    path.write_text(text(found, data_version), encoding="utf-8")


if __name__ == "__main__":
    try:
        rewrite(compute(bundled_cases()))
    except InputError as error:
        sys.exit(str(error))
