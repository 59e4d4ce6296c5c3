"""Callables for `--impl python:` that are right but for cases with h_mask = 5, where each fails in its own way."""

import contextlib
import ctypes
import mmap
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, Any]
Params = dict[str, Any]
Kernel = Callable[..., Any]

TRIGGER = 5
FIRST = 10  # h_mask of the first way in `everything`
WAYS: dict[str, Kernel] = {}


def duration(seconds: int) -> str:
    """An argument for `sleep` that tells the processes of this run of the tests from those of another one."""
    return f"{seconds}.{os.environ.get('MLUOPS_TEST_RUN', '0')}"


def right(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """psamask_forward COLLECT by the formula of its design document, point by point."""
    x, y = inputs["x"], outputs["y"]
    n_all, height, width, _ = x.shape
    h_mask, w_mask = params["h_mask"], params["w_mask"]
    y[...] = 0
    for n, h, w, p, q in np.ndindex(n_all, height, width, h_mask, w_mask):
        i, j = p + h - (h_mask - 1) // 2, q + w - (w_mask - 1) // 2
        if 0 <= i < height and 0 <= j < width:
            y[n, h, w, i * width + j] = x[n, h, w, p * w_mask + q]


def misbehaves(how: Kernel) -> Kernel:
    """A callable that is right, but calls how(inputs, outputs) first where the trigger says so."""
    WAYS[how.__name__] = how

    def call(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
        if params["h_mask"] == TRIGGER:
            return how(op, inputs, outputs, params)
        return right(op, inputs, outputs, params)

    return call


@misbehaves
def segfault(*_: Any) -> Any:
    print("about to fall")
    ctypes.string_at(0)


@misbehaves
def aborts(*_: Any) -> Any:
    os.abort()


@misbehaves
def killed(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


@misbehaves
def leaves(*_: Any) -> Any:
    os._exit(0)


@misbehaves
def exits(*_: Any) -> Any:
    sys.exit(0)


@misbehaves
def hostile(*_: Any) -> Any:
    raise ValueError("\x00\x1b[31mred ]]> \ud800 " + "x" * 100_000)


class UnpicklableError(Exception):
    def __init__(self) -> None:
        self.lock = __import__("threading").Lock()

    def __str__(self) -> str:
        raise RuntimeError("no text")


@misbehaves
def unpicklable(*_: Any) -> Any:
    raise UnpicklableError


@misbehaves
def endless(*_: Any) -> Any:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", duration(987)])
    while True:
        time.sleep(1)


@misbehaves
def stuck_in_c(*_: Any) -> Any:
    ctypes.PyDLL(None).usleep(2**31)  # keeps the interpreter lock


@misbehaves
def floods(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    for _ in range(300):
        os.write(1, b"flood " * 10_000)
    right(op, inputs, outputs, params)


@misbehaves
def writes_behind(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    right(op, inputs, outputs, params)
    ctypes.memset(outputs["y"].ctypes.data + outputs["y"].nbytes + 40, 7, 4)


@misbehaves
def writes_before(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    right(op, inputs, outputs, params)
    ctypes.memset(outputs["y"].ctypes.data - 4, 7, 4)


@misbehaves
def changes_input(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    right(op, inputs, outputs, params)
    ctypes.memset(inputs["x"].ctypes.data, 0, 4)


@misbehaves
def assigns_input(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    inputs["x"][...] = 0


@misbehaves
def writes_nothing(*_: Any) -> Any:
    pass


@misbehaves
def returns_nonsense(*_: Any) -> Any:
    return [1, 2]


@misbehaves
def unknown_status(*_: Any) -> Any:
    return 99


@misbehaves
def not_supported(*_: Any) -> Any:
    return 7


@misbehaves
def bad_param(*_: Any) -> Any:
    return "BAD_PARAM"


@misbehaves
def eats_memory(*_: Any) -> Any:
    raise MemoryError("cannot allocate")


@misbehaves
def hoards(*_: Any) -> Any:
    held = []
    while True:
        held.append(np.ones(48 << 20, np.uint8))
        time.sleep(0.02)


@misbehaves
def child_hoards(*_: Any) -> Any:
    code = "import time\nheld = []\nwhile True: held.append(bytearray(b'1') * (16 << 20)); time.sleep(0.02)"
    subprocess.run([sys.executable, "-c", code])


_calls = 0


@misbehaves
def right_once(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    global _calls
    _calls += 1
    if _calls == 1:
        right(op, inputs, outputs, params)
    else:
        outputs["y"][...] = 0


_seen: list[Any] = []


@misbehaves
def caches(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Right into the first buffer only: later calls find it "done"."""
    if not _seen:
        right(op, inputs, outputs, params)
    _seen.append(1)


@misbehaves
def child_comes_back_wrong(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    if os.fork() == 0:
        return
    time.sleep(0.2)
    right(op, inputs, outputs, params)


@misbehaves
def child_comes_back_right(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    if os.fork() == 0:
        right(op, inputs, outputs, params)
        return
    time.sleep(0.2)


@misbehaves
def own_sessions(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    subprocess.Popen(["sleep", duration(988)], start_new_session=True)
    child = f"import subprocess as s; s.Popen(['sleep', '{duration(989)}'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", child])
    right(op, inputs, outputs, params)


@misbehaves
def dies_beside_own_session(*_: Any) -> Any:
    subprocess.Popen(["sleep", duration(986)], start_new_session=True, env={})
    ctypes.string_at(0)


@misbehaves
def hangs_beside_own_session(*_: Any) -> Any:
    subprocess.Popen(["sleep", duration(985)], start_new_session=True, env={})
    time.sleep(600)


class Unflushable:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        raise self.error


@misbehaves
def stream_raises(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    sys.stdout = Unflushable(RuntimeError("no flush"))
    right(op, inputs, outputs, params)


@misbehaves
def stream_interrupts(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    sys.stdout = Unflushable(KeyboardInterrupt())
    right(op, inputs, outputs, params)


@misbehaves
def stream_closes(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    sys.stdout.close()
    right(op, inputs, outputs, params)


def says_its_mask(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Prints, then plays with the stream that the next case prints to."""
    print(params["h_mask"])
    number = params["h_mask"] - FIRST
    return (list(WAYS.values())[number] if number >= 0 else right)(op, inputs, outputs, params)


def leaks(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Right, but leaves no file descriptor to the next case."""
    right(op, inputs, outputs, params)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with contextlib.suppress(OSError):
        while True:
            _seen.append(open("/dev/null"))  # noqa: SIM115


@misbehaves
def closes_pipe(*_: Any) -> Any:
    os.closerange(3, 1000)


@misbehaves
def replaces_pipe(*_: Any) -> Any:
    os.closerange(3, 1000)
    _seen.extend(open("/dev/null", "r+") for _ in range(20))  # noqa: SIM115


def _into_pipes(data: bytes) -> None:
    """Write into every socket that is open, as a library with a wrong descriptor does; the channel is one of them."""
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, data)


@misbehaves
def stray_bytes(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    _into_pipes(b"\0\0\1\0")
    time.sleep(600)


@misbehaves
def stray_bytes_then_right(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    _into_pipes(b"\0\0\0\4")
    right(op, inputs, outputs, params)


@misbehaves
def stray_length(*_: Any) -> Any:
    _into_pipes(b"\x7f\xff\xff\xff")


@misbehaves
def stray_message(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    _into_pipes(b'\0\0\0\x0f{"ready": true}')
    right(op, inputs, outputs, params)


@misbehaves
def stray_message_later(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    right(op, inputs, outputs, params)
    if os.fork() == 0:
        time.sleep(0.3)
        _into_pipes(b'\0\0\0\x12{"status": "pass"}')
        os._exit(0)


@misbehaves
def hoards_shared(*_: Any) -> Any:
    held = mmap.mmap(-1, 1 << 30)
    for at in range(0, 1 << 30, 4096):
        held[at] = 1
    time.sleep(600)


def closes_streams(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    right(op, inputs, outputs, params)
    os.close(1)
    os.close(2)


def idle(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    return 0


def never(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    return "NOT_SUPPORTED"


def slow(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    time.sleep(0.15)
    right(op, inputs, outputs, params)


def stops_clocks(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    time.perf_counter = time.monotonic = lambda: 0.0
    right(op, inputs, outputs, params)


def brisk(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    time.sleep(0.01)
    right(op, inputs, outputs, params)


def counted(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    os.write(1, b".")
    right(op, inputs, outputs, params)


def hangs(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    ctypes.PyDLL(None).sleep(600)  # keeps the interpreter lock


def alien(op: str, inputs: Arrays, outputs: Arrays, params: Params, descriptors: Any) -> Any:
    """y = 2 x of an operator that has no contract; says what it was given."""
    print(sorted(inputs), sorted(outputs), params.get("channels"), descriptors["in"].layout)
    outputs["out"][...] = inputs["in"] * 2


def everything(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Every way in one run: the number of the way is h_mask - FIRST."""
    number = params["h_mask"] - FIRST
    return (list(WAYS.values())[number] if number >= 0 else right)(op, inputs, outputs, params)
