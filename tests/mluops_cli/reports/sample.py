"""Records of a run that never was, as the supervisor would write them: for the tests of reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SUITES = ("network", "boundary", "general", "nan_inf", "zero_element", "invalid")
HOSTILE = {
    "script": "<script>window.hit=1</script><img src=x onerror='window.hit=2'>",
    "cdata": "]]> <![CDATA[ <!-- --> &amp; &#0;",
    "nul": "a\x00b\x07",
    "ansi": "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "surrogate": "half \ud800 pair \udfff",
    "right_to_left": "abc\u202efdp.exe\u202c \u2067x\u2069 עברית",
    "long": "n" * 10_000,
    "lines": "one\r\ntwo\nthree\u2028four::error::boo%0A::warning file=x::y",
    "markdown": "| `a` | **b** | [x](javascript:alert(1)) ``` \n# h",
    "formula": '=HYPERLINK("http://x","y")',
    "closing": "</title></script></style></pre>{{ 7*7 }}{% raw %}",
}


def criterion(value: float | None, threshold: float, **more: Any) -> dict[str, Any]:
    """One criterion as judging's as_record makes it."""
    passed = value is not None and value <= threshold
    made = {
        "name": "diff1", "value": value, "threshold": threshold, "source": "category composite", "passed": passed,
        "smallest_passing": value, "judged": True, "margin": value / threshold if value and threshold else None,
    }  # fmt: skip
    return made | more


DIAGNOSIS = {
    "wrong": 96, "share": 0.015,
    "words": "96 of 6400 elements wrong (0.015); zeros instead of values; all in the last 3 of axis 2",
    "first": [{"at": [0, 0, 61], "baseline": 0.25, "output": 0.0, "ulp": 1048576}],
    "worst": [{"at": [1, 3, 63], "baseline": 0.96, "output": None, "ulp": None}],
    "regions": [{"kind": "tail", "axis": 2, "first": 61, "last": 63}],
    "patterns": [{"word": "zero", "text": "zeros instead of values"}],
    "density": [0] * 10 + [3, 9, 24, 60] + [0] * 18, "histogram": [[-3, 4], [-1, 52], [0, 40]],
}  # fmt: skip


def record(case: str, status: str = "pass", **more: Any) -> dict[str, Any]:
    """One line of results.jsonl; case is operator/suite/name."""
    op, suite, *_ = case.split("/")
    value = 0.5 if status == "fail" else 1e-4
    outputs: dict[str, Any] = {}
    if status in ("pass", "fail", "mistrusted", "waived", "xpass"):
        outputs = {"y": {"shape": [2, 50, 64], "passed": status != "fail", "criteria": [criterion(value, 3e-3)]}}
    if status in ("fail", "waived"):
        outputs["y"]["diagnosis"] = DIAGNOSIS
    made = {
        "case": case, "op": op, "suite": suite, "file": f"cases/{case}.pb", "impl": "tiled", "status": status,
        "reason": "" if status == "pass" else f"the reason of a {status}", "outputs": outputs,
        "operator_status": "SUCCESS", "expected_status": ["SUCCESS"], "latency_us": 120.5, "io_efficiency": 0.45,
        "compute_efficiency": 0.2, "workspace_bytes": 1024, "repeats": 1, "bit_identical": None,
        "blame": "implementation" if status == "error" else None, "seconds": 0.0123, "printed": "",
        "repro": f"mluops run cases/{case}.pb --impl tiled", "place": f"cases/{op}.yaml:12", "tags": [],
        "tensors": {
            "x": {"role": "input", "dtype": "float", "layout": "NHWC", "dims": [2, 50, 64]},
            "y": {"role": "output", "dtype": "float", "layout": "NHWC", "dims": [2, 50, 64]},
        },
    }  # fmt: skip
    return made | more


def write_run(out: Path, records: list[dict[str, Any]], **summary: Any) -> Path:
    """A run's folder with these records."""
    out.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(each, allow_nan=False) + "\n" for each in records)
    (out / "results.jsonl").write_text(lines, encoding="utf-8")
    counts: dict[str, int] = {}
    for each in records:
        counts[each["status"]] = counts.get(each["status"], 0) + 1
    made = {
        "mluops": "0.1.0", "impl": "tiled", "cases": len(records), "not_run": 0, "counts": counts, "exit_code": 1,
        "validated": True, "interrupted": False, "strict": False, "seconds": 12.5,
        "started": "2026-02-03T04:05:06+00:00",
        "environment": {"platform": "linux-x86_64", "python": "3.11.7", "cores": 2},
    }  # fmt: skip
    (out / "summary.json").write_text(json.dumps(made | summary), encoding="utf-8")
    return out


