"""What every export is asked before it is called done: does it give the vectors of the encoder that it was made from?"""

import importlib.util
import io
from typing import Any

import numpy as np
from PIL import Image

from raysys.errors import RunFailed, UserError

TOLERANCE = 1e-5
"""Largest difference of any entry of two unit vectors that still counts as rounding."""
SENTENCES = (
    "A dog.",
    "a red circle above three very small green triangles, which nobody has ever seen before in this long sentence",
    "Ein Hund läuft über die Straße!",
    "Le garçon mange une pomme",
    "Собака бежит по улице",
    "δύο μεγάλα τετράγωνα",
    "赤い丸と犬",
    "两只狗在公园里跑",
    "개가 달린다",
    "कुत्ता दौड़ रहा है",
    "كلب يركض في الشارع",
    "כלב רץ",
    "สุนัขวิ่ง",
    "ძაღლი გარბის",
    "🐕 x² — 42",
)
"""Short and long ones, in many scripts."""


def pictures(size: int) -> list[bytes]:
    """Encoded pictures that are larger and smaller than the square of `size`, lengthwise and across, with and without transparency."""
    random = np.random.default_rng(0)

    def encoded(width: int, height: int, mode: str, kind: str) -> bytes:
        coarse = Image.fromarray(random.integers(0, 256, (5, 7, len(mode)), dtype=np.uint8), mode)
        buffer = io.BytesIO()
        coarse.resize((width, height), Image.Resampling.BICUBIC).save(buffer, kind, quality=95)
        return buffer.getvalue()

    return [
        encoded(size, size, "RGB", "PNG"),
        encoded(2 * size + 31, size + 9, "RGB", "PNG"),
        encoded(size // 2 + 3, size, "RGBA", "PNG"),
        encoded(3 * size, 4 * size, "RGB", "JPEG"),
    ]


def difference(what: str, expected: np.ndarray, found: np.ndarray) -> float:
    """Largest difference of unit vectors [n, d].

    Raises:
        RunFailed: it is larger than :data:`TOLERANCE`, or not a number; names `what`.
    """
    if expected.shape != found.shape:
        raise RunFailed(f"{what}: vectors of shape {list(found.shape)} instead of {list(expected.shape)}: the export is not usable")
    largest = float(np.abs(expected.astype(np.float64) - found).max(initial=0))
    if not largest <= TOLERANCE:
        raise RunFailed(f"{what}: differs from the trained encoder by {largest:.1e}, more than {TOLERANCE:.0e}: the export is not usable")
    return largest


def same_tensors(what: str, expected: dict[str, Any], found: dict[str, Any]) -> None:
    """Raise RunFailed where two state dicts are not equal, tensor by tensor."""
    if expected.keys() != found.keys():
        raise RunFailed(f"{what}: has other tensors than the trained system: {sorted(expected.keys() ^ found.keys())[:3]}")
    for name, tensor in expected.items():
        if not tensor.cpu().equal(found[name]):
            raise RunFailed(f"{what}: the tensor {name} is not that of the trained system")


def need(wanted: str, *packages: str) -> None:
    """Raise UserError where one of the packages that the format `wanted` needs is not installed."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise UserError(f"the format {wanted} needs the package {package}: pip install 'raysys[export]'")
