"""Indonesian: colour and size follow the noun; nothing is inflected, "sebuah" introduces a single thing."""

from ..scenes import Figures
from .base import NOMINATIVE, Frames, Language, alike, same_case, words

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
    None: "bangun",
}


def noun_phrase(figures: Figures, case: str) -> str:
    return words(NUMERALS[figures.count], _unnumbered(figures))


def _unnumbered(figures: Figures) -> str:
    return words(
        SHAPES[figures.shape],
        COLOURS[figures.colour] if figures.colour else "",
        SIZES[figures.size] if figures.size else "",
    )


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
    more=Frames(
        known=lambda figures: f"{_unnumbered(figures)} itu",
        uncounted=_unnumbered,
        frames={
            "colour": alike("Apa warna {subject}?"),
            "shape": alike("Apa bentuk {subject}?"),
            "count": alike("Ada berapa {subject} pada gambar?"),
            "exists": alike("Apakah ada {subject}{placed}?"),
            "what": alike("Apa yang ada{placed}?"),
            "left": alike("Gambar kiri menunjukkan {subject}{placed}."),
            "right": alike("Gambar kanan menunjukkan {subject}{placed}."),
            "both": alike("Kedua gambar menunjukkan {subject}{placed}."),
            "one": alike("Hanya satu dari kedua gambar menunjukkan {subject}{placed}."),
            "more left": alike("Gambar kiri menunjukkan lebih banyak {subject} daripada gambar kanan."),
            "more right": alike("Gambar kanan menunjukkan lebih banyak {subject} daripada gambar kiri."),
        },
    ),
)
