"""`mluops list`: counts and bytes without any data."""

from __future__ import annotations

from pathlib import Path

from tests.mluops_cli.conftest import Cli


def test_the_network_suite_of_masked_im2col_is_counted_by_hand(cli: Cli) -> None:
    ran = cli("list", "masked_im2col_forward")
    assert ran.code == 0
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in ran.out.splitlines()}
    # Two scales, each in float and half: feature 256*20*20, two masks of 200, data_col 2304*200 and 256*200.
    elements = 2 * 256 * 20 * 20 + 2304 * 200 + 256 * 200
    size = elements * (4 + 2) + 4 * 2 * 200 * 4
    assert rows["masked_im2col_forward", "network"] == ["4", f"{size / 2**20:.1f}", "MiB"]


def test_all_operators_are_listed_and_summed(cli: Cli) -> None:
    ran = cli("list")
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert {"psamask_forward", "psamask_backward", "masked_im2col_forward"} <= {line[0] for line in lines}
    assert lines[-1][0] == "all"
    assert int(lines[-1][1]) == sum(int(line[2]) for line in lines[1:-1])


def test_an_operator_that_does_not_exist_is_an_error(cli: Cli) -> None:
    ran = cli("list", "psamask_forwrad")
    assert (ran.code, ran.err) == (2, "unknown operator 'psamask_forwrad': did you mean 'psamask_forward'?\n")


def test_d19_the_cases_of_given_specs_are_counted(cli: Cli, tmp_path: Path) -> None:
    entry = "{name: a, sizes: {N: 2, H: 3, W: 4}, params: {psa_type: 0, h_mask: 1, w_mask: 5}, matrix: {seed: [1, 2]}}"
    (tmp_path / "a.yaml").write_text(f"op: psamask_forward\nsuites: {{mine: [{entry}]}}\n")
    ran = cli("list", "--spec", tmp_path)
    # Two cases, each of x [2, 3, 4, 5] and y [2, 3, 4, 12] in float.
    size = 2 * (120 + 288) * 4
    assert [line.split() for line in ran.out.splitlines()[1:]] == [
        ["psamask_forward", "mine", "2", f"{size / 1024:.1f}", "KiB"], ["all", "2", f"{size / 1024:.1f}", "KiB"],
    ]  # fmt: skip
    ran = cli("list", "psamask_backward", "--spec", tmp_path)
    assert ran.out.splitlines()[1].split() == ["all", "0", "0", "B"]
