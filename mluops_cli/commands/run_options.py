"""Groups of options of `mluops run` (judging, performance, cluster, reports) and the values made of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import rich_click as click

from mluops_cli.commands.options import ByteSize, Seconds
from mluops_cli.commands.outcomes import waivers_option
from mluops_cli.core.case_options import BoundPolicy, Cache, CaseOptions
from schemas.errors import InputError

if TYPE_CHECKING:
    from mluops_cli.reports.dispatch import ReportFiles

DEFAULTS: Final = CaseOptions()
_PREFIXES: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
REPORTS: Final = {"junit": "junit.xml", "html": "report.html", "md": "report.md", "csv": "report.csv"}
_FILE: Final = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
Given = dict[str, Any]


class Rate(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on only
    """A number per second such as 307.2GB/s, 24T or 1.5e12."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; usage error for anything else."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\+?\d+)?)\s*([kKMGTP]?)(?:B|OPS|FLOPS)?(?:/s)?\s*", value)
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is not a rate; expected one such as 307.2GB/s, 24T or 1.5e12", param, ctx)
        return float(match[1]) * _PREFIXES[match[2].upper()]


class Letters(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on only
    """Some of these letters."""

    name = "letters"

    def __init__(self, letters: str) -> None:
        self.letters = letters

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the letters; usage error for others."""
        if wrong := set(value) - set(self.letters):
            self.fail(f"{''.join(sorted(wrong))!r}, expected letters of {self.letters}", param, ctx)
        return str(value)


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


impl_option = click.option(
    "--impl", default=DEFAULTS.impl, show_default=True, metavar="NAME[:OPTIONS]", help="The implementation."
)
impls_option = click.option(
    "--impl",
    "impls",
    multiple=True,
    default=(DEFAULTS.impl,),
    show_default=True,
    metavar="NAME[:OPTIONS]",
    help="The implementation; several times to see several side by side.",
)
reasons_option = click.option(
    "-r",
    "reasons",
    type=Letters("smw"),
    default="",
    metavar="smw",
    help="List the reasons of cases that are skipped (s), mistrusted (m), waived (w).",
)
memory_option = click.option(
    "--memory", type=ByteSize(), metavar="SIZE", help="Memory of a case and all it starts.  [default: what there is]"
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(1),
    metavar="N",
    help="Threads of OpenMP and BLAS in a worker and in what it starts.  [default: OMP_NUM_THREADS etc., else 1]",
)
repeat_option = click.option(
    "--repeat", type=click.IntRange(1), metavar="N", help="Runs per case, each judged.  [default: 1]"
)
perf_options = _together(
    click.option("--perf", is_flag=True, help="Measure latencies too; one case at a time unless -j is given."),
    click.option(
        "--min-time",
        default=DEFAULTS.min_time,
        show_default=True,
        type=Seconds(),
        metavar="S",
        help="--perf: time calls for S seconds and until the median is steady, but for at most ten times S.",
    ),
    click.option(
        "--cache",
        type=click.Choice(get_args(Cache)),
        default=DEFAULTS.cache,
        show_default=True,
        help="--perf: the caches before a timed call: flushed, or as the same call leaves them.",
    ),
    click.option(
        "--rotate",
        is_flag=True,
        help="--perf: call on new data too; with fresh caches, kernels that answer from kept results fail.",
    ),
    click.option(
        "--device", metavar="NAME", help="--perf: the device that runs the cases, for its peaks, such as MLU370-X8."
    ),
    click.option("--peak-bandwidth", type=Rate(), metavar="RATE", help="--perf: of the memory, such as 307.2GB/s."),
    click.option("--peak-ops", type=Rate(), metavar="RATE", help="--perf: operations per second, such as 24T."),
    click.option("--perf-gate", is_flag=True, help="--perf; network and general cases below their standard fail."),
)
fleet_options = _together(
    click.option("--scheduler", metavar="ADDRESS", help="Run on a Dask cluster: tcp://host:8786."),
    click.option(
        "--resource", metavar="NAME=N", help="--scheduler: the resource of a worker that a case takes, such as MLU=1."
    ),
)
format_options = _together(
    click.option(
        "--junit", type=_FILE, metavar="FILE", help="JUnit XML for CI servers; split by operator when too large."
    ),
    click.option(
        "--junit-prefix",
        metavar="TEXT",
        help="Begins the names of JUnit's suites and classes; '' for none.  [default: the implementation]",
    ),
    click.option("--html", type=_FILE, metavar="FILE", help="One page that needs no network."),
    click.option("--md", type=_FILE, metavar="FILE", help="The test report as Markdown."),
    click.option("--csv", type=_FILE, metavar="FILE", help="A row per case."),
    click.option(
        "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Of the Markdown report."
    ),
    click.option("--ci", type=click.Choice(["auto", "github", "gitlab", "plain"]), help="Annotations for a CI server."),
)
report_options = _together(
    format_options,
    waivers_option,
    click.option(
        "--keep-outputs",
        type=ByteSize(),
        metavar="SIZE",
        help="Keep the outputs of a failing case, too, in OUT/failures: of up to SIZE bytes.",
    ),
)
_comparing = (
    click.option(
        "--compare",
        "compare",
        multiple=True,
        metavar="OUTPUT=canonical",
        help="Take pairs and rows of a rulebook in any order. (`mluops compare` compares two runs.)",
    ),
    click.option("--loose-nan", is_flag=True, help="NaN, Inf and -Inf may stand for each other; never for a number."),
    click.option("--loose-zero", is_flag=True, help="-0 may stand for 0 in copies too (psamask, masked_im2col)."),
    click.option("--strict-tail", is_flag=True, help="The elements behind the pairs of a rulebook must be -1."),
)
_accumulate = click.option(
    "--accumulate",
    type=click.Choice(["half", "bfloat16", "float", "double"]),
    help="The precision that a kernel may accumulate in, for --bound.  [default: the contract's]",
)


def _bound(default: str) -> Callable[[Any], Any]:
    return click.option(
        "--bound",
        type=click.Choice(get_args(BoundPolicy)),
        default=default,
        show_default=True,
        help="Outputs within the thresholds that no correct kernel computes: report, fail, or don't look.",
    )


judging_options = _together(
    *_comparing,
    _bound(DEFAULTS.bound),
    _accumulate,
    click.option(
        "--relations",
        is_flag=True,
        help="Call it on related inputs too (parts of the batch, permuted, scaled, zero); its own outputs must agree.",
    ),
)
searching_options = _together(
    *_comparing,
    _bound("fail"),
    _accumulate,
    click.option(
        "--relations/--no-relations",
        default=True,
        show_default=True,
        help="Call it on related inputs too; its own outputs must agree.",
    ),
)


def case_options(given: Given) -> CaseOptions:
    """Return the options of every case; those that the command doesn't have keep their defaults.

    InputError for a --compare that fits no output, and for options that need --perf.
    """
    from dataclasses import fields

    named = {each.name: given.get(each.name, each.default) for each in fields(CaseOptions)}
    options = CaseOptions(**named | {"plugins": tuple(str(path) for path in given["plugins"])})
    check_compare(options.compare)
    given_for_perf = ("device", "peak_bandwidth", "peak_ops", "rotate")
    needing = [name for name in given_for_perf if getattr(options, name) not in (None, False)]
    if needing and not options.measured:
        raise InputError(f"--{needing[0].replace('_', '-')} needs --perf")
    return options


def check_compare(compare: Sequence[str]) -> None:
    """InputError for a --compare that fits no output of any operator."""
    if not compare:
        return
    from generators.operator_registry import operators
    from schemas.suggest import did_you_mean

    known = {
        tensor.name
        for operator in operators().values()
        for tensor in operator.contract.outputs
        if tensor.compare == "rulebook"
    }
    for text in compare:
        name, _, form = text.partition("=")
        if form != "canonical":
            raise InputError(f"--compare {text}: expected OUTPUT=canonical")
        if name not in known:
            raise InputError(f"--compare {text}: no output {name!r} can be{did_you_mean(name, known)}")


def report_files(out: Path, given: Given, base: Path | None = None) -> ReportFiles | None:
    """Return the reports of a run that are to be written, None if there is none; base is a run to compare with."""
    from mluops_cli.reports.ci import detect_server
    from mluops_cli.reports.dispatch import ReportFiles

    ci = detect_server() if given["ci"] == "auto" else given["ci"]
    wanted = {name: given[name] for name in REPORTS}
    if not ci and not any(wanted.values()):
        return None
    return ReportFiles(out, **wanted, lang=given["lang"], ci=ci, base=base, junit_prefix=given["junit_prefix"])
