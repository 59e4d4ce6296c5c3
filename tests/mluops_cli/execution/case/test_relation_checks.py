"""--relations: right kernels keep all of them, and each planted fault breaks the ones that it should."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.operator_registry import operators
from generators.specs.expansion import expand_operator
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case.case_run import prepare, run_case
from mluops_cli.execution.case.relation_checks import check_relations
from mluops_cli.implementations.python import Python
from mluops_cli.implementations.tiled import Tiled
from schemas.casefiles.reading import read_case

PLUGIN = Path(__file__).parent / "related.py"
VOXELS, ROIS, GRADIENTS, MASK, COLUMNS, PAIRS = (
    "voxel_pooling_forward/general/batches_batch_size7",
    "roi_crop_forward/general/rois_per_image_n6",
    "roi_crop_backward/general/rois_per_image_n6",
    "psamask_forward/general/h65_collect",
    "masked_im2col_forward/general/channels_c3_float",
    "get_indice_pairs/general/batches_batch7",
)
Cases = Callable[[str], Path]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """The file of a generated case, by its id."""
    out = tmp_path_factory.mktemp("cases")

    def file(case_id: str) -> Path:
        path = out / f"{case_id}.pb"
        if not path.exists():
            op, suite, name = case_id.split("/")
            (case,) = (each for each in expand_operator(op, {suite}) if each.name == name)
            generate(case, WriteOptions(out))
        return path

    return file


def relations_of(path: Path, name: str) -> dict[str, Any]:
    """The relations of a case after one call, whether or not its outputs are right."""
    implementation, options = Python(f"{PLUGIN}:{name}"), CaseOptions("python", relations=True)
    with read_case(path) as file:
        prepared = prepare(file, options)
        for buffer in prepared.outputs.values():
            buffer.prepare(0)
        implementation.call(prepared.call)
        return check_relations(prepared, implementation, options)


def test_every_operator_declares_relations_of_its_own_tensors() -> None:
    for op, operator in operators().items():
        contract = operator.contract
        names = [each.name for each in contract.relations]
        assert len({*names}) == len(names) >= 2, op
        for each in contract.relations:
            assert {*each.axes, *each.columns, *filter(None, [each.linear])} <= {*contract.tensors}, (op, each.name)


@pytest.mark.parametrize("case_id", [VOXELS, ROIS, GRADIENTS, MASK, COLUMNS, PAIRS])
def test_a_right_kernel_keeps_every_relation(cases: Cases, case_id: str) -> None:
    declared = {each.name for each in operators()[case_id.partition("/")[0]].contract.relations}
    assert relations_of(cases(case_id), "right") == {"relations": dict.fromkeys(declared, "holds")}


@pytest.mark.parametrize(
    ("case_id", "name", "broken"),
    [
        (VOXELS, "neighbours", {"batch"}),
        (VOXELS, "last_channel", {"permutation of channels"}),
        (VOXELS, "last_point", {"permutation of points"}),
        (VOXELS, "clamp", {"scaling"}),
        (VOXELS, "offset", {"scaling", "zero"}),
        (ROIS, "neighbours", {"batch", "permutation of rois"}),
        (ROIS, "last_channel", {"permutation of channels"}),
        (ROIS, "clamp", {"scaling"}),
        (ROIS, "refuses_one_image", {"batch"}),
        (ROIS, "fails_on_zeros", {"zero"}),
        (GRADIENTS, "neighbours", {"batch"}),
        (GRADIENTS, "clamp", {"scaling"}),
        (ROIS, "wrong_way_back", {"adjoint"}),
        (GRADIENTS, "wrong_way_back", {"adjoint"}),
        (MASK, "wrong_way_back", {"adjoint"}),
        (MASK, "neighbours", {"adjoint", "batch"}),
        (MASK, "clamp", {"scaling"}),
        (COLUMNS, "last_row", {"permutation of channels"}),
        (COLUMNS, "last_channel", {"batch", "permutation of masks"}),
        (COLUMNS, "clamp", {"scaling"}),
        (PAIRS, "fewer_batches", {"batch"}),
        (PAIRS, "first_site", {"batch", "permutation of sites"}),
        (PAIRS, "wild", {"batch", "permutation of sites"}),
    ],
)
def test_a_fault_breaks_the_relation(cases: Cases, case_id: str, name: str, broken: set[str]) -> None:
    result = relations_of(cases(case_id), name)
    found = {relation: text for relation, text in result["relations"].items() if text != "holds"}
    assert found.keys() == broken, found
    assert all(text.startswith("broken: ") for text in found.values())
    assert result["status"] == "fail"


@pytest.mark.parametrize(
    ("case_id", "name", "words"),
    [
        (VOXELS, "neighbours", "relation batch is broken: item 0 alone: output_features ["),
        (ROIS, "clamp", "relation scaling is broken: 16 x input: output ["),
        (ROIS, "refuses_one_image", "relation batch is broken: item 0 alone: answers NOT_SUPPORTED, expected SUCCESS"),
        (ROIS, "fails_on_zeros", "relation zero is broken: input = 0: raised ValueError: nothing to do"),
        (ROIS, "wrong_way_back", "relation adjoint is broken: <output, z> = "),
        (MASK, "wrong_way_back", "relation adjoint is broken: <y, z> = "),
        (MASK, "clamp", "relation scaling is broken: 16 x x: y ["),
    ],
)
def test_a_fault_within_the_thresholds_fails_with_relations_alone(
    cases: Cases, case_id: str, name: str, words: str
) -> None:
    task = {"file": str(cases(case_id)), "manifest_meta": None}
    implementation = Python(f"{PLUGIN}:{name}")
    without, result = (
        run_case(task, implementation, WorkerSettings(CaseOptions("python", relations=each))) for each in (False, True)
    )
    assert (without["status"], "relations" in without) == ("pass", False)
    assert result["status"] == "fail"
    assert words in result["reason"]


@pytest.mark.parametrize("op", sorted(operators()))
def test_tiled_keeps_all_relations_on_the_small_suites(tmp_path: Path, op: str) -> None:
    tiled, settings = Tiled(), WorkerSettings(CaseOptions("tiled", relations=True))
    tried: set[str] = set()
    for case in expand_operator(op, {"general", "boundary", "nan_inf"}):
        if not case.valid:
            continue
        generate(case, WriteOptions(tmp_path))
        path = tmp_path / f"{case.id}.pb"
        result = run_case({"file": str(path), "manifest_meta": None}, tiled, settings)
        path.unlink()
        assert result["status"] in ("pass", "empty", "mistrusted"), (case.id, result["reason"])
        tried |= result.get("relations", {}).keys()
    assert tried == {each.name for each in operators()[op].contract.relations}
