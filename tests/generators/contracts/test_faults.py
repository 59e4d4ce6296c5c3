"""Invalid-call faults: one text form each, and nothing else is one."""

from __future__ import annotations

import pytest

from generators.contracts.faults import CALL_FAULTS, TENSOR_FAULTS, Fault, null_pointer, tensors_with
from schemas.errors import InputError

TEXTS = [*CALL_FAULTS, *(f"{kind}:x~2" for kind in TENSOR_FAULTS)]


@pytest.mark.parametrize("text", TEXTS)
def test_a_fault_comes_back_from_its_text(text: str) -> None:
    assert str(Fault.parse(text)) == text


def test_faults_of_tensors_know_the_tensor() -> None:
    assert Fault.parse("null_pointer:x") == null_pointer("x") == Fault("null_pointer", "x")
    assert null_pointer("x").text == "the data pointer of the non-empty tensor x is null"
    assert tensors_with("null_pointer", map(Fault.parse, TEXTS)) == {"x~2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("null_hat", "unknown fault 'null_hat': did you mean 'null_handle'?"),
        ("null_handle:x", "unknown fault 'null_handle:x'"),
        ("null_pointer", "unknown fault 'null_pointer': did you mean 'null_pointer:TENSOR'?"),
        ("null_pointer:", "unknown fault 'null_pointer:'"),
        ("", "unknown fault ''"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Fault.parse(text)
    assert caught.value.message.startswith(message)


def test_only_two_faults_are_of_the_workspace() -> None:
    assert [text for text in TEXTS if Fault.parse(text).of_workspace] == ["workspace:null", "workspace:short"]
