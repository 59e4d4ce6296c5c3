"""The charts of the HTML report as inline SVG; the page's style sheet gives the colours, for light, dark and print."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from markupsafe import Markup, escape

_WIDTH: Final = 640
_POINTS: Final = 3000  # dots of a chart: more can't be told apart and slow browsers down
_RIGHT: Final = 20  # space for half a label


class Point(NamedTuple):
    """A dot of a scatter chart: coordinates, label, and the CSS class of its colour."""

    x: float
    y: float
    label: str
    kind: str = ""


def density_strip(counts: Sequence[int], elements: int) -> Markup:
    """Positions of the wrong elements along the output: a cell per bin, darker where more are wrong."""
    most = max(counts, default=0) or 1
    cell = _WIDTH / max(1, len(counts))
    parts = [f'<rect class="frame" x="0.5" y="0.5" width="{_WIDTH - 1}" height="21"/>']
    for index, count in enumerate(counts):
        if count:
            words = f"{count} wrong of about {elements // len(counts)}, from {index / len(counts):.0%} of the output on"
            parts.append(
                f'<rect class="heat" x="{index * cell:.2f}" y="0" width="{cell:.2f}" height="22" '
                f'fill-opacity="{0.15 + 0.85 * count / most:.3f}"><title>{words}</title></rect>'
            )
    ends = [_text(0, 36, "first element"), _text(_WIDTH, 36, "last element", "end")]
    return _svg(_WIDTH, 40, "Positions of the wrong elements", [*parts, *ends])


def decade_histogram(decades: Sequence[Sequence[int]]) -> Markup:
    """The wrong elements by the size of their error: a bar per power of ten, given as (exponent, count)."""
    if not decades:
        return Markup("")
    low, high = min(exponent for exponent, _ in decades), max(exponent for exponent, _ in decades)
    bars, most = high - low + 1, max(count for _, count in decades) or 1
    width = min(48.0, (_WIDTH - 20) / bars)
    parts = [f'<line class="axis" x1="10" x2="{10 + bars * width:.0f}" y1="80" y2="80"/>']
    for exponent, count in decades:
        x, height = 10 + (exponent - low) * width, 70 * count / most
        parts.append(
            f'<rect class="bar" x="{x:.1f}" y="{80 - height:.1f}" width="{max(1.0, width - 2):.1f}" '
            f'height="{height:.1f}"><title>{count} with an error of 1e{exponent} or more</title></rect>'
        )
    every = max(1, math.ceil(34 / width))  # as many labels as fit
    parts += [_text(10 + (e - low + 0.5) * width, 94, f"1e{e}", "middle") for e in range(low, high + 1, every)]
    return _svg(20 + bars * width, 98, "Wrong elements by the size of their relative error", parts)


def roofline(points: Iterable[Point]) -> Markup:
    """Fraction of the peak operations over intensity relative to the ridge, both logarithmic, and the roof min(1, x).

    x = compute efficiency / io efficiency: left of 1 the memory bounds a case, right of 1 the arithmetic.
    """
    plot = _LogPlot((1e-3, 1e3), (1e-4, 2.0), height=300)
    path = " ".join(f"{plot.x(x):.1f},{plot.y(y):.1f}" for x, y in ((1e-3, 1e-3), (1.0, 1.0), (1e3, 1.0)))
    parts = [
        f'<polyline class="roof" points="{path}"/>',
        _text(plot.x(0.02), plot.y(0.035), "memory bound", "end"),
        _text(plot.x(30), plot.y(1.2), "compute bound"),
    ]
    title = "Roofline: how near each case comes to what the machine can do"
    return plot.draw(title, points, parts, "intensity / ridge", "fraction of the peak operations")


def latency_ratios(points: Iterable[Point], xs: Sequence[float]) -> Markup:
    """Latency now / latency before, one dot per case; above the line is slower. xs: of all cases, drawn or not."""
    plot = _LogPlot((min(1.0, *xs, 1.0), max(10.0, *xs, 10.0)), (0.1, 10.0), height=260)
    same = plot.y(1.0)
    parts = [
        f'<line class="roof" x1="{plot.left}" x2="{_WIDTH - _RIGHT}" y1="{same:.1f}" y2="{same:.1f}"/>',
        _text(_WIDTH - 10, plot.y(6), "slower", "end"),
        _text(_WIDTH - 10, plot.y(0.14), "faster", "end"),
    ]
    return plot.draw("Latency against the run before", points, parts, "latency before (µs)", "now / before")


class _LogPlot:
    """Two logarithmic axes; points outside are drawn at the edge."""

    def __init__(self, xs: tuple[float, float], ys: tuple[float, float], height: int) -> None:
        self.xs, self.ys, self.height, self.left = xs, ys, height, 62

    def x(self, value: float) -> float:
        return self.left + _fraction(value, self.xs) * (_WIDTH - self.left - _RIGHT)

    def y(self, value: float) -> float:
        return 10 + (1 - _fraction(value, self.ys)) * (self.height - 52)

    def draw(self, title: str, points: Iterable[Point], parts: Sequence[str], x_name: str, y_name: str) -> Markup:
        drawn = [*self._grid(), *parts]
        shown = list(islice(points, _POINTS + 1))
        drawn += [
            f'<circle class="dot {point.kind}" cx="{self.x(point.x):.1f}" cy="{self.y(point.y):.1f}" r="4">'
            f"<title>{escape(point.label)}</title></circle>"
            for point in shown[:_POINTS]
        ]
        if len(shown) > _POINTS:
            drawn.append(_text(_WIDTH - 10, 20, f"only the first {_POINTS} cases are drawn", "end"))
        middle = 10 + (self.height - 52) / 2
        drawn.append(_text((self.left + _WIDTH) / 2, self.height - 4, x_name, "middle"))
        drawn.append(f'<text transform="translate(12 {middle:.0f}) rotate(-90)" text-anchor="middle">{y_name}</text>')
        return _svg(_WIDTH, self.height, title, drawn)

    def _grid(self) -> Iterator[str]:
        bottom = self.height - 42
        for exponent in _exponents(self.xs):
            x = self.x(10.0**exponent)
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="10" y2="{bottom}"/>'
            yield _text(x, bottom + 16, f"{10.0**exponent:g}", "middle")
        for exponent in _exponents(self.ys):
            y = self.y(10.0**exponent)
            yield f'<line class="grid" x1="{self.left}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield _text(self.left - 6, y + 4, f"{10.0**exponent:g}", "end")


def _exponents(bounds: tuple[float, float]) -> range:
    return range(math.ceil(math.log10(bounds[0]) - 1e-9), math.floor(math.log10(bounds[1]) + 1e-9) + 1)


def _fraction(value: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    clamped = min(max(value, low), high)
    return math.log(clamped / low) / math.log(high / low)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _svg(width: float, height: float, title: str, parts: Iterable[str]) -> Markup:
    """An SVG element of parts that are safe: the labels of points, which aren't our texts, are escaped already."""
    head = f'<svg width="{width:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{title}">'
    return Markup(head + "".join(parts) + "</svg>")
