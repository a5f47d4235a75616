"""Indonesian: colour and size follow the noun; nothing is inflected, "sebuah" introduces a single thing."""

from ..scenes import Figures
from .base import NOMINATIVE, Language, same_case, words

NUMERALS = {1: "sebuah", 2: "dua", 3: "tiga", 4: "empat"}
COLOURS = {
    "red": "merah",
    "orange": "oranye",
    "yellow": "kuning",
    "green": "hijau",
    "blue": "biru",
    "purple": "ungu",
    "pink": "merah muda",
    "black": "hitam",
}
SIZES = {"small": "kecil", "large": "besar"}
SHAPES = {
    "circle": "lingkaran",
    "square": "persegi",
    "triangle": "segitiga",
    "star": "bintang",
    "heart": "hati",
    "cross": "salib",
    "ring": "cincin",
    "arrow": "panah",
}


def noun_phrase(figures: Figures, case: str) -> str:
    return words(NUMERALS[figures.count], SHAPES[figures.shape], COLOURS[figures.colour], SIZES[figures.size] if figures.size else "")


LANGUAGE = Language(
    tag="id",
    noun_phrase=noun_phrase,
    places={
        "left of": "di sebelah kiri {anchor}",
        "right of": "di sebelah kanan {anchor}",
        "above": "di atas {anchor}",
        "below": "di bawah {anchor}",
    },
    anchor_case=same_case(NOMINATIVE),
    phrase="{subject} {place}",
    sentence="Pada gambar ada {subject} {place}.",
    sentence_alone="Pada gambar ada {subject}.",
)