def mixed_records() -> list[dict[str, Any]]:
    """3 failures, 1 crash, 1 timeout, 1 waived, 1 mistrusted and 300 passes, over seven operators and six suites."""
    ops = (
        "psamask_forward", "psamask_backward", "masked_im2col_forward", "roi_crop_forward", "roi_crop_backward",
        "voxel_pooling_forward", "get_indice_pairs",
    )  # fmt: skip
    made = []
    for number in range(300):
        op, suite = ops[number % 7], SUITES[number % 6]
        io = 0.05 * 1.03 ** (number % 97)
        metrics: dict[str, Any] = {
            "latency_us": 10.0 * 1.02**number,
            "io_efficiency": min(io, 0.95),
            "compute_efficiency": (number % 7) * 0.11,
        }
        made.append(record(f"{op}/{suite}/case_{number:03}", **metrics))
    made += [record(f"psamask_forward/boundary/tail_{number}", "fail") for number in range(3)]
    printed = "Traceback:\n  \x1b[31mboom\x1b[0m"
    made.append(record("roi_crop_forward/network/large", "crash", reason="killed by SIGSEGV", printed=printed))
    made.append(record("roi_crop_backward/general/endless", "timeout", reason="no answer within 300 s"))
    waiver = {"case": "voxel_pooling_forward/network/*", "owner": "ann", "issue": "#7", "expires": "2099-01-01"}
    made.append(record("voxel_pooling_forward/network/known", "waived", waiver=waiver))
    made.append(record("get_indice_pairs/zero_element/zeros", "mistrusted", reason="y: all of the baseline is 0"))
    return made


def hostile_records() -> list[dict[str, Any]]:
    """Failing cases with hostile names, reasons, printed text and names of outputs, among two passes."""
    made = [record("op/network/a"), record("op/network/b")]
    for number, (word, text) in enumerate(HOSTILE.items()):
        status = ("fail", "crash", "error", "skip", "mistrusted", "xpass", "waived")[number % 7]
        each = record(
            f"op/{word}/{text}", status, reason=text, printed=text, repro=f"mluops run {text!r}", place=f"{text}:3"
        )
        each["suite"] = text[:500]
        each["outputs"] = {
            text[:500]: {
                "shape": [1],
                "criteria": [criterion(0.5, 0.1, source=text)],
                "diagnosis": DIAGNOSIS | {"words": text},
            }
        }
        made.append(each)
    return made


def of_outputs(
    case: str, status: str = "pass", beyond: bool | None = None, **outputs: dict[str, Any]
) -> dict[str, Any]:
    """A record with what judging and repeats say of its outputs besides the criteria."""
    made = record(case, status, beyond_bound=beyond)
    return made | {"outputs": {name: {"criteria": [criterion(1e-4, 3e-3)], **found} for name, found in outputs.items()}}


BOUND_SENTENCE = "[0, 3]: 9.69e+03 x what any order of float additions explains"


def doubtful_records() -> list[dict[str, Any]]:
    """Passes within and beyond the error bound, with right atomics, with a race, and a failure that is beyond too."""
    beyond = {"bound_ratio": 9690.0, "bound_sentence": BOUND_SENTENCE}
    made = [
        of_outputs("op/general/within", beyond=False, y={"bound_ratio": 0.5, "repeat": "identical"}),
        of_outputs("op/general/beyond", beyond=True, y=beyond, z={"bound_ratio": 0.1}),
        of_outputs("op/general/atomics", beyond=False, y={"bound_ratio": 0.25, "repeat": "varies_within_bound"}),
        of_outputs(
            "op/network/race", y={"repeat": "varies_beyond_bound", "bound_ratio": None}, z={"repeat": "identical"}
        ),
        of_outputs("op/network/wrong", "fail", beyond=True, y=beyond | {"bound_ratio": "inf"}),
        record("other/general/plain"),
    ]  # fmt: skip
    made[3]["repeats"] = 3
    return made
