"""The case file's message classes, made at run time from the shipped descriptor.

There is no generated code, so any protobuf runtime from 5 on works. The descriptor pool is our own, so another module
in the process may have a copy of the same interface. protobuf is imported on first use.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from schemas.errors import InputError, SourceLocation

DESCRIPTOR: Final = Path(__file__).with_name("mluoptest.desc")
_QUOTED: Final = 200  # characters of each end of a long message
_ONE_AT_A_TIME: Final = Lock()
_SHORTCUTS: Final = {"Node": "mluoptest.Node", "Tensor": "mluoptest.Tensor", "CaseMeta": "mluops.CaseMeta"}

if TYPE_CHECKING:
    Node: Any
    Tensor: Any
    CaseMeta: Any
else:

    def __getattr__(name: str) -> Any:
        if name in _SHORTCUTS:
            return message_class(_SHORTCUTS[name])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def pool() -> Any:
    """The descriptor pool that holds both packages, mluoptest and mluops; all threads have the same one."""
    with _ONE_AT_A_TIME:
        return _pool()


@cache  # which alone lets two threads make one each: what comes of different pools doesn't fit together
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    made = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTOR.read_bytes()).file:
        made.AddSerializedFile(file.SerializeToString())
    _extension(made, "mluops_case")  # looked up once, so that every runtime registers it before anything is parsed
    _extension(made, "mluops_pad")
    return made


@cache
def message_class(name: str) -> Any:
    """The class of a message by its full name, such as mluoptest.Node; KeyError where there is none."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(pool().FindMessageTypeByName(name))


@cache
def enum_names(name: str) -> dict[int, str]:
    """Number -> name of an enum of package mluoptest."""
    return {value.number: value.name for value in pool().FindEnumTypeByName(f"mluoptest.{name}").values}


def _extension(pool: Any, name: str) -> Any:
    return pool.FindExtensionByName(f"mluops.{name}")


@cache
def extension(name: str) -> Any:
    """The handle of one of our extensions of Node: mluops_case or mluops_pad."""
    return _extension(pool(), name)


def get_meta(node: Any) -> Any | None:
    """The CaseMeta of a Node, None where it has none."""
    handle = extension("mluops_case")
    return node.Extensions[handle] if node.HasExtension(handle) else None


def set_meta(node: Any, meta: Any | None) -> None:
    """Set the CaseMeta of a Node, or clear it."""
    handle = extension("mluops_case")
    node.ClearExtension(handle)
    if meta is not None:
        node.Extensions[handle].CopyFrom(meta)


def parse_text(text: str, message: Any, file: str) -> Any:
    """Fill message from protobuf text format and return it; InputError with file:line:column."""
    from google.protobuf import text_format

    try:
        return text_format.Parse(text, message, descriptor_pool=pool())
    except text_format.ParseError as error:
        line, column = error.GetLine(), error.GetColumn()
        where = f"{line}:{column} : " if column is not None else f"{line} : "
        raise InputError(_cut(str(error).removeprefix(where)), SourceLocation(file, line, column)) from None


def _cut(message: str) -> str:
    """The two ends of a long message: protobuf quotes the whole line before its message."""
    return message if len(message) <= 2 * _QUOTED else f"{message[:_QUOTED]} ... {message[-_QUOTED:]}"


def print_text(message: Any, indent: int = 0) -> str:
    """The message in protobuf text format, UTF-8, without unknown fields."""
    from google.protobuf import text_format

    return text_format.MessageToString(message, as_utf8=True, indent=indent, descriptor_pool=pool())


def serialize(message: Any) -> bytes:
    """The message's bytes: the same for equal messages."""
    data: bytes = message.SerializePartialToString(deterministic=True)
    return data
