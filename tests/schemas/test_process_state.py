"""What foreign code sets for the whole process is put back."""

from __future__ import annotations

import io
import locale
import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from schemas.process_state import preserved_import_state, preserved_process_state

CHANGES: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "locale": (lambda: locale.setlocale(locale.LC_NUMERIC, "C.utf8"), lambda: locale.setlocale(locale.LC_ALL)),
    "folder": (lambda: os.chdir("/"), os.getcwd),
    "recursion limit": (lambda: sys.setrecursionlimit(321), sys.getrecursionlimit),
    "SIGINT": (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN), lambda: signal.getsignal(signal.SIGINT)),
    "SIGTERM": (lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN), lambda: signal.getsignal(signal.SIGTERM)),
}
IMPORTS: dict[str, tuple[Callable[[], object], Callable[[], object]]] = CHANGES | {
    "umask": (lambda: os.umask(0o077), lambda: int(Path("/proc/self/status").read_text().split("Umask:\t")[1][:4], 8)),
    "warnings": (lambda: warnings.simplefilter("once"), lambda: list(warnings.filters)),
    "stdout": (lambda: setattr(sys, "stdout", io.StringIO()), lambda: sys.stdout),
    "stderr": (lambda: setattr(sys, "stderr", io.StringIO()), lambda: sys.stderr),
}


@pytest.mark.parametrize("what", IMPORTS)
@pytest.mark.parametrize("fails", [False, True])
def test_e1_what_an_import_changes_is_put_back(what: str, fails: bool, tmp_path: Path) -> None:
    change, state = IMPORTS[what]
    before = state()
    with suppress(ZeroDivisionError), preserved_import_state():
        change()
        assert state() != before
        if fails:
            raise ZeroDivisionError
    assert state() == before


def test_e1_what_an_import_prints_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with preserved_import_state():
        print("loaded")
    assert tuple(capsys.readouterr()) == ("", "loaded\n")


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("fails", [False, True])
def test_e1_what_a_block_changes_is_put_back(
    what: str, fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    change, state = CHANGES[what]
    before, seen = state(), []

    def block() -> None:
        with preserved_process_state():
            change()
            seen.append(state())
            if fails:
                raise ZeroDivisionError

    if fails:
        with pytest.raises(ZeroDivisionError):
            block()
    else:
        block()
    assert seen != [before]
    assert state() == before


def test_a_folder_that_is_gone_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    with preserved_process_state():
        os.chdir("/")
    assert os.getcwd() == "/"
