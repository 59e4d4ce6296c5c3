"""The part of a case file's Node message that code under test may see: the call, not what is expected of it."""

from __future__ import annotations

from typing import Any, Final

from schemas.protos import messages as proto

_CRITERIA: Final = ("test_param", "evaluation_criterion", "evaluation_threshold", "evaluation_threshold_imag")


def public_node(node: Any) -> Any:
    """Return a copy of a node without criteria, whose metadata are the case's name and its parameters."""
    copy = proto.Node()
    copy.CopyFrom(node)
    for field in _CRITERIA:
        copy.ClearField(field)
    meta = proto.get_meta(node)
    if meta is not None:
        meta = proto.CaseMeta(suite=meta.suite, name=meta.name, params=meta.params, version=meta.version)
    proto.set_meta(copy, meta)
    return copy
