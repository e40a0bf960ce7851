"""The few shapes that the figures are drawn with. Colours are classes, so that the page's theme decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from markupsafe import Markup

Scale = Callable[[float], float]


def figure(width: float, height: float, label: str, parts: Iterable[Markup]) -> Markup:
    """An SVG figure; ``label`` says in words what it shows, for those who cannot see it."""
    return Markup('<svg viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>').format(
        _n(width), _n(height), _n(width), _n(height), label, Markup("").join(parts)
    )


def text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "", most: int = 80) -> Markup:
    """A line of text, cut to ``most`` characters; the whole of it then shows on hovering."""
    shown = words if len(words) <= most else words[: most - 1] + "…"
    whole = Markup("<title>{}</title>").format(words) if shown != words else ""
    return Markup('<text x="{}" y="{}" text-anchor="{}" class="{}">{}{}</text>').format(
        _n(x), _n(y), anchor, kind, whole, shown
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>').format(_n(x1), _n(y1), _n(x2), _n(y2), kind)


def path(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    """A line through points."""
    places = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    return Markup('<polyline points="{}" class="{}" fill="none"/>').format(places, kind)


def bar(x: float, y: float, width: float, height: float, kind: str, said: str) -> Markup:
    """A rectangle; ``said`` shows on hovering."""
    return Markup('<rect x="{}" y="{}" width="{}" height="{}" rx="2" class="{}"><title>{}</title></rect>').format(
        _n(x), _n(y), _n(width), _n(max(height, 1.0)), kind, said
    )


def dot(x: float, y: float, radius: float, kind: str, said: str) -> Markup:
    """A circle; ``said`` shows on hovering."""
    return Markup('<circle cx="{}" cy="{}" r="{}" class="{}"><title>{}</title></circle>').format(
        _n(x), _n(y), _n(radius), kind, said
    )


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Maps values from ``low`` to ``high`` onto places from ``start`` to ``end``."""
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    """The same by the logarithm; both values above 0."""
    scale = linear(math.log(low), math.log(high), start, end)
    return lambda value: scale(math.log(value))


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from ``low`` to ``high``, at most so many."""
    span = high - low
    if span <= 0:
        return [low]
    step = 10.0 ** math.floor(math.log10(span / most))
    step = next(step * factor for factor in (1, 2, 5, 10, 20) if span / (step * factor) <= most - 1 or factor == 20)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … from ``low`` to ``high``, both above 0."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [factor * 10.0**power for power in powers for factor in (1, 2, 5) if low <= factor * 10.0**power <= high]


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
