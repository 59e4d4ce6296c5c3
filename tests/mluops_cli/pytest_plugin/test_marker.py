"""@pytest.mark.mluops: which tests it makes, and how pytest selects among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.pytest_plugin.conftest import PLUGIN, RunPytest, run_process, write

# Of cases/psamask_forward.yaml and cases/_psamask.yaml.
DEMO = ["empty", "even_mask", "nan_inf", "psa_type_2", "square_collect", "square_distribute"]
SPEC = """
op: psamask_forward
defaults: {sizes: {N: 1, H: 3, W: 4}, params: {psa_type: collect, h_mask: 3, w_mask: 4}}
suites:
  network:
    - name: large
  mine:
    - name: first
      tags: [quick, skip, "breaks:rule", two words]
    - name: second
  "yours-2":
    - name: third
"""


def module(mark: str, body: str = "mluops_case.run(kernels.right)") -> str:
    """A module with one test that has the marker."""
    return f"import pytest, kernels\n@pytest.mark.mluops({mark})\ndef test_it(mluops_case):\n    {body}\n"


def ids(result: pytest.RunResult) -> list[str]:
    """The ids of the collected tests, of --collect-only -q."""
    return [line for line in result.outlines if "::" in line]


def test_a_test_per_case_with_the_case_id(folder: Path, run_pytest: RunPytest) -> None:
    write(folder, test_a=module("'psamask_forward', suite='demo'"))
    found = ids(run_pytest("--collect-only", "-q"))
    assert found == [f"test_a.py::test_it[psamask_forward/demo/{name}]" for name in DEMO]
    run_pytest().assert_outcomes(passed=6)


def test_without_suite_all_but_network(folder: Path, run_pytest: RunPytest) -> None:
    (folder / "specs").mkdir()
    (folder / "specs" / "own.yaml").write_text(SPEC)
    write(
        folder,
        test_a=module("spec='specs/own.yaml'"),
        test_b=module("'psamask_forward', spec=['specs'], suite=['network', 'mine']"),
        test_c=module("'roi_crop_forward', 'psamask_forward', spec='specs', suite='network,yours-2'"),
    )
    found = [each.replace("psamask_forward/", "") for each in ids(run_pytest("--collect-only", "-q"))]
    assert found == [
        "test_a.py::test_it[mine/first]",
        "test_a.py::test_it[mine/second]",
        "test_a.py::test_it[yours-2/third]",
        "test_b.py::test_it[mine/first]",
        "test_b.py::test_it[mine/second]",
        "test_b.py::test_it[network/large]",
        "test_c.py::test_it[network/large]",
        "test_c.py::test_it[yours-2/third]",
    ]


def test_built_in_suites_but_network(folder: Path, run_pytest: RunPytest) -> None:
    write(folder, test_a=module("'psamask_forward'"))
    found = ids(run_pytest("--collect-only", "-q"))
    suites = {each.split("/")[1] for each in found}
    assert suites == {"boundary", "general", "nan_inf", "zero_element", "invalid", "demo"}


def test_specs_are_named_from_the_folder_of_the_test(folder: Path, run_pytest: RunPytest) -> None:
    (folder / "inside").mkdir()
    (folder / "inside" / "own.yaml").write_text(SPEC)
    own = "import pytest\n@pytest.mark.mluops(spec='own.yaml')\ndef test_it(mluops_case): ...\n"
    (folder / "inside" / "test_a.py").write_text(own)
    run_pytest("inside").assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("-m", "mine"), "first second"),
        (("-m", "quick"), "first"),
        (("-m", "mluops and not mine"), "third"),
        (("-m", "yours-2"), "third"),
        (("-k", "psamask_forward/mine/second or third"), "second third"),
        (("-k", "yours"), "third"),
    ],
)
def test_suites_and_tags_are_markers(
    arguments: tuple[str, ...], names: str, folder: Path, run_pytest: RunPytest
) -> None:
    (folder / "own.yaml").write_text(SPEC)
    write(folder, test_a=module("spec='own.yaml'"))
    found = ids(run_pytest("--collect-only", "-q", *arguments))
    assert [each.rpartition("/")[2].rstrip("]") for each in found] == names.split()


def test_a_tag_does_not_skip(folder: Path, run_pytest: RunPytest) -> None:
    (folder / "own.yaml").write_text(SPEC)
    write(folder, test_a=module("spec='own.yaml', suite='mine'"))
    run_pytest().assert_outcomes(passed=2)


def test_markers_of_one_place_add_up_and_the_nearest_place_counts(folder: Path, run_pytest: RunPytest) -> None:
    (folder / "own.yaml").write_text(SPEC)
    write(
        folder,
        test_a="""
        import pytest
        pytestmark = pytest.mark.mluops(spec="own.yaml", suite="mine")

        def test_of_module(mluops_case): ...

        def test_without_the_fixture(): ...

        @pytest.mark.mluops(spec="own.yaml", suite="network")
        class TestClass:
            def test_of_class(self, mluops_case): ...

            @pytest.mark.mluops(spec="own.yaml", suite="yours-2")
            @pytest.mark.mluops(spec="own.yaml", suite="yours-2,network")
            def test_own(self, mluops_case): ...
        """,
    )
    found = [
        each.partition("::")[2].replace("psamask_forward/", "") for each in ids(run_pytest("--collect-only", "-q"))
    ]
    assert sorted(found) == [
        "TestClass::test_of_class[network/large]",
        "TestClass::test_own[network/large]",
        "TestClass::test_own[yours-2/third]",
        "test_of_module[mine/first]",
        "test_of_module[mine/second]",
        "test_without_the_fixture",
    ]


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("'psamask_forwrd'", "unknown operator 'psamask_forwrd': did you mean 'psamask_forward'*"),
        ("'psamask_forward', suite='bondary'", "unknown suite 'bondary': did you mean 'boundary'*"),
        ("'psamask_forward', sute='demo'", "it got an unexpected keyword argument 'sute'*"),
        ("'psamask_forward', suite='exact'", "('psamask_forward', suite='exact') selects no case"),
        ("'psamask_forward', seed='x'", "seed: found 'x', expected an integer from 0 to 2^64 - 1"),
        ("'psamask_forward', seed=-1", "seed: found -1, expected an integer from 0 to 2^64 - 1"),
        ("'psamask_forward', seed=2**64", f"seed: found {2**64}, expected an integer from 0 to 2^64 - 1"),
        ("'psamask_forward', seed=1.5", "seed: found 1.5, expected an integer from 0 to 2^64 - 1"),
        ("'psamask_forward', options=['-x']", "options: found ?'-x'], expected one text such as '--bound fail'"),
        ("'psamask_forward', suite=3, spec=4", "suite: found 3, *; spec: found 4, expected a path or a list of them"),
        ("'psamask_forward', suite=['demo', 3]", "suite: found 3, expected *"),
        ("7", "operators: found 7, expected the name of an operator"),
        ("['psamask_forward']", "operators: found ?'psamask_forward'], expected the name of an operator"),
        ("'psamask_forward', spec='none.yaml'", "*none.yaml*"),
        ("'psamask_forward', options='--bound nope'", "options '--bound nope': *'nope' is not one of*"),
        ("'psamask_forward', options='--impl tiled'", "options '--impl tiled': No such option*"),
        ("'psamask_forward', options='--compare \"'", "options *: No closing quotation"),
    ],
)
def test_a_wrong_marker_is_one_message(mark: str, words: str, folder: Path, run_pytest: RunPytest) -> None:
    write(folder, test_a=module(mark))
    result = run_pytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"@pytest.mark.mluops*{words}"])
    assert not any("Traceback" in line or "marker.py" in line for line in result.outlines), result.outlines


def test_what_is_no_kernel_is_one_line(folder: Path, run_pytest: RunPytest) -> None:
    write(folder, test_a=module("'psamask_forward', suite='demo'", "mluops_case.run('nofile.py:x')"))
    result = run_pytest("-k", "square_collect")
    result.assert_outcomes(failed=1, deselected=5)
    result.stdout.fnmatch_lines(["mluops_case.run: no such Python file: *nofile.py"])
    assert not any("case_in_test.py" in line or "loading.py" in line for line in result.outlines), result.outlines


def test_marker_and_fixture_need_each_other(folder: Path, run_pytest: RunPytest) -> None:
    write(
        folder,
        test_a="import pytest\n@pytest.mark.mluops('psamask_forward')\ndef test_it(): ...\n",
        test_b="def test_it(mluops_case): ...\n",
    )
    result = run_pytest("--continue-on-collection-errors")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["a test with @pytest.mark.mluops takes the fixture mluops_case"])
    result.stdout.fnmatch_lines(["*the fixture mluops_case needs @pytest.mark.mluops(OPERATOR) on the test"])


def test_the_diagnosis_is_the_text_of_the_failure(folder: Path, run_pytest: RunPytest) -> None:
    write(folder, test_a=module("'psamask_forward', suite='boundary'", "mluops_case.run(kernels.shifted)"))
    result = run_pytest("-k", "row_collect", "-rf")
    result.assert_outcomes(failed=1, deselected=len(ids(run_pytest("--collect-only", "-q"))) - 1)
    result.stdout.fnmatch_lines(
        [
            ">       mluops_case.run(kernels.shifted)",
            "E       AssertionError: FAIL psamask_forward/boundary/row_collect: y: * elements wrong (*; "
            "the baseline shifted by * along axis 3*",
            "test_a.py:4: AssertionError",  # the frames of mluops are hidden
        ]
    )


def test_an_option_of_run_judges(folder: Path, run_pytest: RunPytest) -> None:
    write(
        folder,
        test_a=module("'voxel_pooling_forward', suite='demo'", "mluops_case.run(kernels.imprecise)"),
        test_b=module(
            "'voxel_pooling_forward', suite='demo', options='--bound fail'", "mluops_case.run(kernels.imprecise)"
        ),
    )
    result = run_pytest("-k", "small")
    result.assert_outcomes(passed=1, failed=1, deselected=8)
    result.stdout.fnmatch_lines(["*MluopsWarning: voxel_pooling_forward/demo/small: beyond the error bound: *"])
    strict = run_pytest("-k", "small", "-W", "error::mluops_cli.pytest_plugin.MluopsWarning", "test_a.py")
    strict.assert_outcomes(failed=1, deselected=4)


def test_not_supported_skips_with_the_reason(folder: Path, run_pytest: RunPytest) -> None:
    write(folder, test_a=module("'psamask_forward', suite='demo'", "mluops_case.check(status='NOT_SUPPORTED')"))
    result = run_pytest("-rs", "-k", "square_collect")
    result.assert_outcomes(skipped=1, deselected=5)
    result.stdout.fnmatch_lines(["SKIPPED * test_a.py:4: psamask_forward/demo/square_collect: *says NOT_SUPPORTED"])


def test_last_failed_and_exitfirst(folder: Path, run_pytest: RunPytest) -> None:
    write(
        folder,
        test_a=module(
            "'psamask_forward', suite='demo'", "assert mluops_case.id[21:] not in ('nan_inf', 'square_collect')"
        ),
    )
    run_pytest("-x", cache=True).assert_outcomes(passed=2, failed=1)
    run_pytest("--lf", cache=True).assert_outcomes(failed=1)


UNDECIDED = """
op: roi_crop_forward
suites:
  mine:
    - name: undecided
      inputs:
        input: {shape: [1, 4, 4, 2], dist: {uniform: [-1, 1], nan: 0.9}}
        grid: {shape: [1, 2, 2, 2], dist: {constant: 0.33333334}}
    - name: right
      inputs:
        input: {shape: [1, 4, 4, 2]}
        grid: {shape: [1, 2, 2, 2]}
"""


def test_a_case_that_can_not_be_made_is_one_message(folder: Path, run_pytest: RunPytest) -> None:
    (folder / "own.yaml").write_text(UNDECIDED)
    write(folder, test_a=module("spec='own.yaml'"))
    result = run_pytest()
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["own.yaml:5: * may or may not be NaN or Inf in a correct kernel*"])
    assert not any("Traceback" in line or "marker.py" in line for line in result.outlines)


@pytest.mark.slow
def test_with_xdist(folder: Path, run_pytest: RunPytest, cli: Cli) -> None:
    """In worker processes, which collect for themselves: their ids must agree."""
    write(folder, test_a=module("'psamask_forward', suite='demo'"))
    cli("gen", "psamask_forward", "--suite", "demo", "--out", folder / "cases")
    ran = run_process(folder, *PLUGIN, "-n", "1", "--strict-markers", "--mluops", "cases", "test_a.py", "-m", "demo")
    ran.assert_outcomes(passed=12)
