"""Numbers with units that keep them short: bytes, times, rates, fractions."""

from __future__ import annotations

from typing import Final

_BINARY: Final = ("KiB", "MiB", "GiB", "TiB")
_TIMES: Final = ((1.0, "µs"), (1e3, "ms"), (1e6, "s"))  # microseconds in the unit

_RATES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def format_bytes(size: float) -> str:
    """A size in bytes: 512 B, 1.5 GiB."""
    if size < 1024:
        return f"{size:.0f} B"
    for unit in _BINARY:
        size /= 1024
        if size < 1024 or unit == _BINARY[-1]:
            break
    return f"{size:.1f} {unit}"


def format_microseconds(time: float) -> str:
    """A time given in microseconds, with three digits: 4.21 µs, 38.5 ms, 2 s."""
    scale, unit = next(((s, u) for s, u in reversed(_TIMES) if time >= s), _TIMES[0])
    return f"{three_digits(time / scale)} {unit}"


def format_rate(rate: float, what: str) -> str:
    """A rate per second: 6.01 GB/s, 44.8 Gop/s. what is the letter or word behind the prefix."""
    scale, prefix = next(((s, p) for s, p in _RATES if rate >= s), _RATES[-1])
    return f"{three_digits(rate / scale)} {prefix}{what}/s"


def format_fraction(value: float) -> str:
    """A fraction in percent, with two digits at least: 62.5%, 0.031%, 0%."""
    percent = value * 100
    return f"{percent:.1f}%" if abs(percent) >= 1 or not percent else f"{percent:.2g}%"


def three_digits(value: float) -> str:
    """A number with three digits, never as a power of ten below a million: 4.21, 38.5, 1240."""
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"
