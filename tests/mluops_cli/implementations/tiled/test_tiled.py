"""The implementation `tiled`: its options, its operators, a call through the adapter."""

from __future__ import annotations

import pytest

from mluops_cli.implementations.base import Call, CannotShow
from mluops_cli.implementations.registry import implementation_named
from mluops_cli.implementations.tiled import Tiled, machine_of
from mluops_cli.implementations.tiled.onchip import Machine
from schemas.errors import InputError
from tests.mluops_cli.implementations.calls import masked_im2col, output_of

OPERATORS = {
    "psamask_forward",
    "psamask_backward",
    "masked_im2col_forward",
    "roi_crop_forward",
    "roi_crop_backward",
    "voxel_pooling_forward",
    "get_indice_pairs",
    "roialign_forward",
    "masked_col2im_forward",
    "indice_convolution_forward",
}


def test_its_operators() -> None:
    assert set(Tiled.operators()) == OPERATORS


def test_a_call_through_the_adapter() -> None:
    call = masked_im2col()
    outcome = Tiled("nram=64,clusters=1,cores=1").call(call)
    assert outcome.status == "SUCCESS"
    assert outcome.workspace_bytes == (9 + 8) * 4
    assert output_of(call, "data_col").tolist() == [[0, 1], [0, 2], [0, 4], [0, 5]]


@pytest.mark.parametrize("fault", ["workspace:null", "workspace:short", "null_workspace_size", "null_handle"])
def test_faults_through_the_adapter(fault: str) -> None:
    assert Tiled().call(masked_im2col(faults=(fault,))).status == "BAD_PARAM"


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
