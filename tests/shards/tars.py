"""Tars, good and bad, made by hand for tests."""

import io
import json
import tarfile
from collections.abc import Iterable

import numpy as np
import PIL.Image

from raysys.shards.sample import Sample


def picture(number: int = 0, size: tuple[int, int] = (16, 12), kind: str = "PNG") -> bytes:
    """An encoded image of noise; equal for equal arguments."""
    pixels = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def text(number: int = 0, **fields) -> bytes:
    """A json member with one German and two English captions."""
    captions = {"de": [f"Bild {number}"], "en": [f"picture {number}", f"image {number}"]}
    return json.dumps({"captions": captions, "alignment": "strict", **fields}).encode()


def tar(members: Iterable[tuple[str, bytes]], layout: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar of (name, content) in order; a name that ends with a slash makes a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=layout) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if name.endswith("/"):
                info.type = tarfile.DIRTYPE
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def without_end(data: bytes) -> bytes:
    """A tar that was cut after its last member, whose content must not end with zeros."""
    length = len(data.rstrip(b"\0"))
    return data[: -(-length // 512) * 512]


def pairs(numbers: Iterable[int]) -> list[tuple[str, bytes]]:
    """Members of samples with an image and a json each."""
    return [member for n in numbers for member in ((f"s{n:03}.json", text(n)), (f"s{n:03}.png", picture(n)))]


def samples(count: int, split: str = "train") -> list[Sample]:
    """Samples for the writer."""
    return [Sample(split, f"s{n:03}", picture(n), "png", json.loads(text(n, group=f"g{n // 2}"))) for n in range(count)]
