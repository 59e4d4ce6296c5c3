"""Loading Python objects that the user names: `FILE.py:NAME`, `package.module:NAME`, and plug-in files."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import xxhash

from schemas.errors import InputError, MluopsError, UnavailableError
from schemas.suggest import did_you_mean


def load_object(target: str) -> Any:
    """The object NAME of FILE.py or of a module; InputError or UnavailableError, one line, where that fails."""
    source, _, name = target.rpartition(":")
    if not source or not name:
        raise InputError(f"--impl python:{target} names no object: expected FILE.py:NAME or package.module:NAME")
    module = load_file(Path(source)) if source.endswith(".py") else _load_module(source)
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = [word for word, value in vars(module).items() if callable(value) and not word.startswith("_")]
            raise InputError(f"{source} has no {name!r}{did_you_mean(name, known)}") from None
    return found


def load_file(path: Path) -> ModuleType:
    """A Python file as a module; its own folder is searched for what it imports, as when it is run as a script."""
    path = path.resolve()
    if not path.is_file():
        raise InputError(f"no such Python file: {path}")
    # The name a plug-in of that file has too: the same in every process, and a file is never loaded twice.
    name = f"mluops_plugin_{xxhash.xxh3_64_hexdigest(str(path).encode())}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise load_error(str(path), error) from error
    return module


def _load_module(name: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise InputError(f"no module named {error.name!r}, looked in the current folder and sys.path") from error
        raise load_error(name, error) from error
    except BaseException as error:
        raise load_error(name, error) from error


def load_error(what: str, error: BaseException) -> BaseException:
    """One line that says why it can't be loaded, with the line at fault; Ctrl-C stays what it is."""
    if isinstance(error, (KeyboardInterrupt, MluopsError)):
        return error
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    text = " ".join(text.split())
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is the caller, which has caught it
    frames = [frame for frame in frames if "importlib" not in frame.filename]
    if not isinstance(error, SyntaxError) and frames:
        text += f" ({frames[-1].filename}:{frames[-1].lineno})"
    message = f"can't load {what}: {text}"
    return UnavailableError(message) if isinstance(error, ImportError) else InputError(message)
