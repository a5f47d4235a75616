"""Art: which picture a style has for an emoji, and how it is drawn."""

import json
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from PIL import Image

from ..common.pictures import read_raster, render_svg, square
from .sources import read_members

_VARIATION_SELECTOR = 0xFE0F


def code_point(emoji: str) -> str | None:
    """Hexadecimal code point of an emoji of one character (a variation selector aside); None for a sequence."""
    points = [ord(character) for character in emoji if ord(character) != _VARIATION_SELECTOR]
    return f"{points[0]:04x}" if len(points) == 1 else None


def slug(english_name: str) -> str:
    """The key icon sets give an emoji: ``face with hand over mouth`` → ``face-with-hand-over-mouth``."""
    plain = unicodedata.normalize("NFKD", english_name.lower().replace("’", "").replace("'", ""))
    return re.sub(r"[^a-z0-9]+", "-", "".join(c for c in plain if not unicodedata.combining(c))).strip("-")


class Art(Protocol):
    """The pictures of one style."""

    def find(self, point: str, english_name: str) -> str | None:
        """Key of the picture of an emoji, None where the style has none."""

    def draw(self, key: str, size: int) -> Image.Image:
        """The picture on a white square, RGB, `size` pixels a side."""


class IconSet:
    """Drawings in the form of Iconify: one JSON file of SVG bodies, aliases that may be mirrored or turned, and (newer sets) a
    table from code points to keys."""

    def __init__(self, archive: Path):
        files = read_members(archive, lambda path: path in ("icons.json", "chars.json", "metadata.json"))
        icons = json.loads(files["icons.json"])
        self._icons: dict[str, dict[str, Any]] = icons["icons"]
        self._aliases: dict[str, dict[str, Any]] = icons.get("aliases", {})
        self._defaults = {"left": 0, "top": 0, "width": icons.get("width", 16), "height": icons.get("height", 16)}
        self._points: dict[str, str] = json.loads(files["chars.json"])
        self.categories: dict[str, str] = {
            key: category for category, keys in json.loads(files["metadata.json"])["categories"].items() for key in keys
        }
        """Icon key → Unicode's group of emoji (``Animals & Nature``, …)."""

    def find(self, point: str, english_name: str) -> str | None:
        """Key of the picture of an emoji: by code point, else by the slug of its name."""
        key = self._points.get(point) or self._points.get(f"{point}-fe0f") or slug(english_name)
        return key if key in self._icons or key in self._aliases else None

    def svg(self, key: str) -> str:
        """The drawing as a whole SVG document."""
        properties: dict[str, Any] = {}
        flips, turns = [], 0
        while key in self._aliases:
            alias = self._aliases[key]
            flips.append((alias.get("hFlip", False), alias.get("vFlip", False)))
            turns += alias.get("rotate", 0)
            properties = {**alias, **properties}
            key = alias["parent"]
        box = {**self._defaults, **self._icons[key], **properties}
        left, top, width, height = (box[name] for name in ("left", "top", "width", "height"))
        middle = (left + width / 2, top + height / 2)
        mirrored = [sum(flip[axis] for flip in flips) % 2 for axis in (0, 1)]
        transform = (
            f"translate({middle[0]} {middle[1]}) rotate({90 * (turns % 4)}) "
            f"scale({1 - 2 * mirrored[0]} {1 - 2 * mirrored[1]}) translate({-middle[0]} {-middle[1]})"
        )
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'viewBox="{left} {top} {width} {height}" width="{width}" height="{height}">'
            f'<g transform="{transform}">{self._icons[key]["body"]}</g></svg>'
        )

    def draw(self, key: str, size: int) -> Image.Image:
        """The picture on a white square, RGB, `size` pixels a side."""
        return square(render_svg(self.svg(key), size))


class RasterSet:
    """Pictures as WebP files named by code point."""

    def __init__(self, archive: Path, points: Iterable[str]):
        wanted = {f"assets/{point}{selector}.webp": point for point in points for selector in ("", "-fe0f")}
        self._files = {wanted[path]: data for path, data in read_members(archive, wanted.__contains__).items()}

    def find(self, point: str, english_name: str) -> str | None:
        """Key of the picture of an emoji: its code point."""
        return point if point in self._files else None

    def draw(self, key: str, size: int) -> Image.Image:
        """The picture on a white square, RGB, `size` pixels a side."""
        return square(read_raster(self._files[key], size))
