"""The bundled cases' data: what tests/fingerprints.json records, however and beside whatever a case is generated."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from generators.casegen.generate import generate
from generators.casegen.manifest import read_manifest
from generators.casegen.write_options import WriteOptions
from generators.contracts.case import Case
from generators.operator_registry import operators
from generators.specs.expansion import expand
from generators.specs.loader import load_spec, spec_files
from mluops_cli.main import main
from schemas.casefiles.reading import read_case
from schemas.errors import InputError
from schemas.version import DATA_VERSION
from tools.fingerprints import Fingerprints, bundled_cases, changed, compute, fingerprint_of, read, rewrite


@pytest.fixture(scope="module")
def found() -> Fingerprints:
    """The fingerprints of all bundled cases, made in a shuffled order by two processes."""
    cases = bundled_cases()
    return compute(random.Random(5).sample(cases, len(cases)))


def gen(*arguments: object) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["gen", *map(str, arguments)])
    assert stop.value.code == 0


def generated(folder: Path) -> Fingerprints:
    """The fingerprints of a folder that `mluops gen` made."""
    inputs = {op: len(operator.contract.inputs) for op, operator in operators().items()}
    entries = read_manifest(folder)
    return {case: fingerprint_of(entry, inputs[case.split("/")[0]]) for case, entry in entries.items()}


def test_no_bundled_case_changed_unnoticed(found: Fingerprints) -> None:
    data_version, recorded = read()
    told = "python -m tools.fingerprints records them; a changed case demands another DATA_VERSION"
    assert list(changed(recorded, found)) == [], told
    assert recorded.keys() == found.keys(), told
    assert data_version == DATA_VERSION


@pytest.mark.parametrize(("suites", "jobs"), [("demo", 1), ("demo,nan_inf,zero_element", 2)])
def test_d1_suites_and_jobs_change_no_data(tmp_path: Path, found: Fingerprints, suites: str, jobs: int) -> None:
    gen("--suite", suites, "--out", tmp_path, "-j", jobs)
    made = generated(tmp_path)
    assert {case.split("/")[0] for case in made} == set(operators())
    assert {case.split("/")[1] for case in made} == set(suites.split(","))
    assert list(changed(found, made)) == []


@pytest.mark.parametrize("op", sorted(operators()))
def test_d1_a_case_alone_has_the_same_data(tmp_path: Path, found: Fingerprints, op: str) -> None:
    (path,) = spec_files(op)
    spec = load_spec(path)
    for entry in spec.suites["demo"]:
        for case in expand(replace(spec, suites={"demo": [entry]})):
            made = fingerprint_of(generate(case, WriteOptions(tmp_path)), len(case.inputs))
            assert made == found[case.id]


def test_files_and_manifest_tell_the_data_version(tmp_path: Path) -> None:
    gen("psamask_forward", "--suite", "demo", "--out", tmp_path / "a", "-j", 1)
    gen("--from", tmp_path / "a", "--out", tmp_path / "b", "-j", 1)
    for folder in (tmp_path / "a", tmp_path / "b"):
        entries = read_manifest(folder)
        assert entries
        assert {entry["data_version"] for entry in entries.values()} == {DATA_VERSION}
        for path in folder.rglob("*.pb"):
            with read_case(path) as file:
                assert file.meta is not None
                assert file.meta.data_version == DATA_VERSION


def test_changed_cases_are_recorded_under_another_data_version_only(tmp_path: Path) -> None:
    path = tmp_path / "fingerprints.json"
    rewrite({"a": ["1", "2", "3"], "b": ["1", "2", "3"]}, path, 4)
    rewrite({"a": ["1", "2", "3"], "c": ["7", "7", "7"]}, path, 4)  # a case more, a case less: nothing changed
    with pytest.raises(InputError, match=r"a: other inputs, baseline\n1 cases changed: raise DATA_VERSION .* above 4"):
        rewrite({"a": ["1", "8", "9"]}, path, 4)
    assert read(path) == (4, {"a": ["1", "2", "3"], "c": ["7", "7", "7"]})
    rewrite({"a": ["1", "8", "9"]}, path, 5)
    assert read(path) == (5, {"a": ["1", "8", "9"]})


def test_a_changed_seed_parameter_or_distribution_shows(tmp_path: Path, found: Fingerprints) -> None:
    case = next(case for case in bundled_cases() if case.id == "psamask_forward/demo/square_collect")
    (plan,) = case.inputs
    assert plan.values is not None
    others: list[Case] = [
        replace(case, seed=2),
        replace(case, params={**case.params, "psa_type": 1}),
        replace(case, inputs=(replace(plan, values=replace(plan.values, nan=0.5)),)),
    ]
    made = [{case.id: fingerprint_of(generate(other, WriteOptions(tmp_path)), 1)} for other in others]
    differences = [next(changed(found, each)).split(": other ")[1] for each in made]
    assert differences == ["inputs, baseline", "parameters, baseline", "inputs, baseline"]
