"""Plots as SVG: lines over time, points in a plane; with labelled axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 64, 12, 22, 34
STYLE = (
    ".grid{stroke:var(--grid,#e4e8ec)}.goal{stroke:var(--text,#1f2328);stroke-dasharray:4 3}.x{text-anchor:middle}"
    ".y,.unit{text-anchor:end}text{font-size:11px;fill:var(--soft,#57606a)}"
    "text.title{font-size:12px;font-weight:600;fill:var(--text,#1f2328)}"
)
"""CSS that the elements need; a page may set the variables."""


@dataclass(frozen=True, slots=True)
class Series:
    """A line."""

    name: str
    color: str
    points: Sequence[tuple[float, float]]
    """Time in the plot's unit, value."""
    step: bool = False
    width: float = 1.4
    dash: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """One diagram over time."""

    title: str
    unit: str
    series: Sequence[Series]
    length: float
    """Of the time axis."""
    height: int = 150
    time: str = "hours"
    """Unit of the time axis."""
    goal: float | None = None
    """A dashed line across."""
    root: bool = False
    """Whether heights are square roots of values: what is small can be seen beside what is very large."""
    whole: bool = False
    """Whether values are whole numbers."""
    marks: Sequence[tuple[float, str]] = ()
    """Upright dashed lines: where, and what begins there."""

    def svg(self) -> str:
        """The element."""
        highest = max((value for line in self.series for _, value in line.points), default=1.0)
        ticks = _seconds(max(highest, self.goal or 0.0)) if self.root else _ticks(highest, whole=self.whole)
        top = ticks[-1]
        inner = self.height - TOP - BOTTOM

        def x(time: float) -> float:
            return LEFT + (WIDTH - LEFT - RIGHT) * time / self.length

        def y(value: float) -> float:
            share = value / top
            return TOP + inner * (1 - (math.sqrt(share) if self.root else share))

        parts = [_opening(self.title, self.height)]
        parts += _levels([(y(tick), tick) for tick in ticks])
        for time in _times(self.length, hours=self.time == "hours"):
            parts.append(f'<text x="{x(time):.1f}" y="{self.height - 18}" class="x">{time:g}</text>')
        parts += _units(self.time, self.unit, self.height)
        if self.goal is not None and self.goal <= top:
            parts.append(
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(self.goal):.1f}" y2="{y(self.goal):.1f}" class="goal"/>'
            )
        for place, text in self.marks:
            parts.append(_mark(x(place), text, self.height))
        parts += [_line(line, [(x(time), y(value)) for time, value in line.points]) for line in self.series]
        return "".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a plane, with its spread."""

    name: str
    color: str
    x: float
    y: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Plane:
    """Points by two measures, both from zero; the lower left is best."""

    title: str
    x_unit: str
    y_unit: str
    points: Sequence[Point]
    height: int = 300

    def svg(self) -> str:
        """The element."""
        x_ticks = _ticks(max((point.x_range[1] for point in self.points), default=1.0), whole=False)
        y_ticks = _ticks(max((point.y_range[1] for point in self.points), default=1.0), whole=False)
        inner = self.height - TOP - BOTTOM

        def x(value: float) -> float:
            return LEFT + (WIDTH - LEFT - RIGHT) * value / x_ticks[-1]

        def y(value: float) -> float:
            return TOP + inner * (1 - value / y_ticks[-1])

        parts = [_opening(self.title, self.height)]
        parts += _axes([(x(tick), tick) for tick in x_ticks], [(y(tick), tick) for tick in y_ticks], self.height)
        parts += _units(self.x_unit, self.y_unit, self.height)
        places = [(x(point.x), y(point.y)) for point in self.points]
        for point, place in zip(self.points, places, strict=True):
            (left, right), (low, high) = point.x_range, point.y_range
            across = f"M{x(left):.1f} {y(point.y):.1f}H{x(right):.1f}M{x(point.x):.1f} {y(low):.1f}V{y(high):.1f}"
            parts.append(f'<path d="{across}" stroke="{point.color}" fill="none"/>')
            parts.append(f'<circle cx="{x(point.x):.1f}" cy="{y(point.y):.1f}" r="5" fill="{point.color}"/>')
            # On the side where there is room, and turned away from the nearest neighbour.
            side, away = ("end", -9) if point.x > 0.7 * x_ticks[-1] else ("start", 9)
            nearest = min((one for one in places if one is not place), key=partial(math.dist, place), default=place)
            at = f'x="{x(point.x) + away:.1f}" y="{y(point.y) + (-8 if place[1] < nearest[1] else 17):.1f}"'
            parts.append(f'<text {at} class="title" style="text-anchor:{side}">{escape(point.name)}</text>')
        return "".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class Dot:
    """A place in a plot."""

    name: str
    color: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class LogPlot:
    """Lines and dots over many orders of magnitude: both axes are logarithmic, from a power of ten to another."""

    title: str
    x_unit: str
    y_unit: str
    series: Sequence[Series]
    dots: Sequence[Dot]
    marks: Sequence[tuple[float, str]] = ()
    """Upright dashed lines: where, and what begins there."""
    height: int = 260

    def svg(self) -> str:
        """The element."""
        points = [*((x, y) for line in self.series for x, y in line.points), *((dot.x, dot.y) for dot in self.dots)]
        xs, ys = ([point[side] for point in points] or [1.0] for side in (0, 1))
        x_powers, y_powers = _powers(xs), _powers(ys)
        inner = self.height - TOP - BOTTOM

        def x(value: float) -> float:
            return LEFT + (WIDTH - LEFT - RIGHT) * _share(value, x_powers)

        def y(value: float) -> float:
            return TOP + inner * (1 - _share(value, y_powers))

        parts = [_opening(self.title, self.height)]
        parts += _axes([(x(one), one) for one in x_powers], [(y(one), one) for one in y_powers], self.height)
        parts += _units(self.x_unit, self.y_unit, self.height)
        parts += [_mark(x(place), text, self.height) for place, text in self.marks]
        parts += [_line(line, [(x(across), y(up)) for across, up in line.points]) for line in self.series]
        for dot in self.dots:
            at = f'cx="{x(dot.x):.1f}" cy="{y(dot.y):.1f}"'
            parts.append(f'<circle {at} r="5" fill="{dot.color}"><title>{escape(dot.name)}</title></circle>')
        return "".join([*parts, "</svg>"])


def _opening(title: str, height: int) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f'<text x="{LEFT}" y="14" class="title">{escape(title)}</text>'
    )


def _line(series: Series, points: Sequence[tuple[float, float]]) -> str:
    return (
        f'<path d="{_path(points, step=series.step)}" fill="none" stroke="{series.color}"'
        f' stroke-width="{series.width}" stroke-dasharray="{series.dash}"><title>{escape(series.name)}</title></path>'
    )


def _axes(across: Sequence[tuple[float, float]], up: Sequence[tuple[float, float]], height: int) -> list[str]:
    """Grid and numbers of a plane: places and values on each axis."""
    parts = _levels(up)
    for x, value in across:
        parts.append(_upright(x, height))
        # At the right edge there is no room for the half of a long one.
        side = "unit" if x > WIDTH - 2 * RIGHT else "x"
        parts.append(f'<text x="{x:.1f}" y="{height - 18}" class="{side}">{_number(value)}</text>')
    return parts


def _levels(up: Sequence[tuple[float, float]]) -> list[str]:
    """The grid's level lines with their numbers: places and values."""
    parts = []
    for y, value in up:
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="y">{_number(value)}</text>')
    return parts


