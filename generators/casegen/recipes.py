"""What the files of a case are made from, as a hash: cases whose recipe hasn't changed need not be made again."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import xxhash

import generators
import schemas
from generators.casegen.manifest import Entries, Entry, hash_files, read_stored
from generators.casegen.node import digest, short_place
from generators.casegen.write_options import WriteOptions
from generators.contracts.case import Case
from generators.operator_registry import operator_named
from schemas.version import DATA_VERSION, __version__

_OWN: Final = [Path(str(package.__file__)).parent for package in (generators, schemas)]
_INSTALLED: Final = frozenset(("site-packages", "dist-packages"))
_CODE: Final = {".py", ".proto", ".desc"}


def case_recipe(case: Case, options: WriteOptions, metrics: Any = None) -> str:
    """Return the hash (hexadecimal) of all that decides the bytes of a case's files.

    That is the case, the options, the versions, and the source of what makes it: generators, schemas, the modules of an
    operator of another package, and of the metrics of dynamic thresholds.
    """
    operator = operator_named(case.op)
    criteria = {name: [(each.name, each.threshold, each.source) for each in own] for name, own in case.criteria.items()}
    parts = [
        digest(case),
        sorted(criteria.items()),
        [case.beyond_design, case.breaks, list(case.tags), short_place(case.place)],
        [plan.capacity for plan in case.plans],
        [options.suffixes, options.inline_limit, options.dynamic_thresholds, options.bounds],
        [__version__, DATA_VERSION, _source(type(operator).__module__)],
        _source(metrics.__module__) if metrics is not None else "",
    ]
    return xxhash.xxh3_64_hexdigest(json.dumps(parts).encode())


def cache_key(recipes: Mapping[str, str]) -> str:
    """Return one hash (hexadecimal) of the recipes by case id: equal keys, equal folders."""
    return xxhash.xxh3_128_hexdigest(json.dumps(sorted(recipes.items())).encode())


def unchanged(folder: Path, recipes: Mapping[str, str]) -> Entries:
    """Return the manifest entries of the cases that have these recipes and whose files are as they were written."""
    stored = read_stored(folder)
    return {
        case: stored[case]
        for case, recipe in recipes.items()
        if case in stored and stored[case].get("recipe") == recipe and _whole(folder, stored[case])
    }


def _whole(folder: Path, entry: Entry) -> bool:
    files = [folder / file for file in entry.get("files", ())]
    try:
        size = sum(file.stat().st_size for file in files)
        return bool(files) and size == entry.get("bytes") and hash_files(files) == entry.get("content")
    except OSError:
        return False


@cache
def _source(module: str) -> str:
    """The hash of our own source, and of the loaded modules in the folder of a module of others, or of its package.

    A file beside a plug-in counts only if it is loaded. Installed packages are not part of what lies beside them.
    """
    file = inspect.getsourcefile(sys.modules[module])
    if file is None or any(Path(file).is_relative_to(root) for root in _OWN):
        return _own_source()
    below = module.count(".") - (not hasattr(sys.modules[module], "__path__"))  # folders between its own and the root
    root = Path(file).parents[max(0, below)]
    loaded = [getattr(each, "__file__", None) for each in tuple(sys.modules.values())]
    beside = {Path(found) for found in loaded if found and found.endswith(".py") and Path(found).is_relative_to(root)}
    files = {path for path in beside if not _INSTALLED & {root.name, *path.relative_to(root).parts}} | {Path(file)}
    return _own_source() + _hash({path.relative_to(root).as_posix(): path for path in files})


@cache
def _own_source() -> str:
    found = ((root, path) for root in _OWN for path in root.rglob("*") if path.suffix in _CODE)
    return _hash({path.relative_to(root.parent).as_posix(): path for root, path in found})


def _hash(files: Mapping[str, Path]) -> str:
    names = sorted(files)
    return xxhash.xxh3_64_hexdigest(json.dumps([names, hash_files(files[name] for name in names)]).encode())
