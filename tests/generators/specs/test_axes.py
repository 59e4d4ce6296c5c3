"""What an entry varies: named lists, ranges, zip and sample; and where mistakes in them are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from generators.contracts.case import Case
from generators.specs.axes import axis_values, draw_axis
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from schemas.errors import InputError

SMALL = "sizes: {N: 2, H: 5, W: 7}, params: {psa_type: collect, h_mask: 3, w_mask: 4}"
LISTS = "lists: {aligned: [1, 64], few: 2..4, pairs: {a: 1}}\n"


def cases(folder: Path, *entries: str, head: str = LISTS, **options: Any) -> list[Case]:
    """The cases of entries `{name: ..., SMALL, ...}`; the first entry is in line 5."""
    path = folder / "a.yaml"
    lines = "".join(f"    - {entry}\n" for entry in entries)
    path.write_text(f"op: psamask_forward\n{head}suites:\n  s:\n{lines}", encoding="utf-8")
    return list(expand(load_spec(path), **options))


def names(folder: Path, text: str) -> list[str]:
    return [case.name for case in cases(folder, f"{{name: a, {SMALL}, {text}}}")]


def refusal(folder: Path, *entries: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        cases(folder, *entries)
    return str(caught.value).replace(f"{folder}{os.sep}", "").splitlines()


# ---- lists and ranges -----------------------------------------------------------------------------------------------


def test_an_axis_may_be_a_list_by_name_or_a_range(tmp_path: Path) -> None:
    assert names(tmp_path, "matrix: {sizes.H: aligned, sizes.N: few}") == [
        "a_h1_n2", "a_h1_n3", "a_h1_n4", "a_h64_n2", "a_h64_n3", "a_h64_n4",
    ]  # fmt: skip
    assert names(tmp_path, "matrix: {params.h_mask: 1..9..4, sizes.N: 3..3}") == [
        "a_h_mask1_n3", "a_h_mask5_n3", "a_h_mask9_n3",
    ]  # fmt: skip


def test_a_range_ends_at_or_before_its_last() -> None:
    assert list(axis_values("1..64..8", {})) == [1, 9, 17, 25, 33, 41, 49, 57]
    assert list(axis_values("-2..1", {})) == [-2, -1, 0, 1]


# ---- zip ------------------------------------------------------------------------------------------------------------


def test_a_zip_pairs_its_lists(tmp_path: Path) -> None:
    found = cases(
        tmp_path,
        f"{{name: a, {SMALL}, zip: [{{params.h_mask: [1, 2, 9], params.w_mask: 3..5}}]}}",
    )
    assert [(case.name, case.params["h_mask"], case.params["w_mask"]) for case in found] == [
        ("a_h_mask1_w_mask3", 1, 3), ("a_h_mask2_w_mask4", 2, 4), ("a_h_mask9_w_mask5", 9, 5),
    ]  # fmt: skip


def test_each_zip_is_one_more_dimension_after_the_matrix(tmp_path: Path) -> None:
    text = (
        "matrix: {params.psa_type: [collect, distribute]}, "
        "zip: [{params.h_mask: [1, 2], params.w_mask: [3, 4]}, {sizes.H: [8, 9], sizes.W: [7, 6]}], "
        "exclude: [{params.psa_type: collect, sizes.W: 6}, {params.h_mask: 2, params.w_mask: 4}], "
        "include: [{sizes.N: 1}]"
    )
    assert names(tmp_path, text) == [
        "a_collect_h_mask1_w_mask3_h8_w7", "a_distribute_h_mask1_w_mask3_h8_w7", "a_distribute_h_mask1_w_mask3_h9_w6",
        "a_n1",
    ]  # fmt: skip


def test_pairs_that_would_be_called_the_same_get_a_number(tmp_path: Path) -> None:
    assert names(tmp_path, "zip: [{seed: [1, 1], sizes.N: [2, 2]}]") == ["a_seed1_n2.0", "a_seed1_n2.1"]


# ---- sample ---------------------------------------------------------------------------------------------------------

SAMPLE = (
    "sample: {count: 40, over: {params.h_mask: {range: [1, 33], align: 2}, sizes.H: {log: [1, 1024], align: 64}, "
    "params.psa_type: [collect, distribute], sizes.N: few}}"
)


def test_samples_are_drawn_from_ranges_logs_lists_and_names(tmp_path: Path) -> None:
    found = cases(tmp_path, f"{{name: a, {SMALL}, {SAMPLE}}}")
    assert [case.name for case in found] == [f"a_s{number:03d}" for number in range(40)]
    drawn = [(case.params["h_mask"], case.inputs[0].dims[1], case.params["psa_type"], case.inputs[0].dims[0])
             for case in found]  # fmt: skip
    h_masks, heights, types, batches = (set(column) for column in zip(*drawn, strict=True))
    assert h_masks <= set(range(2, 33, 2))
    assert len(h_masks) > 8
    assert heights <= set(range(64, 1025, 64))
    assert {64} < heights
    assert types == {0, 1}
    assert batches == {2, 3, 4}


def test_a_sample_depends_on_seed_entry_and_number_alone(tmp_path: Path) -> None:
    def drawn(found: list[Case]) -> list[Any]:
        return [(case.params, case.inputs[0].dims) for case in found if case.name.startswith("a_")]

    own = f"{{name: a, {SMALL}, {SAMPLE}}}"
    first = drawn(cases(tmp_path, own))
    assert drawn(cases(tmp_path, f"{{name: z, {SMALL}, {SAMPLE}}}", own, seed=9)) == first
    assert drawn(cases(tmp_path, own.replace("count: 40", "count: 50")))[:40] == first
    assert drawn(cases(tmp_path, own.replace("count: 40", "count: 40, seed: 2"))) != first
    assert [each for _, each in drawn(cases(tmp_path, own.replace("{name: a", "{name: a_b")))] != [
        each for _, each in first
    ]
    # Another axis doesn't change what the others draw.
    more = drawn(cases(tmp_path, own.replace("over: {", "over: {params.w_mask: 1..99, ")))
    assert [(params["h_mask"], dims[:2]) for params, dims in more] == [
        (params["h_mask"], dims[:2]) for params, dims in first
    ]


def test_each_point_of_the_grid_has_samples_of_its_own_and_include_none(tmp_path: Path) -> None:
    text = "matrix: {sizes.N: [1, 2]}, sample: {count: 9, over: {sizes.H: 1..999}}, include: [{sizes.N: 7}]"
    found = cases(tmp_path, f"{{name: a, {SMALL}, {text}}}")
    assert [case.name for case in found] == [
        *(f"a_n1_s00{number}" for number in range(9)), *(f"a_n2_s00{number}" for number in range(9)), "a_n7",
    ]  # fmt: skip
    heights = [case.inputs[0].dims[1] for case in found]
    assert heights[:9] != heights[9:18]
    assert heights[18] == 5


def test_a_sample_that_breaks_the_contract_is_drawn_anew(tmp_path: Path) -> None:
    """An asserted output holds only where h_mask*w_mask is 12: 3 x 4 and 4 x 3 of the 9 possible pairs, say."""
    text = (
        "name: a, params: {psa_type: 0}, inputs: {x: {shape: [1, 5, 7, 12]}}, "
        "sample: {count: 8, over: {params.h_mask: 2..4, params.w_mask: 2..4}}"
    )
    pairs = [(case.params["h_mask"], case.params["w_mask"]) for case in cases(tmp_path, f"{{{text}}}")]
    assert set(pairs) == {(3, 4), (4, 3)}
    assert len(pairs) == 8


def test_a_sample_that_never_makes_a_case_says_why(tmp_path: Path) -> None:
    (line,) = refusal(tmp_path, f"{{name: a, {SMALL}, sample: {{count: 2, over: {{params.h_mask: -9..0}}}}}}")
    column = 7 + len(f"{{name: a, {SMALL}, sample: {{count: 2, over: {{params.h_mask: ")
    assert line.startswith(
        f"a.yaml:5:{column}: suites.s[0].sample.over.params.h_mask: none of 100 draws is a legal case, the last: "
    )
    assert line.endswith("expected 1 or more (case a_s000)")


def test_log_draws_are_uniform_per_octave() -> None:
    """A log-uniform number of [1, 1023] falls into each of its ten octaves about equally often."""
    drawn = [draw_axis({"log": [1, 1023]}, {}, (1, "log", number)) for number in range(2000)]
    octaves = [each.bit_length() for each in drawn]
    assert all(150 < octaves.count(octave) < 250 for octave in range(1, 11))
    assert (min(drawn), max(drawn) > 1000) == (1, True)
    assert {draw_axis({"range": [5, 8], "align": 3}, {}, (number,)) for number in range(9)} == {6}
    # Pinned: a change here changes the shapes of sampled cases.
    assert drawn[:5] == [1, 10, 45, 81, 4]


# ---- mistakes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("matrix: {sizes.H: ^alinged}",
         "matrix.sizes.H: no list is called 'alinged': did you mean 'aligned'?"),
        ("matrix: {sizes.H: ^pairs}", "matrix.sizes.H: 'pairs' is no list of at least one value"),
        ("matrix: {sizes.H: ^4..1}", "matrix.sizes.H: range 4..1 needs first <= last and a step of 1 or more"),
        ("matrix: {sizes.H: ^1..4..0}", "matrix.sizes.H: range 1..4..0 needs first <= last and a step of 1 or more"),
        ("matrix: {sizes.H: ^0..1000000}", "matrix.sizes.H: range 0..1000000 has more than 1000000 values"),
        ("matrix: {sizes.H: ^-1..4}", "matrix.sizes.H: found -1, expected an integer of 0 or more, or an expression"),
        ("matrix: {params.h_mask: [1, ^1e-3]}", "matrix.params.h_mask[1]: h_mask is 0.001, expected an integer"),
        ("matrix: {params.h_mask: ^0..2}", "matrix.params.h_mask: h_mask is 0, expected 1 or more"),
        ("zip: [{params.h_mask: [3, ^0], sizes.H: aligned}]",
         "zip[0].params.h_mask[1]: h_mask is 0, expected 1 or more"),
        ("zip: ^{sizes.H: [1]}", "zip: found a mapping, expected a list"),
        ("zip: [^{sizes.H: [1, 2], sizes.W: few}]",
         "zip[0]: a zip pairs lists of one length, found 2 of sizes.H, 3 of sizes.W"),
        ("zip: [{sizes.H: [1, 2], sizes.W: [3, ^x.y.z: 4]}]", "zip[0].sizes.W[1]: found a mapping, "
         "expected an integer of 0 or more, or an expression"),
        ("zip: [{^sizes.Z: [1]}]", "zip[0].sizes.Z: psamask_forward has no size 'Z': expected one of H, N, W"),
        ("matrix: {sizes.H: [1]}, zip: [{^sizes.H: [1]}]", "zip[0].sizes.H: sizes.H is varied twice"),
        ("matrix: {sizes.H: [1]}, sample: {count: 1, over: {^sizes.H: few}}",
         "sample.over.sizes.H: sizes.H is varied twice"),
        ("zip: [{sizes.H: [1, 2]}], exclude: [{^sizes.W: 1}]",
         "exclude[0].sizes.W: 'sizes.W' is no axis of matrix or zip: did you mean 'sizes.H'?"),
        ("cover: ^2", "cover: cover needs a matrix or a zip"),
        ("include: [{sizes.H: 1}], cover: ^2", "cover: cover needs a matrix or a zip"),
        ("sample: {count: 1, over: {sizes.H: few}}, cover: ^2", "cover: cover needs a matrix or a zip"),
        ("matrix: {sizes.H: [1, 2], sizes.N: [1, 2]}, cover: ^3",
         "cover: cover is 3, expected at most the number of axes of matrix and zip, 2"),
        ("zip: [{sizes.H: [1, 2], sizes.N: [1, 2]}], cover: ^2",
         "cover: cover is 2, expected at most the number of axes of matrix and zip, 1"),
        ("matrix: {sizes.H: [1, 2], sizes.N: [1, 2]}, cover: ^1", "cover: found 1, expected an integer from 2 to 3"),
        ("matrix: {sizes.H: 1..50, sizes.N: 1..41}, cover: ^2",
         "cover: these axes have 2050 pairs of values, expected at most 2000"),
        ("matrix: {sizes.H: 1..20, sizes.N: 1..20, sizes.W: 1..20}, cover: ^3",
         "cover: these axes have 8000 triples of values, expected at most 2000"),
        ("matrix: {^cover: [2, 3]}", "matrix.cover: cover can't be varied"),
        ("sample: ^{over: {sizes.H: few}}", "sample: missing key 'count'"),
        ("sample: {count: ^0, over: {}}", "sample.count: found 0, expected an integer from 1 to 200000"),
        ("sample: {count: 1, ^ower: {}, over: {}}", "sample.ower: unknown key 'ower': did you mean 'over'?"),
        ("sample: {count: ^1000000000, over: {}}",
         "sample.count: found 1000000000, expected an integer from 1 to 200000"),
        ("sample: {count: 1, over: {sizes.H: {range: [1, 2], ^algn: 2}}}",
         "sample.over.sizes.H.algn: unknown key 'algn': did you mean 'align'?"),
        ("sample: {count: 1, over: {sizes.H: ^{}}}", "sample.over.sizes.H: missing key 'range'"),
        ("sample: {count: 1, over: {sizes.H: ^7}}", "sample.over.sizes.H: found 7, expected "
         "{range: [low, high], align: n}, {log: [low, high], align: n}, a list of at least one value, "
         "a range such as 1..64..8, or the name of a list"),
        ("matrix: {^h_mask: [1, 2]}", "matrix.h_mask: unknown key 'h_mask': did you mean 'params.h_mask'?"),
        ("zip: [{^H: [1, 2]}]", "zip[0].H: unknown key 'H': did you mean 'sizes.H'?"),
        ("sample: {count: 1, over: {^dtype: [half]}}",
         "sample.over.dtype: unknown key 'dtype': did you mean 'inputs.x.dtype'?"),
        ("include: [{^psa_typ: 0}]", "include[0].psa_typ: unknown key 'psa_typ': did you mean 'params.psa_type'?"),
        ("sample: {count: 1, over: {sizes.H: ^{range: [3, 5], align: 8}}}",
         "sample.over.sizes.H: no multiple of 8 lies in [3, 5]"),
        ("sample: {count: 1, over: {sizes.H: ^{range: [0, 100000000000000000000000]}}}",  # B3: it never ended
         "sample.over.sizes.H: range needs bounds below 2^63, found [0, 100000000000000000000000]"),
        ("sample: {count: 1, over: {sizes.H: ^{log: [1, 36893488147419103232]}}}",
         "sample.over.sizes.H: log needs bounds below 2^63, found [1, 36893488147419103232]"),
        ("sample: {count: 1, over: {sizes.H: ^{log: [0, 5]}}}",
         "sample.over.sizes.H: log needs bounds of 1 or more, found [0, 5]"),
        ("sample: {count: 1, over: {inputs.x.dtype: ^{range: [1, 5]}}}",
         "sample.over.inputs.x.dtype: unknown dtype 1: expected one of"),
        ("sample: {count: 1, over: {^params.hmask: few}}",
         "sample.over.params.hmask: psamask_forward has no parameter 'hmask': did you mean 'h_mask'?"),
        ("sample: {count: 1, over: {^zip: few}}", "sample.over.zip: zip can't be varied"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    """A ^ stands before the place that the message must name."""
    entry = f"{{name: a, {SMALL}, {text}}}"
    lines = refusal(tmp_path, entry.replace("^", ""))
    assert lines[0].startswith(f"a.yaml:5:{7 + entry.index('^')}: suites.s[0].{expected}")


def test_an_axis_of_the_defaults_is_known_to_the_entries(tmp_path: Path) -> None:
    head = f"{LISTS}defaults: {{matrix: {{sizes.H: aligned}}}}\n"
    found = cases(tmp_path, f"{{name: a, {SMALL}, exclude: [{{sizes.H: 1}}]}}", head=head)
    assert [case.name for case in found] == ["a_h64"]


def test_cover_in_the_defaults_is_that_of_the_entries(tmp_path: Path) -> None:
    head = f"{LISTS}defaults: {{cover: 2, matrix: {{sizes.H: aligned, sizes.N: aligned, sizes.W: aligned}}}}\n"
    assert len(cases(tmp_path, f"{{name: a, {SMALL}}}", head=head)) < 8
    path = tmp_path / "b.yaml"
    path.write_text(f"op: psamask_forward\ndefaults: {{cover: 2}}\nsuites:\n  s:\n    - {{name: a, {SMALL}}}\n")
    with pytest.raises(InputError, match=r"b.yaml:2:19: .*cover needs a matrix or a zip"):
        load_spec(path)