def _units(x_unit: str, y_unit: str, height: int) -> list[str]:
    middle = TOP + (height - TOP - BOTTOM) / 2
    return [
        f'<text x="{WIDTH - RIGHT}" y="{height - 4}" class="unit">{escape(x_unit)}</text>',
        f'<text transform="translate(12 {middle:.0f}) rotate(-90)" class="x">{escape(y_unit)}</text>',
    ]


def _upright(x: float, height: int) -> str:
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - BOTTOM}" class="grid"/>'


def _mark(x: float, text: str, height: int) -> str:
    # Where there is no room to the right, the words go to the left.
    side, away = ("end", -5) if x > 0.8 * WIDTH else ("start", 5)
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - BOTTOM}" class="goal"/>'
        f'<text x="{x + away:.1f}" y="{TOP + 11}" style="text-anchor:{side}">{escape(text)}</text>'
    )


def drawing(plots: Sequence[Plot]) -> str:
    """Plots under each other as one SVG document, which needs no page around it."""
    parts = [f'<rect width="{WIDTH}" height="{sum(plot.height for plot in plots)}" fill="#fff"/>']
    top = 0
    for plot in plots:
        parts.append(plot.svg().replace("<svg ", f'<svg y="{top}" width="{WIDTH}" height="{plot.height}" ', 1))
        top += plot.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" font-family="system-ui,sans-serif">'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _path(points: Sequence[tuple[float, float]], *, step: bool) -> str:
    parts: list[str] = []
    for index, (x, y) in enumerate(points):
        if step and index:
            parts.append(f"H{x:.1f}V{y:.1f}")
        else:
            parts.append(f"{'L' if index else 'M'}{x:.1f} {y:.1f}")
    return "".join(parts)


