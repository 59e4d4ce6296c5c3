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
COPY = """==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000020 at pc 0x7f bp 0x7f sp 0x7f
READ of size 24 at 0x602000000020 thread T0
    #0 0x7f459104814a in __interceptor_memcpy ../../src/libsanitizer/interceptors.inc:827
    #1 0x55ccd936b220 in Copier::copy(float*, int) /tmp/copy.cpp:5
    #2 0x55ccd936b280 in main /tmp/copy.cpp:9

SUMMARY: AddressSanitizer: heap-buffer-overflow ../../src/libsanitizer/interceptors.inc:827 in __interceptor_memcpy
"""
CLANG = COPY.replace(
    "__interceptor_memcpy ../../src/libsanitizer/interceptors.inc:827", "__asan_memcpy (/tmp/copy+0x1110)"
)
CLANG = CLANG.replace(
    "../../src/libsanitizer/interceptors.inc:827 in __interceptor_memcpy", "(/tmp/copy+0x1110) in __asan_memcpy"
)
NEWER = COPY.replace("__interceptor_memcpy", "memcpy")
STRIPPED = COPY.replace("/tmp/copy.cpp:5", "(/tmp/copy+0x1110)").replace("/tmp/copy.cpp:9", "(/tmp/copy+0x1220)")
NULL = "==7==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000000 (pc 0x1 bp 0x2 sp 0x3 T0)\n"
READ = "ERROR: AddressSanitizer: heap-buffer-overflow, READ of size 24"
LEAK = "==7==ERROR: LeakSanitizer: detected memory leaks\n\nSUMMARY: AddressSanitizer: 7 byte(s) leaked.\n"
RACE = "WARNING: ThreadSanitizer: data race (pid=7)\n  Write of size 4 at 0x1 by thread T1:\n"


@pytest.mark.parametrize(
    ("printed", "report"),
    [
        ("nothing of a sanitizer\n", ""),
        (OVERFLOW, "ERROR: AddressSanitizer: heap-buffer-overflow, READ of size 4, /tmp/bad.c:134 in main"),
        (OVERFLOW + NULL, "ERROR: AddressSanitizer: heap-buffer-overflow, READ of size 4, /tmp/bad.c:134 in main"),
        (COPY, f"{READ}, /tmp/copy.cpp:5 in Copier::copy(float*, int)"),
        (NEWER, f"{READ}, /tmp/copy.cpp:5 in Copier::copy(float*, int)"),
        (CLANG, f"{READ}, /tmp/copy.cpp:5 in Copier::copy(float*, int)"),
        (STRIPPED, f"{READ}, ../../src/libsanitizer/interceptors.inc:827 in __interceptor_memcpy"),
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
