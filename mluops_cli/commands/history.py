"""`mluops history`: runs over time, and what changed when."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import rich_click as click

from mluops_cli.commands.options import keywords_option
from mluops_cli.commands.outcomes import folder
from mluops_cli.commands.problems import brief, none_selected
from mluops_cli.core.statuses import PASSED

_COMMITS: Final = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT")  # of GitHub, GitLab, Jenkins
_SHORT: Final = 12  # characters of a commit


def _file_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--file",
        default="mluops-history.sqlite",
        show_default=True,
        type=click.Path(dir_okay=False, path_type=Path),
        help="The history, to be cached or committed; its folder must be there.",
    )(command)


@click.group(epilog="Example: mluops history add mluops-out && mluops history trend -k network")
def command() -> None:
    """Keep the results of runs in a SQLite file, and say what changed at which run."""


@command.command(epilog="Example: mluops history add mluops-out --ref $(git rev-parse HEAD)")
@folder("out", "OUT")
@click.option("--ref", metavar="COMMIT", help="What was tested.  [default: the CI server's commit, else git's HEAD]")
@_file_option
def add(out: Path, ref: str | None, file: Path) -> int:
    """Add the run in OUT: verdicts, worst figures, error bound ratios, and latencies that --perf measured.

    A run that is there already is not added again. Exit code: 0 added or there, 2 OUT is no run, empty, or a shard.
    """
    from mluops_cli.commands.outcomes import read
    from mluops_cli.history.store import History
    from mluops_cli.results.finished import require_whole
    from schemas.suggest import counted

    found = read(out)
    require_whole(found)  # before a file is made
    commit = _commit() if ref is None else ref
    with closing(History(file, create=True)) as history:
        run, new = history.add(found, commit)
    if not new:
        click.echo(f"{out} is in {file} already: {run}")
        return PASSED
    click.echo(f"{run}: {counted(found.tally.total, 'case')}, {found.verdict}")
    return PASSED


def _commit() -> str:
    """The commit that is tested, as far as the environment or git says it."""
    for name in _COMMITS:
        if found := os.environ.get(name):
            return found[:_SHORT]
    with suppress(OSError, subprocess.SubprocessError):
        asked = ["git", "rev-parse", f"--short={_SHORT}", "HEAD"]
        done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10)
        return done.stdout.strip()
    return ""


@command.command(epilog="Example: mluops history trend -k 'psamask and network'")
@keywords_option
@click.option(
    "--html",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="One page that needs no network: verdicts of each suite, latencies of each case over the runs.",
)
@_file_option
def trend(keywords: str | None, html: Path | None, file: Path) -> int:
    """Say which cases became slower or faster at which run, and since when cases fail.

    Latencies are compared within one implementation, device, option set and case file, where ten runs measured them.
    A level of three runs that differs by more than 3 % and by more than the scatter explains is a change.
    """
    from mluops_cli.core.filters import parse_keywords
    from mluops_cli.core.output_files import STDOUT, refuse_inputs, write_text
    from mluops_cli.history.store import History
    from mluops_cli.history.trend_page import trend_page
    from mluops_cli.history.trends import findings
    from schemas.suggest import counted

    refuse_inputs({"--html": html}, [file])
    matches = parse_keywords(keywords) if keywords is not None else lambda case: True
    with closing(History(file)) as history:
        runs, number = history.runs, sum(map(matches, history.cases))
        if keywords is not None and not number:
            return none_selected()
        found = sorted(findings(history, matches), key=lambda each: (-each.since.number, each.case))
        if html is not None:
            write_text(html, trend_page(history, matches, found))
    if html == STDOUT:
        return PASSED
    for each in found:
        click.echo(brief(str(each)))
    changes = counted(len(found), "change") if found else "no failing case and no changed latency"
    click.echo(f"{changes} in {counted(number, 'case')} and {counted(len(runs), 'run')}")
    return PASSED


@command.command(epilog="Example: mluops history bisect psamask_forward/network/psanet_769")
@click.argument("case", metavar="CASE")
@_file_option
def bisect(case: str, file: Path) -> int:
    """Say between which two runs a case's verdict or latency changed, and which commits lie between them.

    CASE is its id, or a part of it that no other case of the history has.
    """
    from mluops_cli.commands.named_cases import case_named
    from mluops_cli.history.store import History
    from mluops_cli.history.trends import findings
    from schemas.suggest import counted

    with closing(History(file)) as history:
        meant = case_named(case, history.cases, "case", f"of {file}")
        runs, found = history.runs, list(findings(history, lambda name: name == meant, every=True))
    for each in found:
        click.echo(brief(str(each)))
        if each.before is None:
            click.echo("  in all runs that have this case file")
        else:
            refs = each.before.ref, each.since.ref
            commits = f": git log {refs[0]}..{refs[1]}" if all(refs) and refs[0] != refs[1] else ""
            click.echo(f"  not yet in {each.before}{commits}")
    if not found:
        click.echo(f"no change in {counted(len(runs), 'run')}")
    return PASSED
