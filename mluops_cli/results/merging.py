"""The shards of one run made into one run: `mluops merge`."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from mluops_cli.core.case_options import CaseOptions, read_options, repro_line
from mluops_cli.core.events import Loaded, RunStarted
from mluops_cli.core.filters import parse_shard
from mluops_cli.core.record import RESULTS, Record
from mluops_cli.core.statuses import FAILING, OUR_FAILURE
from mluops_cli.core.tally import Tally
from mluops_cli.results.finished import FinishedRun, read_run
from mluops_cli.results.jsonl import SUMMARY, counted_in_summary, open_locked, record_line, refuse_foreign
from mluops_cli.results.kept_cases import KeepFailures, copy_kept, outputs_path
from mluops_cli.results.origin import made_here, sign
from schemas.atomic_files import write_failure
from schemas.errors import InputError
from schemas.suggest import counted

_NAMED: Final = 5  # cases that a message names
_STAGE: Final = ".mluops-merge-"


@dataclass(frozen=True)
class Shard:
    """The folder of a shard's results: shard number (from 1) of count."""

    run: FinishedRun
    number: int
    count: int

    @property
    def name(self) -> str:
        """I/N, as --shard takes it."""
        return f"{self.number}/{self.count}"

    @property
    def folder(self) -> Path:
        """Where its results are."""
        return self.run.out

    @cached_property
    def options(self) -> CaseOptions:
        """The options that it was run with; InputError where the summary holds others."""
        summary = self.run.summary
        return read_options(summary.get("options") or {}, self.run.impl, str(self.folder / SUMMARY))


def read_shard(folder: Path) -> Shard:
    """Read the results of a shard; InputError where they are none, or were cut off."""
    run = read_run(folder)
    if not run.summary:
        raise InputError(f"{folder}: the run has no {SUMMARY}, so it did not finish: run this shard again")
    part, selection = run.summary.get("shard"), run.summary.get("selection")
    if not part or not isinstance(part, str):
        raise InputError(f"{folder}: not a shard: expected the --out folder of a `mluops run --shard I/N`")
    if not isinstance(selection, dict) or not isinstance(selection.get("cases"), int):
        raise InputError(f"{folder}: doesn't say of which cases it is a shard: run it again with this mluops")
    return Shard(run, *parse_shard(part))


def merge_shards(folders: Sequence[Path], out: Path) -> FinishedRun:
    """Merge the shards of one run into a folder equal to that of one run, and return that run.

    Records are sorted by case. What was kept of failing cases comes along. Earlier results in out are replaced.
    InputError, which names all that is wrong, where a shard is missing or there twice, where shards aren't of one run,
    or where out holds something else; out is left alone then.
    """
    shards = [read_shard(folder) for folder in folders]
    problems = [*_differences(shards)] or [*_missing(shards), *_doubled_cases(shards)]
    if problems:
        raise InputError("\n".join(problems))
    for shard in shards:
        if out.exists() and os.path.samefile(out, shard.folder):
            raise InputError(f"--out {out} is one of the shards: choose another folder")
    if out.exists():
        refuse_foreign(out)
    merged = _merged(shards, out)
    beside = out if out.is_dir() else out.parent  # on the same file system
    try:
        beside.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=_STAGE, dir=beside) as stage:
            _write(merged, shards, Path(stage))
            _install(merged, Path(stage))
    except OSError as error:
        raise write_failure(out, error) from None
    return merged


def _differences(shards: Sequence[Shard]) -> Iterator[str]:
    """What says that the shards aren't parts of one run: a sentence for whatever differs from the first shard."""
    first, *others = shards
    expected = _common(first)
    for shard in others:
        for what, found in _common(shard).items():
            if found != expected[what]:
                yield f"{shard.folder}: {what} {found}, expected {expected[what]} as in {first.folder}"


def _common(shard: Shard) -> dict[str, Any]:
    """What all shards of a run have in common, by the words of a message."""
    summary = shard.run.summary
    return {
        "implementation": shard.run.impl,
        **{f"option {each.name}": getattr(shard.options, each.name) for each in fields(CaseOptions)[1:]},
        "option strict": bool(summary.get("strict")),
        "number of shards": shard.count,
        "version of mluops": summary.get("mluops"),
        "selected": _selection(summary),
    }


def _selection(summary: Mapping[str, Any]) -> str:
    """The selected cases in words: their number, and the hash of all case files."""
    selection = summary["selection"]
    return f"{counted(selection['cases'], 'case')} with hash {selection.get('hash')}"


