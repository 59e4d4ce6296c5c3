"""How long `mluops fuzz` takes to find each planted fault: `python -m tests.planted.measure [NAME]...`.

Each fault gets the command that a person would type, and ends at its first finding. Printed is a row for each fault as
soon as it is measured: found or not, seconds from the command's start to its end, cases, cases a second. With names, of
faults or of operators, only these are measured.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.planted.catalogue import MODULES, planted_faults
from tests.planted.planted_fault import PlantedFault

WITHIN: Final = "2m"
JOBS: Final = 2
ENOUGH: Final = 36  # of the 40 faults
_LAST_LINE: Final = re.compile(r"^(?P<cases>\d[\d,]*) cases? in (?P<seconds>[\d.]+) s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run of the command found; seconds count from its start, rate is cases a second while it searched."""

    fault: PlantedFault
    found: str  # the symptom, empty where nothing was found
    seconds: float
    cases: int
    rate: float

    @property
    def row(self) -> str:
        """A line of the table."""
        return (
            f"{self.fault.op:22} {self.fault.name:42} {'found' if self.found else 'not found':9} {self.seconds:6.1f} s"
            f" {self.cases:6} cases {self.rate:5.0f}/s  {self.found}"
        )


def measure(fault: PlantedFault, within: str = WITHIN, seed: int = 1) -> Measured:
    """Run the command; RuntimeError where it fails otherwise than by a finding."""
    kernel = f"python:{Path(__file__).parent / MODULES[fault.op]}.py:{fault.name}"
    limits = ("--time", within, "--findings", "1", "--no-shrink", "-j", str(JOBS), "--seed", str(seed))
    start = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", "mluops_cli", "fuzz", fault.op, "--impl", kernel, *limits],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - start
    last = _LAST_LINE.search(ran.stdout)
    finding = re.search(r"^finding 1: (.*)$", ran.stdout, re.MULTILINE)
    if last is None or ran.returncode != (1 if finding else 0):
        raise RuntimeError(f"{fault.name}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
    cases = int(last["cases"].replace(",", ""))
    rate = cases / max(float(last["seconds"]), 0.1)
    return Measured(fault, finding[1] if finding else "", seconds, cases, rate)


def main() -> int:
    """Measure the faults of the command line; 1 where fewer are found than should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a fault or an operator")
    parser.add_argument("--time", default=WITHIN, help="how long each fault is searched for (%(default)s)")
    parser.add_argument("--seed", default=1, type=int, help="which cases are drawn (%(default)s)")
    given = parser.parse_args()
    faults = [each for each in planted_faults() if not given.names or {each.name, each.op} & set(given.names)]
    results: list[Measured] = []
    for fault in faults:
        results.append(measure(fault, given.time, given.seed))
        sys.stdout.write(f"{results[-1].row}\n")
        sys.stdout.flush()
    found = sum(1 for each in results if each.found)
    sys.stdout.write(f"{found} of {len(faults)} found within {given.time} each\n")
    return 0 if len(faults) - found <= len(planted_faults()) - ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
