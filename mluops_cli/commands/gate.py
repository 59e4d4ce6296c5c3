"""`mluops gate`: whether a run keeps the rules of a policy."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from mluops_cli.commands.outcomes import folder, waivers_option
from mluops_cli.core.statuses import FAILED
from schemas.suggest import counted


@click.command(epilog="Example: mluops gate mluops-out --policy gate.yaml --base main-out --waivers waivers.yaml")
@folder("out", "OUT")
@click.option(
    "--policy", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE", help="gate.yaml."
)
@click.option(
    "--base", type=click.Path(exists=True, path_type=Path), metavar="OLD", help="The run that the policy compares with."
)
@waivers_option
def command(out: Path, policy: Path | None, base: Path | None, waivers: Path | None) -> int:
    """Check the run in OUT against a policy. Exit code: 0 every rule holds, 1 a rule is broken; one sentence for each.

    Without a policy: no fail, error, crash, timeout, xpass or mistrusted, at least one pass, and nothing left out.
    """
    from mluops_cli.commands.outcomes import read, read_whole
    from mluops_cli.results.gate import Policy, broken_rules, load_policy

    rules = load_policy(policy) if policy else Policy()
    run = read(out, waivers)
    broken = broken_rules(run, rules, read_whole(base) if base else None)
    for sentence in broken:
        click.echo(sentence)
    if broken:
        return FAILED
    counts = run.tally.counts
    others = ", ".join(f"{counts[status]} {status}" for status in ("waived", "skip", "empty") if counts[status])
    total = counted(run.tally.total, "case")
    click.echo(f"The gate holds: {counts['pass']} of {total} passed{f' ({others})' if others else ''}.")
    return 0
