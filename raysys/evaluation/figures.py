"""Figures as inline SVG: drawn with the page's own colours and the reader's own fonts, sharp at any size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raysys.evaluation.markup import Markup, el
from raysys.evaluation.naming import family, language_name

LARGE_CELLS = 12
"""Up to so many languages a heat map has room for a number in each cell."""

PAGE_WIDTH = 980
"""Pixels inside a card at full width; larger heat maps shrink their cells to fit."""


@dataclass(frozen=True)
class Curve:
    """One quantity over training steps."""

    title: str
    steps: list[int]
    values: list[float]


def line_chart(curve: Curve, width: int = 340, height: int = 190) -> Markup:
    """A curve with its axes: the raw values faint, a running mean over them, the last value written at its end."""
    left, right, top, bottom = 40, 48, 10, 24
    steps, values = np.asarray(curve.steps, float), np.asarray(curve.values, float)
    low, high = float(values.min()), float(values.max())
    ticks = nice_ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    first, last = float(steps[0]), float(max(steps[-1], steps[0] + 1))

    def x(step: float) -> float:
        return round(left + (step - first) / (last - first) * (width - left - right), 1)

    def y(value: float) -> float:
        return round(top + (high - value) / ((high - low) or 1) * (height - top - bottom), 1)

    def path(points: np.ndarray) -> str:
        return "M" + "L".join(f"{x(s)},{y(v)}" for s, v in zip(steps, points, strict=True))

    smooth = running_mean(values)
    parts = [
        [
            el("line", x1=left, x2=width - right, y1=y(tick), y2=y(tick), class_="grid"),
            el("text", _number(tick), x=left - 6, y=y(tick) + 3.5, text_anchor="end", class_="tick"),
        ]
        for tick in ticks
    ]
    marks = [tick for tick in nice_ticks(first, last, 4) if first <= tick <= last]
    parts += [[el("text", f"{tick:,.0f}", x=x(tick), y=height - 6, text_anchor="middle", class_="tick")] for tick in marks]
    if len(values) > 1:
        if len(values) > 12:
            parts.append([el("path", d=path(values), class_="curve raw")])
        parts.append([el("path", d=path(smooth), class_="curve")])
    end = float(smooth[-1])
    parts.append([el("circle", cx=x(steps[-1]), cy=y(end), r=3.2, class_="dot")])
    parts.append([el("text", _value(float(values[-1])), x=x(steps[-1]) + 7, y=y(end) + 4, class_="value")])
    summary = f"{curve.title}: {_value(float(values[0]))} at step {steps[0]:.0f}, {_value(float(values[-1]))} at step {steps[-1]:.0f}"
    return el("svg", parts, viewBox=f"0 0 {width} {height}", role="img", aria_label=summary, class_="chart")


def running_mean(values: np.ndarray, share: float = 0.08) -> np.ndarray:
    """Centred mean over about `share` of the points; short series stay as they are."""
    half = int(len(values) * share / 2)
    if half < 1:
        return values
    sums = np.cumsum(np.concatenate([[0.0], values]))
    index = np.arange(len(values))
    # The window shrinks at both ends and stays centred there, so that the ends are not bent towards the middle.
    reach = np.minimum(np.minimum(index, len(values) - 1 - index), half)
    return (sums[index + reach + 1] - sums[index - reach]) / (2 * reach + 1)


def nice_ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten) that cover [low, high] with about `count` steps."""
    if not high > low:
        low, high = low - (abs(low) * 0.1 or 0.5), high + (abs(high) * 0.1 or 0.5)
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    return [round(step * i, 10) for i in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]


def _number(value: float, digits: int = 2) -> str:
    if value == 0 or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.1f}"
    text = f"{value:.{digits}g}"
    return text.replace("-", "−")


def _value(value: float) -> str:
    size = abs(value)
    if 0 < size < 0.001:
        return f"{value:.1e}".replace("-", "−")
    return f"{value:,.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3}f}".replace("-", "−")


def by_family(languages: Sequence[str]) -> list[int]:
    """Order of languages that puts families together: families by size, then name; languages by name."""
    families = [family(language) for language in languages]
    return sorted(
        range(len(languages)), key=lambda i: (-families.count(families[i]), families[i], language_name(languages[i]), languages[i])
    )


