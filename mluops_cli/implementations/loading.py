"""Loading foreign Python code: `FILE.py:NAME`, `package.module:NAME`, plug-in files, entry points."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import dropwhile
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import xxhash

from mluops_cli.core.exceptions import summary
from schemas.errors import InputError, MluopsError, UnavailableError
from schemas.protos.foreign_import import foreign_import
from schemas.suggest import did_you_mean

_PACKAGE: Final = f"{Path(__file__).parents[1]}{os.sep}"


def load_error(what: str, error: BaseException) -> MluopsError:
    """Return an error of one line that says why something can't be loaded, with the line at fault."""
    text = " ".join(summary(error).split())
    frames = list(dropwhile(_is_ours, traceback.extract_tb(error.__traceback__)))
    frames = [frame for frame in frames if "importlib" not in frame.filename]
    if not isinstance(error, SyntaxError) and frames:
        text += f" ({frames[-1].filename}:{frames[-1].lineno})"
    message = f"can't load {what}: {text}"
    return UnavailableError(message) if isinstance(error, ImportError) else InputError(message)


def _is_ours(frame: traceback.FrameSummary) -> bool:
    """Return whether a frame is of the code that loads, rather than of what is loaded."""
    return frame.filename.startswith(_PACKAGE) or "importlib" in frame.filename


@contextmanager
def foreign_code(what: str) -> Iterator[None]:
    """Import or construct foreign code in the block: an error is one line that names it, the process stays as it was.

    InputError, or UnavailableError for an ImportError.
    """
    try:
        with foreign_import():
            yield
    except (KeyboardInterrupt, MluopsError):
        raise
    except BaseException as error:
        raise load_error(what, error) from error


def load_callable(implementation: str, target: str) -> Callable[..., Any]:
    """Return the callable NAME of FILE.py or of a module, an instance where it is a class.

    implementation is the name before it in --impl. InputError or UnavailableError, in one line.
    """
    return as_callable(load_object(target, implementation), f"{implementation}:{target}")


def as_callable(found: Any, name: str) -> Callable[..., Any]:
    """Return an object as a kernel: an instance where it is a class.

    InputError for what can't be called, and as load_callable for a class that can't be instantiated; name is in both.
    """
    if isinstance(found, type):
        with foreign_code(name):
            found = found()
    if not callable(found):
        raise InputError(f"{name} is a {type(found).__name__}, expected something callable")
    checked: Callable[..., Any] = found
    return checked


def load_object(target: str, implementation: str = "python") -> Any:
    """Return the object NAME of FILE.py or of a module; InputError or UnavailableError, in one line."""
    source, _, name = target.rpartition(":")
    if not source or not name:
        raise InputError(
            f"--impl {implementation}:{target} names no object: expected FILE.py:NAME or package.module:NAME"
        )
    module = load_file(Path(source)) if source.endswith(".py") else _load_module(source)
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = [word for word, value in vars(module).items() if callable(value) and not word.startswith("_")]
            raise InputError(f"{source} has no {name!r}{did_you_mean(name, known)}") from None
    return found


def module_name(path: Path) -> str:
    """Return the name of a Python file's module: by its path alone, so that no file is loaded twice in a process."""
    path = path.resolve()
    return f"mluops_plugin_{xxhash.xxh3_64_hexdigest(str(path).encode())}_{path.stem}"


def load_file(path: Path) -> ModuleType:
    """Return a Python file as a module; it finds the modules beside it, as when it is run as a script."""
    path = path.resolve()
    if not os.path.isfile(path):  # not Path.is_file: before Python 3.14 it raises OSError for a name that is too long
        raise InputError(f"no such Python file: {path}")
    name = module_name(path)
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
        with foreign_code(str(path)):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _load_module(name: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    with foreign_code(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and (name == error.name or name.startswith(error.name + ".")):
                text = f"no module named {error.name!r}, looked in the current folder and sys.path"
                raise InputError(text) from error
            raise
