"""Italian: size before the noun, colour after it; "blu", "rosa" and "viola" do not change."""

from ..scenes import Figures
from .base import NOMINATIVE, Language, same_case, words

ARTICLES = {"m": "un", "f": "una"}
NUMERALS = {2: "due", 3: "tre", 4: "quattro"}
# masculine, feminine, masculine plural, feminine plural
COLOURS = {
    "red": ("rosso", "rossa", "rossi", "rosse"),
    "orange": ("arancione", "arancione", "arancioni", "arancioni"),
    "yellow": ("giallo", "gialla", "gialli", "gialle"),
    "green": ("verde", "verde", "verdi", "verdi"),
    "blue": ("blu", "blu", "blu", "blu"),
    "purple": ("viola", "viola", "viola", "viola"),
    "pink": ("rosa", "rosa", "rosa", "rosa"),
    "black": ("nero", "nera", "neri", "nere"),
}
SIZES = {"small": ("piccolo", "piccola", "piccoli", "piccole"), "large": ("grande", "grande", "grandi", "grandi")}
# gender, singular, plural
SHAPES = {
    "circle": ("m", "cerchio", "cerchi"),
    "square": ("m", "quadrato", "quadrati"),
    "triangle": ("m", "triangolo", "triangoli"),
    "star": ("f", "stella", "stelle"),
    "heart": ("m", "cuore", "cuori"),
    "cross": ("f", "croce", "croci"),
    "ring": ("m", "anello", "anelli"),
    "arrow": ("f", "freccia", "frecce"),
}


def noun_phrase(figures: Figures, case: str) -> str:
    gender, singular, plural = SHAPES[figures.shape]
    several = figures.count > 1
    form = 2 * several + (gender == "f")
    return words(
        NUMERALS[figures.count] if several else ARTICLES[gender],
        SIZES[figures.size][form] if figures.size else "",
        plural if several else singular,
        COLOURS[figures.colour][form],
    )


LANGUAGE = Language(
    tag="it",
    noun_phrase=noun_phrase,
    places={"left of": "a sinistra di {anchor}", "right of": "a destra di {anchor}", "above": "sopra {anchor}", "below": "sotto {anchor}"},
    anchor_case=same_case(NOMINATIVE),
    phrase="{subject} {place}",
    sentence="L'immagine mostra {subject} {place}.",
    sentence_alone="L'immagine mostra {subject}.",
)