def _ticks(highest: float, *, whole: bool) -> list[float]:
    """Two to five round values from zero to above the highest; to 1 where there is nothing but zero."""
    highest = highest or 1.0
    raw = max(highest / 4, 1.0 if whole else 1e-9)
    power = 10.0 ** math.floor(math.log10(raw))
    steps = (1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)
    width = next(step * power for step in steps if step * power >= raw)
    return [index * width for index in range(max(math.ceil(highest / width - 1e-9), 1) + 1)]


_SECONDS = (10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400)


def _seconds(highest: float) -> list[float]:
    """Times that people think in, from zero to above the highest, for an axis of square roots."""
    top = next((time for time in _SECONDS if time >= highest), highest)
    kept = [0.0, float(top)]
    for time in reversed([time for time in _SECONDS if time < top]):
        # No label in another one's place.
        if math.sqrt(kept[1] / top) - math.sqrt(time / top) >= 0.14 and math.sqrt(time / top) >= 0.14:
            kept.insert(1, float(time))
    return kept


_HOURS = (0.5, 1, 2, 3, 6, 12, 24)
_ROUND = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


def _times(length: float, *, hours: bool) -> list[float]:
    width = next(step for step in ((*_HOURS, *_ROUND[6:]) if hours else _ROUND) if length / step <= 9)
    return [index * width for index in range(int(length / width) + 1)]


def _powers(values: Sequence[float]) -> list[float]:
    """Powers of ten from below the lowest value to above the highest; two at least."""
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(max(values))))
    return [10.0**power for power in range(low, high + 1)]


def _share(value: float, powers: Sequence[float]) -> float:
    """How far along a logarithmic axis a value is."""
    return math.log(value / powers[0]) / math.log(powers[-1] / powers[0])


def _number(value: float) -> str:
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return f"{value:g}"


def thin(points: Sequence[tuple[float, float]], count: int) -> list[tuple[float, float]]:
    """The highest point of each of so many stretches: none of the peaks is lost."""
    if len(points) <= count:
        return list(points)
    size = len(points) / count
    buckets = (points[int(index * size) : int((index + 1) * size)] for index in range(count))
    return [max(bucket, key=lambda point: point[1]) for bucket in buckets if bucket]


def changes(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Only where the value changes, and the ends."""
    kept = [point for index, point in enumerate(points) if index == 0 or point[1] != points[index - 1][1]]
    return kept + ([points[-1]] if points and kept[-1] != points[-1] else [])
