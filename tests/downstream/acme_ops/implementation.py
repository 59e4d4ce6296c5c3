"""`--impl acme[:broken]`: Acme's kernels, row by row."""

from __future__ import annotations

from mluops_cli import Array, Call, CannotShow, Descriptor, Implementation, InputError, Outcome


class Acme(Implementation):
    """Copies row by row; with the option `broken` the last copy stays unwritten."""

    name = "acme"
    needs = "nothing"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        if options not in ("", "broken"):
            raise InputError(f"acme has no option {options!r}, expected broken")
        self.skipped = 1 if options else 0

    def call(self, call: Call) -> Outcome:
        """Check the call as a C interface would, then copy."""
        if call.faults:
            raise CannotShow(f"acme is not shown {call.faults[0]}")
        x, y, times = call.descriptors["x"], call.descriptors["y"], call.params["times"]
        if status := refusal(x, y, times):
            return Outcome(status)
        source, target = call.inputs["x"], call.outputs["y"]
        assert source is not None
        assert target is not None
        copy_rows(source, target, times - self.skipped)
        return Outcome()

    @classmethod
    def operators(cls) -> tuple[str, ...]:
        """tile_rows alone."""
        return ("tile_rows",)


def refusal(x: Descriptor | None, y: Descriptor | None, times: int) -> str:
    """The status that a wrong call is answered with, empty for a right one."""
    if x is None or y is None or times < 1 or len(x.dims) != 2 or not 0 < x.dims[0] <= 4096 or x.dims[1] == 0:
        return "BAD_PARAM"
    if x.dtype not in ("float", "half") or x.dtype != y.dtype or y.dims != (times * x.dims[0], x.dims[1]):
        return "BAD_PARAM"
    large = max(x.dims[0] * x.dims[1], y.dims[0] * y.dims[1]) >= 2**31
    return "NOT_SUPPORTED" if large or x.strides is not None or y.strides is not None else ""


def copy_rows(source: Array, target: Array, times: int) -> None:
    """target[t*N + n] = source[n]."""
    rows = source.shape[0]
    for t in range(times):
        for n in range(rows):
            target[t * rows + n] = source[n]
