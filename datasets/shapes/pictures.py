"""Pictures of scenes: every drawing of the same facts looks different, and all of them are true."""

import colorsys
import io
import math
from dataclasses import dataclass
from random import Random

from PIL import Image, ImageDraw

from .scenes import Figures, Scene

SIZE = 96
OVERSAMPLING = 3
# Diameters as shares of the picture's side. The ranges lie apart, so that the size of a figure can be seen without another beside it.
DIAMETERS = {"small": (0.125, 0.145), None: (0.19, 0.21), "large": (0.27, 0.29)}
# Hue in degrees, saturation, value.
COLOURS: dict[str, tuple[float, float, float]] = {
    "red": (0, 0.88, 0.83),
    "orange": (29, 0.95, 0.96),
    "yellow": (53, 0.90, 0.95),
    "green": (128, 0.72, 0.58),
    "blue": (220, 0.82, 0.80),
    "purple": (277, 0.68, 0.60),
    "pink": (328, 0.45, 0.97),
    "black": (0, 0.00, 0.10),
}
ROTATIONS = {"circle": 0, "ring": 0, "square": 15, "triangle": 25, "heart": 20, "cross": 15, "star": 36, "arrow": 180}
GAP = 0.03
MARGIN = 0.025
SHEET = 0.28
"""Width of the grey sheet that hides one side of some pictures (left, right, top or bottom), as a share of the picture's."""


@dataclass(frozen=True)
class Placed:
    """Where a figure lies: centre and diameter as shares of the picture's side, y downwards; `index` into `scene.figures`."""

    index: int
    x: float
    y: float
    diameter: float

    def box(self, size: int) -> list[float]:
        """[left, top, right, bottom] in pixels of a picture of side `size`."""
        radius = self.diameter / 2
        edges = (self.x - radius, self.y - radius, self.x + radius, self.y + radius)
        return [round(edge * size, 1) for edge in edges]

    def within(self, x: float, y: float, scale: float) -> "Placed":
        """The same in a picture of which the former one is a square with its corner at (x, y)."""
        return Placed(self.index, x + scale * self.x, y + scale * self.y, scale * self.diameter)


def _star() -> list[tuple[float, float]]:
    return [(r * math.sin(i * math.pi / 5), -r * math.cos(i * math.pi / 5)) for i in range(10) for r in ((1.0, 0.42)[i % 2],)]


def _heart() -> list[tuple[float, float]]:
    curve = []
    for step in range(40):
        t = step * math.pi / 20
        x = 16 * math.sin(t) ** 3
        y = 13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)
        curve.append((x / 17, -(y + 2.5) / 17))
    return curve


# Outlines in the unit circle, y downwards.
OUTLINES: dict[str, list[tuple[float, float]]] = {
    "square": [(-0.71, -0.71), (0.71, -0.71), (0.71, 0.71), (-0.71, 0.71)],
    "triangle": [(0.0, -1.0), (0.866, 0.5), (-0.866, 0.5)],
    "star": _star(),
    "heart": _heart(),
    "cross": [
        (0.3 * x, 0.95 * y) if along else (0.95 * x, 0.3 * y)
        for x, y, along in (
            *((-1, -1, True), (1, -1, True)),
            *((0.3 / 0.95, -1, False), (1, -1, False), (1, 1, False), (0.3 / 0.95, 1, False)),
            *((1, 1, True), (-1, 1, True)),
            *((-0.3 / 0.95, 1, False), (-1, 1, False), (-1, -1, False), (-0.3 / 0.95, -1, False)),
        )
    ],
    "arrow": [(1.0, 0.0), (0.15, -0.72), (0.15, -0.27), (-0.97, -0.27), (-0.97, 0.27), (0.15, 0.27), (0.15, 0.72)],
}


def place(scene: Scene, random: Random) -> list[Placed]:
    """Positions for all figures, apart from each other; the sides of a relation are divided by a line and spread across it."""
    while True:
        sides = [(0.0, 0.0, 1.0, 1.0)]
        if scene.second is not None:
            need = [figures.count * (DIAMETERS[figures.size][1] + GAP) ** 2 for figures in scene.figures]
            line = min(0.64, max(0.36, need[0] / sum(need) + random.uniform(-0.06, 0.06)))
            if scene.relation == "left of":
                sides = [(0.0, 0.0, line, 1.0), (line, 0.0, 1.0, 1.0)]
            else:
                sides = [(0.0, 0.0, 1.0, line), (0.0, line, 1.0, 1.0)]
        placed: list[Placed] = []
        for index, (figures, side) in enumerate(zip(scene.figures, sides, strict=True)):
            placed.extend(_scatter(index, figures, side, random))
        if len(placed) == sum(figures.count for figures in scene.figures) and _unambiguous(scene, placed):
            return placed


def _scatter(index: int, figures: Figures, side: tuple[float, float, float, float], random: Random) -> list[Placed]:
    """Up to `figures.count` figures at random places of a side; fewer where they do not fit."""
    placed: list[Placed] = []
    left, top, right, bottom = side
    for _ in range(40 * figures.count):
        diameter = random.uniform(*DIAMETERS[figures.size])
        inset = diameter / 2 + MARGIN
        x, y = random.uniform(left + inset, right - inset), random.uniform(top + inset, bottom - inset)
        if all(math.hypot(x - other.x, y - other.y) > (diameter + other.diameter) / 2 + GAP for other in placed):
            placed.append(Placed(index, x, y, diameter))
        if len(placed) == figures.count:
            break
    return placed


