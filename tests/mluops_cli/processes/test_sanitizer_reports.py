"""The line of a sanitizer's report: kind, access, place, without addresses."""

from __future__ import annotations

import pytest

from mluops_cli.processes.sanitizer_reports import sanitizer_report, without_map

OVERFLOW = """before
==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x61f000001a80 at pc 0x55 bp 0x7f sp 0x7f
READ of size 4 at 0x61f000001a80 thread T0
    #0 0x559afa7d02f9 in main /tmp/bad.c:134

SUMMARY: AddressSanitizer: heap-buffer-overflow /tmp/bad.c:134 in main
Shadow bytes around the buggy address:
"""
NULL = "==7==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000000 (pc 0x1 bp 0x2 sp 0x3 T0)\n"
LEAK = "==7==ERROR: LeakSanitizer: detected memory leaks\n\nSUMMARY: AddressSanitizer: 7 byte(s) leaked.\n"
RACE = "WARNING: ThreadSanitizer: data race (pid=7)\n  Write of size 4 at 0x1 by thread T1:\n"


@pytest.mark.parametrize(
    ("printed", "report"),
    [
        ("nothing of a sanitizer\n", ""),
        (OVERFLOW, "ERROR: AddressSanitizer: heap-buffer-overflow, READ of size 4, /tmp/bad.c:134 in main"),
        (OVERFLOW + NULL, "ERROR: AddressSanitizer: heap-buffer-overflow, READ of size 4, /tmp/bad.c:134 in main"),
        (NULL, "ERROR: AddressSanitizer: SEGV"),
        (LEAK, "ERROR: LeakSanitizer: detected memory leaks"),
        (RACE, "WARNING: ThreadSanitizer: data race"),
    ],
)
def test_report(printed: str, report: str) -> None:
    assert sanitizer_report(printed) == report


def test_the_map_of_the_memory_is_left_out_of_a_report_alone() -> None:
    legend = "  0x1: fa fa\nShadow byte legend\n==7==ABORTING\n"
    assert without_map(OVERFLOW + legend) == OVERFLOW.partition("Shadow")[0]
    assert without_map(f"Shadow bytes around nothing\n{legend}") == f"Shadow bytes around nothing\n{legend}"
