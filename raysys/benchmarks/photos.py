"""Pictures that cost as much to decode as photographs do, made without any download."""

import io
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageDraw

from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage, join

SMALLEST, LARGEST = 256, 400  # pixels, width and height
QUALITY = 88
FALL = 1.3  # amplitude ∝ frequency ** −FALL
LANGUAGES = ("en", "de", "ru", "ja")
_SYLLABLES = {
    "en": ["ba", "the", "on", "red", "tree", "car", "run", "sea", "light", "bird"],
    "de": ["ein", "wald", "und", "blau", "haus", "der", "fluss", "grün", "stein", "schön"],
    "ru": ["дом", "лес", "вода", "и", "кот", "на", "снег", "путь", "мир", "свет"],
    "ja": ["木", "水", "の", "山", "と", "青い", "犬", "が", "走る", "空"],
}


def photos(count: int, seed: int = 0) -> Iterator[Sample]:
    """`count` JPEGs of 256–400 px, each with one caption of 5 to 14 words in one of four languages.

    Like natural photographs they have amplitudes that fall with the frequency, and edges; at about 2.3 bits a pixel their JPEGs are as
    large, which is what decoding time follows. Deterministic.
    """
    random = np.random.default_rng(seed)
    texture = _texture(random, 1536)
    for number in range(count):
        language = LANGUAGES[number % len(LANGUAGES)]
        words = random.choice(_SYLLABLES[language], random.integers(5, 15))
        caption = ("" if language == "ja" else " ").join(words)
        metadata = {"captions": {language: [caption]}, "alignment": "strict"}
        yield Sample("train", f"{number:06d}", _photo(random, texture), "jpg", metadata)


def write_photos(folder: str, count: int = 2000, shards: int = 8, seed: int = 0) -> str:
    """Write :func:`photos` as shards beneath `folder`; returns the data set's folder."""
    data = join(folder, "train")
    write_shards(photos(count, seed), data, shards, Storage())
    return data


def _texture(random: np.random.Generator, size: int) -> np.ndarray:
    """Noise with a falling spectrum whose channels are related, uint8 [size, size, 3]."""
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None, :])
    frequency[0, 0] = np.inf
    channels = [np.fft.irfft2(np.fft.rfft2(random.normal(size=(size, size))) / frequency**FALL, (size, size)) for _ in range(4)]
    light = channels[0] / channels[0].std()
    colour = np.stack([channel / channel.std() for channel in channels[1:]], axis=-1)
    return np.clip(128 + 45 * light[..., None] + 20 * colour, 0, 255).astype(np.uint8)


def _photo(random: np.random.Generator, texture: np.ndarray) -> bytes:
    width, height = (int(side) for side in random.integers(SMALLEST, LARGEST + 1, 2))
    image = _crop(random, texture, width, height)
    other = _crop(random, texture, width, height)
    shapes = Image.new("L", (width, height))
    draw = ImageDraw.Draw(shapes)
    for _ in range(random.integers(2, 7)):
        left, top = int(random.integers(-40, width)), int(random.integers(-40, height))
        box = (left, top, left + int(random.integers(30, 200)), top + int(random.integers(30, 200)))
        (draw.ellipse if random.random() < 0.5 else draw.rectangle)(box, fill=int(random.integers(100, 256)))
    image.paste(other, mask=shapes)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


def _crop(random: np.random.Generator, texture: np.ndarray, width: int, height: int) -> Image.Image:
    top, left = random.integers(0, len(texture) - height + 1), random.integers(0, len(texture) - width + 1)
    return Image.fromarray(np.ascontiguousarray(texture[top : top + height, left : left + width]))
