"""The implementation `tiled`: its options, its operators, a call through the adapter."""

from __future__ import annotations

import numpy as np
import pytest

from generators.contracts.faults import Fault
from mluops_cli.implementations.base import Call, CannotShow
from mluops_cli.implementations.registry import implementation_named
from mluops_cli.implementations.tiled import Tiled, machine_of
from mluops_cli.implementations.tiled.onchip import Machine
from schemas.errors import InputError
from schemas.tensor_descriptor import Descriptor

OPERATORS = {
    "psamask_forward",
    "psamask_backward",
    "masked_im2col_forward",
    "roi_crop_forward",
    "roi_crop_backward",
    "voxel_pooling_forward",
    "get_indice_pairs",
}


def im2col(workspace_fault: tuple[str, ...] = ()) -> Call:
    """The hand-checked case of masked_im2col_forward as the runner calls it."""
    inputs = {
        "feature": np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3),
        "mask_h_idx": np.array([-1, 1], np.int32),
        "mask_w_idx": np.array([-1, 1], np.int32),
    }
    descriptors = {
        "feature": Descriptor("NCHW", "float", (1, 1, 3, 3)),
        "mask_h_idx": Descriptor("ARRAY", "int32", (2,)),
        "mask_w_idx": Descriptor("ARRAY", "int32", (2,)),
        "data_col": Descriptor("ARRAY", "float", (4, 2)),
    }
    params = {"kernel_h": 2, "kernel_w": 2, "pad_h": 1, "pad_w": 1}
    outputs = {"data_col": np.full((4, 2), 77, np.float32)}
    return Call("masked_im2col_forward", inputs, outputs, params, descriptors, tuple(map(Fault.parse, workspace_fault)))


def test_all_seven_operators() -> None:
    assert set(Tiled.operators()) == OPERATORS


def test_a_call_through_the_adapter() -> None:
    call = im2col()
    outcome = Tiled("nram=64,clusters=1,cores=1").call(call)
    assert outcome.status == "SUCCESS"
    assert outcome.workspace_bytes == (9 + 8) * 4
    assert call.outputs["data_col"].tolist() == [[0, 1], [0, 2], [0, 4], [0, 5]]


@pytest.mark.parametrize("fault", ["workspace:null", "workspace:short", "null_workspace_size", "null_handle"])
def test_faults_through_the_adapter(fault: str) -> None:
    assert Tiled().call(im2col((fault,))).status == "BAD_PARAM"


def test_an_operator_without_a_device_algorithm_is_a_skip() -> None:
    with pytest.raises(CannotShow, match="no device algorithm for operator abs"):
        Tiled().call(Call("abs", {}, {}, {}, {}))


def test_options() -> None:
    assert machine_of("") == Machine()
    assert machine_of("nram=1024, cores=2") == Machine(nram=1024, cores=2)
    assert isinstance(implementation_named("tiled:clusters=7"), Tiled)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("nrma=5", "tiled has no option 'nrma': did you mean 'nram'"),
        ("nram", "tiled: nram is '', expected a whole number above 0"),
        ("nram=0", "tiled: nram is '0', expected a whole number above 0"),
        ("cores=-4", "tiled: cores is '-4', expected"),
        ("clusters=1.5", "tiled: clusters is '1.5', expected"),
        ("cores=2,cores=2", "tiled: option cores is given twice"),
    ],
)
def test_wrong_options(options: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        Tiled(options)
    assert message in str(raised.value)
