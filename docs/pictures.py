"""The README's pictures: `make docs`. A run with two planted faults, its HTML report, Chromium's pictures of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
OPERATORS: Final = ("psamask_forward", "masked_im2col_forward")
FAULTY: Final = """
from generators.operator_registry import operators

def kernel(op, inputs, outputs, params):
    if not all(array.size for array in inputs.values()) or min(params.values()) < 0 or params.get("kernel_h") == 0:
        return "BAD_PARAM"
    for name, array in operators()[op].reference(inputs, params).items():
        outputs[name][...] = array
        if array.ndim == 4 and array.shape[2] > 6:
            outputs[name][:, :, -3:] = 0  # the tail of an axis is forgotten
        if array.ndim == 2 and array.shape[1] > 40:
            outputs[name][...] *= 1.01
"""


def main() -> int:
    """Write docs/report-light.png and docs/report-dark.png; 1 where there is no Chromium."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("make docs needs chromium (make browser installs it on Debian)", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernel.py").write_text(FAULTY, encoding="utf-8")
        mluops(folder, "gen", *OPERATORS, "--suite", "demo,boundary,general,nan_inf", "--out", "cases")
        mluops(folder, "run", "cases", "--impl", "python:kernel.py:kernel", "--out", "results")
        mluops(folder, "report", "results", "--html", "report.html")
        for number, scheme in enumerate(("dark", "light")):
            picture = HERE / f"report-{scheme}.png"
            subprocess.run(
                [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 f"--user-data-dir={folder / scheme}", "--window-size=1100,760", "--hide-scrollbars",
                 f"--blink-settings=preferredColorScheme={number}", f"--screenshot={picture}",
                 (folder / "report.html").as_uri()],
                check=True, capture_output=True,
            )  # fmt: skip
            print(picture.name)
    return 0


def mluops(folder: Path, *arguments: str) -> None:
    """One command in a folder; a run with failures is what is wanted here."""
    done = subprocess.run([sys.executable, "-m", "mluops_cli", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)


if __name__ == "__main__":
    sys.exit(main())