def _missing(shards: Sequence[Shard]) -> Iterator[str]:
    """Shards that are missing or there twice, and cases that no shard counts."""
    count, summary = shards[0].count, shards[0].run.summary
    by_number: defaultdict[int, list[Shard]] = defaultdict(list)
    for shard in shards:
        by_number[shard.number].append(shard)
    for number in range(1, count + 1):
        match by_number.get(number, []):
            case []:
                yield f"shard {number}/{count} is missing"
            case [_]:
                pass
            case several:
                yield f"shard {number}/{count} is there {len(several)} times: {_folders(several)}"
    found = sum(len(shard.run.records) + shard.run.not_run for shard in shards)
    if by_number.keys() == set(range(1, count + 1)) and found < summary["selection"]["cases"]:
        missing = summary["selection"]["cases"] - found
        yield f"{counted(missing, 'case is', 'cases are')} missing: {_selection(summary)} were selected, {found} ran"


def _doubled_cases(shards: Sequence[Shard]) -> Iterator[str]:
    """Cases that several shards have, the first few."""
    holders: defaultdict[str, list[Shard]] = defaultdict(list)
    for shard in {shard.number: shard for shard in shards}.values():
        for record in shard.run.records:
            holders[record.case].append(shard)
    doubled = {case: found for case, found in holders.items() if len(found) > 1}
    for case, found in sorted(doubled.items())[:_NAMED]:
        hashes = {shard.run.by_case[case].case_hash for shard in found}
        differ = ", with different case files" if len(hashes) > 1 else ""
        yield f"{case} is in {len(found)} shards: {_folders(found)}{differ}"
    if len(doubled) > _NAMED:
        yield f"and {counted(len(doubled) - _NAMED, 'other case')}"


def _folders(shards: Sequence[Shard]) -> str:
    return ", ".join(str(shard.folder) for shard in shards)


def _merged(shards: Sequence[Shard], out: Path) -> FinishedRun:
    """The run that the shards are parts of, as a run with --out out makes it."""
    options = shards[0].options
    records = [_moved(record, out, options) for shard in shards for record in shard.run.records]
    records.sort(key=lambda record: record.case)
    tally = Tally()
    for record in records:
        tally.add(record.counted)
    summaries = [shard.run.summary for shard in shards]
    interrupted = any(summary.get("interrupted") for summary in summaries)
    problems = dict.fromkeys(summary["problem"] for summary in summaries if summary.get("problem"))
    code = tally.exit_code(strict=bool(summaries[0].get("strict")), interrupted=interrupted)
    first = {name: value for name, value in summaries[0].items() if name not in ("selection", "problem")}
    merged = first | counted_in_summary(tally) | {
        "started": min((str(found) for each in summaries if (found := each.get("started"))), default=None),
        "environment": _environment([summary.get("environment") or {} for summary in summaries]),
        "not_run": sum(shard.run.not_run for shard in shards),
        "exit_code": max(code, OUR_FAILURE) if problems else code,
        "interrupted": interrupted,
        **({"problem": "; ".join(problems)} if problems else {}),
        "shard": "",
        "seconds": round(sum(summary.get("seconds") or 0 for summary in summaries), 3),
    }  # fmt: skip
    merged["signature"] = sign(merged) if all(map(made_here, summaries)) else ""
    return FinishedRun(out, records, merged)


def _moved(record: Record, out: Path, options: CaseOptions) -> Record:
    """The record as a run with that folder has it."""
    kept = outputs_path(out.absolute(), record.case)
    outputs = str(kept) if Path(record.outputs_kept).name == kept.name else record.outputs_kept
    return replace(record, repro=repro_line(options, record.file, str(out)), outputs_kept=outputs)


def _environment(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is said of several machines: of numbers the smallest, of texts all that differ."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in found for name in each):
        values = [each[name] for each in found if name in each]
        if all(isinstance(value, (int, float)) for value in values):
            merged[name] = min(values)
        elif values.count(values[0]) == len(values):
            merged[name] = values[0]
        else:
            merged[name] = ", ".join(sorted({part for value in values for part in str(value).split(", ")}))
    return merged


def _write(merged: FinishedRun, shards: Sequence[Shard], stage: Path) -> None:
    """Write the merged results into a new folder."""
    for shard in shards:
        for record in shard.run.records:
            if record.status in FAILING:
                copy_kept(shard.folder, stage, record)
    with (stage / RESULTS).open("wb") as file:
        file.writelines(map(record_line, merged.records))
    (stage / SUMMARY).write_text(json.dumps(merged.summary, indent=2) + "\n", encoding="utf-8")


def _install(merged: FinishedRun, stage: Path) -> None:
    """Move what was written to where it belongs; what an earlier run left there goes."""
    out = merged.out
    out.mkdir(exist_ok=True)
    with closing(open_locked(out / RESULTS)):
        keep = KeepFailures(out)
        keep(RunStarted(CaseOptions(), len(merged.records), 1, out))
        keep(Loaded())
        (out / SUMMARY).unlink(missing_ok=True)
        for path in sorted(stage.rglob("*"), key=lambda path: path.parent == stage):  # results and summary last
            if path.is_file():
                target = out / path.relative_to(stage)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, target)