def _unambiguous(scene: Scene, placed: list[Placed]) -> bool:
    """Whether the named relation is the plain one: two groups must not be further apart across it than along it."""
    if scene.second is None:
        return True
    centres = []
    for index in (0, 1):
        group = [figure for figure in placed if figure.index == index]
        centres.append((sum(figure.x for figure in group) / len(group), sum(figure.y for figure in group) / len(group)))
    across, along = abs(centres[0][0] - centres[1][0]), abs(centres[0][1] - centres[1][1])
    if scene.relation == "left of":
        across, along = along, across
    return along > 1.5 * across


def _rgb(hue: float, saturation: float, value: float) -> tuple[int, int, int]:
    red, green, blue = colorsys.hsv_to_rgb(hue / 360 % 1, min(1.0, max(0.0, saturation)), min(1.0, max(0.0, value)))
    return round(255 * red), round(255 * green), round(255 * blue)


def _background(side: int, random: Random) -> Image.Image:
    """A light gradient, in some pictures with faint stripes or dots."""
    hue = random.uniform(0, 360)
    corners = Image.new("RGB", (2, 2))
    corners.putdata([_rgb(hue + random.uniform(-40, 40), random.uniform(0, 0.12), random.uniform(0.92, 1)) for _ in range(4)])
    picture = corners.resize((side, side), Image.Resampling.BICUBIC)
    pattern = random.choice(("none", "none", "stripes", "dots"))
    if pattern == "none":
        return picture
    draw = ImageDraw.Draw(picture)
    ink = _rgb(hue + random.uniform(-60, 60), random.uniform(0.02, 0.1), random.uniform(0.88, 0.95))
    step = random.randint(side // 12, side // 6)
    if pattern == "stripes":
        slant = random.randint(-side, side)
        for x in range(-side, 2 * side, step):
            draw.line([(x, 0), (x + slant, side)], fill=ink, width=step // 3)
    else:
        radius = step / 6
        for x in range(step // 2, side, step):
            for y in range(step // 2, side, step):
                draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=ink)
    return picture


def _draw_figure(draw: ImageDraw.ImageDraw, figures: Figures, placed: Placed, side: int, outlined: bool, random: Random) -> None:
    hue, saturation, value = COLOURS[figures.colour]
    hue += random.uniform(-6, 6)
    value += random.uniform(-0.05, 0.05)
    if figures.colour != "black":
        saturation += random.uniform(-0.06, 0.06)
    fill = _rgb(hue, saturation, value)
    ink = _rgb(hue, saturation, 0.6 * value) if outlined else fill
    width = max(1, side // 96)
    x, y, radius = placed.x * side, placed.y * side, placed.diameter / 2 * side
    angle = math.radians(random.uniform(-1, 1) * ROTATIONS[figures.shape])
    if figures.shape in ("circle", "ring"):
        radius *= 0.92
        box = (x - radius, y - radius, x + radius, y + radius)
        if figures.shape == "circle":
            draw.ellipse(box, fill=fill, outline=ink, width=width)
        else:
            draw.ellipse(box, outline=fill, width=round(0.42 * radius))
            if outlined:
                draw.ellipse(box, outline=ink, width=width)
        return
    sin, cos = radius * math.sin(angle), radius * math.cos(angle)
    corners = [(x + cos * u - sin * v, y + sin * u + cos * v) for u, v in OUTLINES[figures.shape]]
    draw.polygon(corners, fill=fill, outline=ink, width=width)


def sheet_box(side: str, size: int) -> list[float]:
    """[left, top, right, bottom] in pixels of the sheet on one side of a picture that is `size` wide and high."""
    width = round(SHEET * size, 1)
    boxes = {"left": [0, 0, width, size], "right": [size - width, 0, size, size], "top": [0, 0, size, width]}
    return [float(edge) for edge in boxes.get(side, [0, size - width, size, size])]


def _draw_sheet(draw: ImageDraw.ImageDraw, side: str, size: int, random: Random) -> None:
    grey = random.randint(120, 150)
    left, top, right, bottom = sheet_box(side, size)
    draw.rectangle((left, top, right, bottom), fill=(grey, grey, grey))
    for stripe in range(-size, size, size // 12):  # so that it is not taken for a figure of a colour of its own
        for x in range(round(left), round(right)):
            y = x + stripe
            if top <= y < bottom:
                draw.line((x, y, x, min(y + 2, bottom)), fill=(grey - 30,) * 3)


def draw(scene: Scene, random: Random, size: int = SIZE, sheet: str | None = None) -> tuple[Image.Image, list[Placed]]:
    """An RGB picture of side `size` of the scene, and where its figures lie; a `sheet` on one side lies beside all of them."""
    side = size * OVERSAMPLING
    placed = place(scene, random)
    if sheet is not None:
        aside = random.uniform(0, SHEET)
        x, y = {"left": (SHEET, aside), "right": (0.0, aside), "top": (aside, SHEET), "bottom": (aside, 0.0)}[sheet]
        placed = [figure.within(x, y, 1 - SHEET) for figure in placed]
    picture = _background(side, random)
    canvas = ImageDraw.Draw(picture)
    outlined = random.random() < 0.4
    for figure in placed:
        _draw_figure(canvas, scene.figures[figure.index], figure, side, outlined, random)
    if sheet is not None:
        _draw_sheet(canvas, sheet, side, random)
    return picture.reduce(OVERSAMPLING), placed


def encode(picture: Image.Image, random: Random) -> tuple[bytes, str]:
    """The picture as a file and the file's extension: PNG or JPEG, at random."""
    buffer = io.BytesIO()
    if random.random() < 0.5:
        picture.save(buffer, "PNG")
        return buffer.getvalue(), "png"
    return jpeg(picture, random), "jpg"


def jpeg(picture: Image.Image, random: Random) -> bytes:
    """The picture as a JPEG file of a random quality."""
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=random.randint(85, 95))
    return buffer.getvalue()
