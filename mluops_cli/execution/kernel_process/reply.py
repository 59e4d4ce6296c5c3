"""What comes of a call in the kernel process: its outcome or what was raised, checked by a schema when it arrives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from mluops_cli.core.escaping import cut
from mluops_cli.core.exceptions import summary
from mluops_cli.core.statuses import OUR_FAILURE
from mluops_cli.execution.kernel_process.frames import BrokenChannelError
from mluops_cli.execution.kernel_process.request import plain
from mluops_cli.execution.kernel_process.timed_call import Raised, Timed, words_of
from mluops_cli.implementations.base import (
    AdapterError,
    BadAnswer,
    CannotShow,
    Crashed,
    Outcome,
    OutOfBounds,
)
from schemas.errors import MluopsError

_TEXT: Final = 100_000  # characters of a text of the implementation in a message
_Text = Annotated[str, msgspec.Meta(max_length=len(cut("x" * (_TEXT + 1), _TEXT)))]
_Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # bytes
_VERDICTS: Final[Mapping[str, type[Exception]]] = {
    "cannot show": CannotShow,
    "out of bounds": OutOfBounds,
    "crashed": Crashed,
    "bad answer": BadAnswer,
    "adapter": AdapterError,
}


class Reply(msgspec.Struct, forbid_unknown_fields=True):
    """One answer; token is that of the request. glimpse: hashes of pieces of the outputs directly after the call.

    known_answers, programs: what KnownAnswers has noted in the process so far. spoilt: the process is not to be used
    again. Texts and sizes are bounded, since they go into records: the implementation may have written the answer.
    """

    token: str
    kind: Literal["done", "cannot show", "out of bounds", "crashed", "bad answer", "adapter", "raised"]
    text: _Text = ""
    traceback: _Text = ""
    errno: int | None = None
    status: _Text = ""
    latency_us: float | None = None
    workspace_bytes: _Size | None = None
    scalars: dict[_Text, int] = {}
    host_us: float = 0.0
    glimpse: dict[_Text, int] = {}
    known_answers: list[_Text] = []
    programs: list[_Text] = []
    spoilt: bool = False

    def take(self) -> Timed:
        """The outcome; raises what the call raised."""
        if self.kind == "done":
            return Timed(Outcome(self.status, self.latency_us, self.workspace_bytes, self.scalars), self.host_us)
        if self.kind == "raised":
            raise Raised(self.text, self.traceback)
        raise _VERDICTS[self.kind](self.text) from None if self.errno is None else OSError(self.errno, self.text)


class Ready(msgspec.Struct, forbid_unknown_fields=True):
    """The first message: the implementation is loaded, or problem says why it can't be."""

    name: _Text = ""
    operators: list[_Text] | None = None
    device: _Text | None = None
    problem: _Text | None = None
    exit_code: int = 0


def load_problem(error: BaseException) -> dict[str, Any]:
    """The keys of a first message that says why an implementation can't be loaded, with the exit code for it."""
    if isinstance(error, MluopsError):
        return {"problem": cut(str(error), _TEXT), "exit_code": error.exit_code}
    return {"problem": summary(error), "exit_code": OUR_FAILURE}


def done(timed: Timed) -> dict[str, Any]:
    """The keys of a reply with an outcome; BadAnswer where a field is none of Outcome, or too long."""
    outcome = timed.outcome
    found = {
        "kind": "done",
        "status": outcome.status,
        "latency_us": plain(outcome.latency_us),
        "workspace_bytes": plain(outcome.workspace_bytes),
        "scalars": plain(outcome.scalars),
        "host_us": timed.host_us,
        "glimpse": {} if timed.glimpse is None else timed.glimpse.hashes,
    }
    try:
        msgspec.convert(found | {"token": ""}, Reply)
    except msgspec.ValidationError as error:
        raise BadAnswer(f"the implementation returned an Outcome with a wrong field: {error}") from None
    return found


def raised(error: BaseException) -> dict[str, Any]:
    """The keys of a reply about an exception."""
    for kind, verdict in _VERDICTS.items():
        if isinstance(error, verdict):
            return {"kind": kind, "text": cut(str(error), _TEXT), "errno": getattr(error.__cause__, "errno", None)}
    text, traceback = words_of(error)
    return {"kind": "raised", "text": cut(text, _TEXT), "traceback": cut(traceback, _TEXT)}


def read_reply(message: dict[str, Any], token: str) -> Reply:
    """The reply to the request with this token; BrokenChannelError for anything else."""
    reply: Reply = checked(message, Reply, "result")
    if reply.token != token:
        raise BrokenChannelError("a result that belongs to no case")
    if not 0 <= reply.host_us < math.inf:
        raise BrokenChannelError(f"a result whose host_us is {reply.host_us}")
    return reply


def checked(message: dict[str, Any], kind: type[Any], what: str) -> Any:
    """The message as that kind of struct; BrokenChannelError where it is none."""
    try:
        return msgspec.convert(message, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError):
        raise BrokenChannelError(f"a message that is no {what}: {', '.join(map(repr, message))[:80]}") from None
