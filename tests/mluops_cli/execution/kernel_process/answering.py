"""Kernels of psamask_forward that read files, call kernels that hold answers or start programs, and ones that don't."""

import ctypes
import os
import pty
import subprocess
import sys
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path, PurePosixPath
from typing import Any

import tests.mluops_cli.execution.misbehaving as misbehaving
from generators import Operator  # noqa: F401
from mluops_cli import Implementation  # noqa: F401

HERE = Path(__file__)
right = misbehaving.right


def reads_a_model(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """Read a file that ends as a case file does, and is none."""
    (Path.cwd() / "model.pb").read_bytes()
    return right(op, inputs, outputs, params)


def reads_its_own_source(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    HERE.read_text()
    return right(op, inputs, outputs, params)


def opens_the_case(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    os.close(os.open("cases/one.pb", os.O_RDONLY))
    return right(op, inputs, outputs, params)


def opens_a_link(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """Open the case file by another name."""
    Path("weights").unlink(missing_ok=True)
    Path("weights").symlink_to("cases/one.pb")
    Path("weights").read_bytes()
    return right(op, inputs, outputs, params)


def opens_a_hard_link(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    Path("weights").unlink(missing_ok=True)
    Path("weights").hardlink_to("cases/one.pb")
    Path("weights").read_bytes()
    return right(op, inputs, outputs, params)


def opens_it_while_it_has_another_name(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    Path("cases/one.pb").rename("weights")
    Path("weights").read_bytes()
    Path("weights").rename("cases/one.pb")
    return right(op, inputs, outputs, params)


def opens_many_files_first(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    for number in range(256):
        with suppress(OSError):
            Path(f"{number}.pb").read_bytes()
    return opens_the_case(op, inputs, outputs, params)


def opens_a_long_name(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """Open a file whose name would be too long for any message."""
    with suppress(OSError):
        Path(f"{'a' * 70_000_000}.pb").read_bytes()
    return right(op, inputs, outputs, params)


def opens_memory_of_the_judge(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    with suppress(PermissionError):
        Path(f"/proc/{os.getppid()}/mem").open("rb").close()
    return right(op, inputs, outputs, params)


def opens_its_own_memory(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    Path("/proc/self/mem").open("rb").close()
    return right(op, inputs, outputs, params)


def calls_the_reference(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    from generators.operators.psamask import OPERATORS

    operator = next(each for each in OPERATORS if each.contract.op == op)
    shapes = {name: each.shape for name, each in (*inputs.items(), *outputs.items())}
    env = operator.contract.bind(shapes, params)
    outputs["y"][...] = operator.reference(inputs, env)["y"]


def imports_tiled(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    import mluops_cli.implementations.tiled.psamask  # noqa: F401

    return right(op, inputs, outputs, params)


def _in_a_fork(kernel: Any, *call: Any) -> None:
    if not (process := os.fork()):
        kernel(*call)
        os._exit(0)
    os.waitpid(process, 0)


def opens_the_case_in_a_fork(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    _in_a_fork(opens_the_case, op, inputs, outputs, params)


def computes_in_a_fork(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    _in_a_fork(right, op, inputs, outputs, params)


def starts_python(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    subprocess.run([sys.executable, "-c", ""], check=True)
    return right(op, inputs, outputs, params)


def starts_a_shell(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    os.system("true")
    return right(op, inputs, outputs, params)


def starts_a_program_in_a_fork(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    _in_a_fork(lambda: os.execv("/bin/true", ["true"]))
    return right(op, inputs, outputs, params)


def starts_a_program_in_c(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    ctypes.CDLL(None).system(b"true")
    return right(op, inputs, outputs, params)


def starts_a_pool(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    with get_context("spawn").Pool(1) as pool:
        pool.apply(abs, (1,))
    return right(op, inputs, outputs, params)


def uses_shared_memory(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """Let multiprocessing start the process that removes what is left of shared memory."""
    memory = SharedMemory(create=True, size=64)
    memory.close()
    memory.unlink()
    return right(op, inputs, outputs, params)


def asks_for_the_compiler(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """Start tools by a shell too, and calls that can't start anything."""
    os.system("uname -r")
    subprocess.run("uname -r", shell=True, check=True)
    with suppress(IndexError):
        subprocess.run([], check=True)
    with suppress(TypeError):
        pty.spawn(None)  # type: ignore[arg-type]
    return right(op, inputs, outputs, params)


def starts_a_program_after_a_tool(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    subprocess.run(["uname"], check=True)
    os.system("")
    os.system("uname; true")
    subprocess.run([PurePosixPath("/bin/true")], check=True)
    return right(op, inputs, outputs, params)


def starts_many_programs(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    for number in range(10):
        with suppress(FileNotFoundError):
            subprocess.run([f"./missing{number}"], check=True)
    return right(op, inputs, outputs, params)


def starts_a_compiler(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """Start what has the name of a compiler: libraries start them to build kernels."""
    Path("x86_64-linux-gnu-gcc-12").unlink(missing_ok=True)
    Path("x86_64-linux-gnu-gcc-12").symlink_to("/bin/true")
    subprocess.run(["./x86_64-linux-gnu-gcc-12"], check=True)
    return right(op, inputs, outputs, params)


def calls_torch(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """Call the bundled kernel on torch tensors."""
    from mluops_cli.implementations.torch.psamask import KERNELS

    shapes = {name: tuple(each.shape) for name, each in outputs.items()}
    kind: Any = KERNELS[op]
    kernel = kind.__new__(kind)
    outputs["y"].copy_(kernel.compute(inputs, params, shapes)["y"])
