"""Our own few pictures as inline SVG; colours come from the page's style sheet: they follow light, dark and print."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

_WIDTH: Final = 640
_POINTS: Final = 3000  # more than that nobody can tell apart, and browsers slow down


class Point(NamedTuple):
    """A dot of a scatter: coordinates, what it is called, and the class of its colour."""

    x: float
    y: float
    label: str
    kind: str = ""


def density_strip(counts: Sequence[int], elements: int) -> Markup:
    """Where the wrong elements sit along the output: a cell per bin, the darker the larger its share of wrong ones."""
    most = max(counts, default=0) or 1
    cell = _WIDTH / max(1, len(counts))
    per_bin = max(1.0, elements / max(1, len(counts)))
    cells = [
        Markup('<rect class="heat" x="{:.2f}" y="0" width="{:.2f}" height="22" fill-opacity="{:.3f}">{}</rect>').format(
            index * cell, cell, 0.0 if not count else 0.15 + 0.85 * count / most,
            _title(f"{count} wrong of about {per_bin:.0f}, from {index / len(counts):.0%} of the output on"),
        )
        for index, count in enumerate(counts)
    ]  # fmt: skip
    frame = Markup('<rect class="frame" x="0.5" y="0.5" width="{}" height="21"/>').format(_WIDTH - 1)
    ends = _text(0, 36, "first element") + _text(_WIDTH, 36, "last element", "end")
    return _svg(_WIDTH, 40, "Where the wrong elements sit", [*cells, frame, ends])


def decade_histogram(decades: Sequence[Sequence[int]]) -> Markup:
    """How many wrong elements have an error of which size: a bar per power of ten (exponent, count)."""
    if not decades:
        return Markup("")
    low, high = min(exponent for exponent, _ in decades), max(exponent for exponent, _ in decades)
    bars, most = max(1, high - low + 1), max(count for _, count in decades) or 1
    width = min(48.0, (_WIDTH - 20) / bars)
    every = max(1, math.ceil(34 / width))
    parts = []
    for exponent, count in decades:
        x, height = 10 + (exponent - low) * width, 70 * count / most
        parts.append(
            Markup('<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">{}</rect>').format(
                x, 80 - height, max(1.0, width - 2), height, _title(f"{count} with an error of 1e{exponent} or more")
            )
        )
    labels = [_text(10 + (e - low + 0.5) * width, 94, f"1e{e}", "middle") for e in range(low, high + 1, every)]
    axis = Markup('<line class="axis" x1="10" x2="{:.0f}" y1="80" y2="80"/>').format(10 + bars * width)
    return _svg(20 + bars * width, 98, "Wrong elements by the size of their relative error", [*parts, axis, *labels])


def roofline(points: Iterable[Point]) -> Markup:
    """Share of the peak operations against intensity relative to the ridge, both logarithmic, under the roof min(1, x).

    x = compute efficiency / io efficiency: left of 1 memory bounds, right of it arithmetic does.
    """
    plot = _LogPlot((1e-3, 1e3), (1e-4, 2.0), height=300)
    roof = [(1e-3, 1e-3), (1.0, 1.0), (1e3, 1.0)]
    path = " ".join(f"{plot.x(x):.1f},{plot.y(y):.1f}" for x, y in roof)
    parts = [Markup('<polyline class="roof" points="{}"/>').format(path)]
    parts += [
        _text(plot.x(0.02), plot.y(0.035), "memory bound", "end"),
        _text(plot.x(30), plot.y(1.2), "compute bound"),
    ]
    return plot.draw("Roofline: how near each case comes to what the machine can do", points, parts,
                     "intensity / ridge", "share of peak operations")  # fmt: skip


def latency_ratios(points: Sequence[Point]) -> Markup:
    """Latency now / latency before, one dot per case; above the line is slower."""
    plot = _LogPlot((1.0, max(10.0, max((point.x for point in points), default=10.0))), (0.1, 10.0), height=260)
    line = Markup('<line class="roof" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(
        plot.left, _WIDTH - 8, plot.y(1.0), plot.y(1.0)
    )
    parts = [line, _text(_WIDTH - 10, plot.y(6), "slower", "end"), _text(_WIDTH - 10, plot.y(0.14), "faster", "end")]
    return plot.draw("Latency against the run before", points, parts, "latency before (µs)", "now / before")


class _LogPlot:
    """Two logarithmic axes; what lies outside is drawn at the edge."""

    def __init__(self, xs: tuple[float, float], ys: tuple[float, float], height: int) -> None:
        self.xs, self.ys, self.height, self.left = xs, ys, height, 62

    def x(self, value: float) -> float:
        return self.left + _share(value, self.xs) * (_WIDTH - self.left - 8)

    def y(self, value: float) -> float:
        return 10 + (1 - _share(value, self.ys)) * (self.height - 52)

    def draw(self, title: str, points: Iterable[Point], parts: list[Markup], x_name: str, y_name: str) -> Markup:
        drawn = [self._grid(), *parts]
        for number, point in enumerate(points):
            if number == _POINTS:
                drawn.append(_text(_WIDTH - 10, 20, f"only the first {_POINTS} points are drawn", "end"))
                break
            drawn.append(
                Markup('<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="4">{}</circle>').format(
                    point.kind, self.x(point.x), self.y(point.y), _title(point.label)
                )
            )
        middle = 10 + (self.height - 52) / 2
        y_label = Markup(
            '<text class="name" transform="translate(12 {:.0f}) rotate(-90)" text-anchor="middle">{}</text>'
        )
        drawn += [_text((self.left + _WIDTH) / 2, self.height - 4, x_name, "middle"), y_label.format(middle, y_name)]
        return _svg(_WIDTH, self.height, title, drawn)

    def _grid(self) -> Markup:
        lines = []
        bottom = self.height - 42
        for exponent in _exponents(self.xs):
            x = self.x(10.0**exponent)
            lines.append(Markup('<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="10" y2="{1}"/>').format(x, bottom))
            lines.append(_text(x, bottom + 16, f"{10.0**exponent:g}", "middle"))
        for exponent in _exponents(self.ys):
            y = self.y(10.0**exponent)
            grid = Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>')
            lines.append(grid.format(self.left, _WIDTH - 8, y, y))
            lines.append(_text(self.left - 6, y + 4, f"{10.0**exponent:g}", "end"))
        return Markup("").join(lines)


def _exponents(bounds: tuple[float, float]) -> range:
    return range(math.ceil(math.log10(bounds[0]) - 1e-9), math.floor(math.log10(bounds[1]) + 1e-9) + 1)


def _share(value: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    clamped = min(max(value, low), high)
    return math.log(clamped / low) / math.log(high / low)


def _text(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _title(text: str) -> Markup:
    return Markup("<title>{}</title>").format(text)


def _svg(width: float, height: float, title: str, parts: Iterable[Markup]) -> Markup:
    head = Markup('<svg width="{0:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" role="img" aria-label="{2}">').format(
        width, height, title
    )
    return head + Markup("").join(parts) + Markup("</svg>")