def heat_map(languages: Sequence[str], matrix: Sequence[Sequence[float | None]], chance: float | None = None) -> Markup:
    """Query language × target language, families together; the darker the better, with the value in each cell where it fits.

    Args:
        languages: BCP-47 tags in the order of the matrix.
        matrix: shares in [0, 1], [query][target]; None where there is none.
        chance: marked on the scale.
    """
    order = by_family(languages)
    count = len(order)
    tags = [languages[i] for i in order]
    families = [family(tag) for tag in tags]
    breaks = np.cumsum([0] + [int(a != b) for a, b in zip(families[1:], families[:-1], strict=True)])
    names = [language_name(tag) for tag in tags]
    left = 112 + int(6.6 * max(len(name) for name in names))
    gap = 6 if count <= LARGE_CELLS else 4
    cell = 44 if count <= LARGE_CELLS else int(min(26, max(13, (PAGE_WIDTH - left - gap * breaks[-1]) / count)))
    top = 34 if count <= LARGE_CELLS else 16 + int(7 * max(len(tag) for tag in tags))
    place = [i * cell + int(breaks[i]) * gap for i in range(count)]
    known = [v for row in matrix for v in row if v is not None]
    high = max(known, default=0.0) or 1.0
    parts: list[object] = []
    for r, i in enumerate(order):
        y = top + place[r]
        if r == 0 or families[r] != families[r - 1]:
            parts.append(el("text", families[r], x=0, y=y + cell * 0.5 + 4, class_="family"))
        parts.append(el("text", names[r], x=left - 10, y=y + cell * 0.5 + 4, text_anchor="end", class_="label"))
        if count <= LARGE_CELLS:
            parts.append(el("text", tags[r], x=left + place[r] + cell / 2, y=top - 10, text_anchor="middle", class_="label"))
        else:
            turn = f"translate({left + place[r] + cell / 2 + 4} {top - 6}) rotate(-90)"
            parts.append(el("text", tags[r], transform=turn, class_="label"))
        for c, j in enumerate(order):
            value = matrix[i][j]
            box = {"x": left + place[c] + 0.5, "y": y + 0.5, "width": cell - 1, "height": cell - 1, "rx": 3 if cell > 20 else 1.5}
            if value is None:
                parts.append(el("rect", **box, class_="none"))
                continue
            text = el("title", f"{names[r]} → {names[c]}: {value:.3f}")
            shade = round(0.04 + 0.96 * value / high, 3)
            parts.append(el("g", text, el("rect", **box, class_="heat", fill_opacity=shade)))
            if count <= LARGE_CELLS:
                ink = "on-heat strong" if shade > 0.66 else "on-heat"
                label = _share(value)
                parts.append(el("text", label, x=left + place[c] + cell / 2, y=y + cell / 2 + 4, text_anchor="middle", class_=ink))
    side = place[-1] + cell
    legend = _legend(left, top + side + 18, min(side, 260), high, chance)
    width, height = left + side + 8, top + side + 56
    return el(
        "svg",
        parts,
        legend,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label="Share of right translations by query language (rows) and target language (columns)",
        class_="heat-map",
    )


def _legend(x: int, y: int, width: int, high: float, chance: float | None) -> list[Markup]:
    steps = 24
    parts = [
        el(
            "rect",
            x=round(x + width * i / steps, 1),
            y=y,
            width=round(width / steps + 0.3, 1),
            height=8,
            class_="heat",
            fill_opacity=round(0.04 + 0.96 * i / (steps - 1), 3),
        )
        for i in range(steps)
    ]
    parts.append(el("text", _share(high), x=x + width, y=y + 22, text_anchor="end", class_="tick"))
    if chance is not None and 0 < chance < high:
        at = round(x + width * chance / high, 1)
        parts.append(el("line", x1=at, x2=at, y1=y - 3, y2=y + 11, class_="chance-mark"))
        near = at - x < 40
        parts.append(
            el("text", f"chance {_share(chance)}", x=x if near else at, y=y + 22, text_anchor="start" if near else "middle", class_="tick")
        )
    return parts


def _share(value: float) -> str:
    return (
        f"{value:.2f}".removeprefix("0")
        if 0.005 <= value < 0.995
        else f"{value:.3f}".removeprefix("0")
        if 0 < value < 0.005
        else f"{value:.0f}"
    )
