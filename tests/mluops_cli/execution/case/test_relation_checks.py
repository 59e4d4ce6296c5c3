"""--relations: right kernels keep all of them, and each planted fault breaks the ones that it should."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.contracts.relations import related_calls
from generators.operator_registry import operators
from generators.specs.expansion import expand_operator
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case.case_run import prepare, run_case
from mluops_cli.execution.case.relation_checks import check_relations
from mluops_cli.implementations.python import Python
from mluops_cli.implementations.tiled import Tiled
from schemas.casefiles.reading import read_case

PLUGIN = Path(__file__).parent / "related.py"
VOXELS, ROIS, GRADIENTS, MASK, BACK, COLUMNS, PAIRS, BOXES, IMAGE, SPARSE = (
    "voxel_pooling_forward/general/batches_batch_size7",
    "roi_crop_forward/general/rois_per_image_n6",
    "roi_crop_backward/general/rois_per_image_n6",
    "psamask_forward/general/h65_collect",
    "psamask_backward/general/h65_distribute",
    "masked_im2col_forward/general/channels_c3_float",
    "get_indice_pairs/general/batches_batch7",
    "roialign_forward/general/boxes_k7",
    "masked_col2im_forward/general/channels_c7_float",
    "indice_convolution_forward/general/output_channels_co7_float",
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


def relations_of(path: Path, name: str, undecided: Any = None) -> dict[str, Any]:
    """The relations of a case after one call, whether or not its outputs are right."""
    implementation, options = Python(f"{PLUGIN}:{name}"), CaseOptions("python", relations=True)
    with read_case(path) as file:
        prepared = prepare(file, options)
        if undecided is not None:
            (output,) = prepared.outputs
            prepared = replace(prepared, undecided={output: undecided(prepared.baseline[output])})
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


@pytest.mark.parametrize("case_id", [VOXELS, ROIS, GRADIENTS, MASK, BACK, COLUMNS, PAIRS, BOXES, IMAGE, SPARSE])
def test_a_right_kernel_keeps_every_relation(cases: Cases, case_id: str) -> None:
    declared = {each.name for each in operators()[case_id.partition("/")[0]].contract.relations}
    assert relations_of(cases(case_id), "right") == {"relations": dict.fromkeys(declared, "holds")}


_IMAGES, _CHANNELS, _ROIS = "permutation of images", "permutation of channels", "permutation of rois"
FAULTS = [
    (VOXELS, "neighbours", {"batch", _IMAGES}),
    (VOXELS, "last_row", {"batch", _IMAGES}),
    (VOXELS, "last_channel", {_CHANNELS}),
    (VOXELS, "last_point", {"permutation of points"}),
    (VOXELS, "clamp", {"scaling"}),
    (VOXELS, "offset", {"outside", "scaling", "zero"}),
    (VOXELS, "minus_zero", {"outside", "zero"}),
    (VOXELS, "edge", {"outside"}),
    (ROIS, "neighbours", {"batch", "batch of rois", _ROIS}),
    (ROIS, "last_row", {"batch", "batch of rois", _IMAGES, _ROIS}),
    (ROIS, "last_channel", {_CHANNELS}),
    (ROIS, "clamp", {"scaling"}),
    (ROIS, "fails_on_zeros", {"zero"}),
    (ROIS, "edge", {"outside"}),
    (ROIS, "wrong_way_back", {"adjoint"}),
    (GRADIENTS, "neighbours", {"batch"}),
    (GRADIENTS, "last_row", {"adjoint", "batch", _IMAGES}),
    (GRADIENTS, "last_channel", {_CHANNELS}),
    (GRADIENTS, "last_gradient", {"batch", _IMAGES, _ROIS}),
    (GRADIENTS, "clamp", {"scaling"}),
    (GRADIENTS, "offset", {"outside", "scaling", "zero"}),
    (GRADIENTS, "minus_zero", {"outside", "zero"}),
    (GRADIENTS, "edge", {"outside"}),
    (GRADIENTS, "wrong_way_back", {"adjoint"}),
    (MASK, "wrong_way_back", {"adjoint"}),
    (MASK, "neighbours", {"adjoint", "batch"}),
    (MASK, "last_row", {"adjoint", "batch", _IMAGES}),
    (MASK, "clamp", {"scaling"}),
    (MASK, "offset", {"adjoint", "scaling", "zero"}),
    (BACK, "wrong_way_back", {"adjoint"}),
    (BACK, "last_row", {"adjoint", "batch", _IMAGES}),
    (BACK, "clamp", {"scaling"}),
    (BACK, "minus_zero", {"zero"}),
    (COLUMNS, "last_row", {_CHANNELS}),
    (COLUMNS, "last_channel", {"batch", "permutation of masks"}),
    (COLUMNS, "clamp", {"scaling"}),
    (COLUMNS, "minus_zero", {"batch", "outside", "zero"}),
    (COLUMNS, "edge", {"outside"}),
    (PAIRS, "fewer_batches", {"batch", _IMAGES}),
    (PAIRS, "first_site", {"batch", "permutation of sites"}),
    (PAIRS, "wild", {"batch", _IMAGES, "permutation of sites"}),
    (IMAGE, "last_image_channel", {_CHANNELS}),
    (IMAGE, "last_mask", {"permutation of masks"}),
    (IMAGE, "clamp", {"scaling"}),
    (IMAGE, "minus_zero", {"zero"}),
    (SPARSE, "last_channel", {"batch of output channels", "permutation of output channels"}),
    (SPARSE, "last_feature", {"permutation of input channels"}),
    (SPARSE, "clamp", {"scaling"}),
    (BOXES, "neighbours", {"batch of rois", _ROIS}),
    (BOXES, "last_row", {"batch of rois", _ROIS}),
    (BOXES, "last_channel", {_CHANNELS}),
    (BOXES, "clamp", {"scaling"}),
    (BOXES, "fails_on_zeros", {"zero"}),
]


def test_a_fault_is_planted_for_every_relation_of_every_operator() -> None:
    planted: dict[str, set[str]] = {}
    for case_id, _, broken in FAULTS:
        planted.setdefault(case_id.partition("/")[0], set()).update(broken)
    assert planted == {op: {each.name for each in found.contract.relations} for op, found in operators().items()}


@pytest.mark.parametrize(("case_id", "name", "broken"), FAULTS)
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


def test_undecided_elements_are_not_held_against_copies(cases: Cases) -> None:
    def channel(number: int) -> Callable[[Any], Any]:
        def mask(output: Any) -> Any:
            found = np.zeros(output.shape, bool)
            found[..., number] = True
            return found

        return mask

    names = ("batch", "permutation of images", "scaling")
    found = relations_of(cases(MASK), "varying_copies", channel(0))["relations"]
    assert {found[name] for name in names} == {"holds"}
    wrong = relations_of(cases(MASK), "varying_copies", channel(1))["relations"]
    assert all(wrong[name].startswith("broken: ") for name in names)


def test_a_call_that_is_not_supported_is_no_fault(cases: Cases) -> None:
    result = relations_of(cases(ROIS), "refuses_one_image")
    assert "status" not in result
    assert result["relations"].pop("batch") == "not run: item 0 alone: answers NOT_SUPPORTED"
    assert {*result["relations"].values()} == {"holds"}


@pytest.mark.slow
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


@pytest.mark.parametrize("batch", [2, 5, 4096, 2**31 - 1])
def test_images_get_other_numbers_however_many_there_are(batch: int) -> None:
    """Of a huge batch, the numbers that occur, the last one and the first ones: not a number for each image."""
    contract = operators()["get_indice_pairs"].contract
    (images,) = (each for each in contract.relations if each.name == "permutation of images")
    sites = np.array([[0, 1, 2, 3], [batch - 1, 0, 0, 0], [batch // 2, 5, 5, 5], [0, 0, 0, 1]], np.int32)
    (related,) = related_calls(images, {"indices": sites}, {"batch": batch}, {"batch": batch}, seed=1)
    moved = related.inputs["indices"]
    assert (moved[:, 0] != sites[:, 0]).all()
    assert (moved[:, 0] >= 0).all()
    assert (moved[:, 0] < batch).all()
    assert np.array_equal(moved[:, 1:], sites[:, 1:])
    assert related.numbers is not None
    assert np.array_equal(np.sort(related.numbers.new), related.numbers.old), "no two images share a number"
    assert set(sites[:, 0]) | set(range(min(batch, 4096))) == set(related.numbers.old)
