"""German: mixed declension after "ein", strong declension after a numeral; the relations govern the dative."""

from ..scenes import Figures
from .base import Language, same_case, words

NUMERALS = {2: "zwei", 3: "drei", 4: "vier"}
COLOURS = {
    "red": "rot",
    "orange": "orangefarben",
    "yellow": "gelb",
    "green": "grün",
    "blue": "blau",
    "purple": "violett",
    "pink": "rosafarben",
    "black": "schwarz",
}
SIZES = {"small": "klein", "large": "groß"}
# gender, singular, dative singular, plural, dative plural
SHAPES = {
    "circle": ("m", "Kreis", "Kreis", "Kreise", "Kreisen"),
    "square": ("n", "Quadrat", "Quadrat", "Quadrate", "Quadraten"),
    "triangle": ("n", "Dreieck", "Dreieck", "Dreiecke", "Dreiecken"),
    "star": ("m", "Stern", "Stern", "Sterne", "Sternen"),
    "heart": ("n", "Herz", "Herzen", "Herzen", "Herzen"),
    "cross": ("n", "Kreuz", "Kreuz", "Kreuze", "Kreuzen"),
    "ring": ("m", "Ring", "Ring", "Ringe", "Ringen"),
    "arrow": ("m", "Pfeil", "Pfeil", "Pfeile", "Pfeilen"),
}
# (gender, case) → article, ending of the adjectives
SINGULAR = {
    ("m", "nominative"): ("ein", "er"),
    ("m", "accusative"): ("einen", "en"),
    ("m", "dative"): ("einem", "en"),
    ("n", "nominative"): ("ein", "es"),
    ("n", "accusative"): ("ein", "es"),
    ("n", "dative"): ("einem", "en"),
}


def noun_phrase(figures: Figures, case: str) -> str:
    gender, singular, dative_singular, plural, dative_plural = SHAPES[figures.shape]
    if figures.count == 1:
        determiner, ending = SINGULAR[gender, case]
        noun = dative_singular if case == "dative" else singular
    else:
        determiner, ending = NUMERALS[figures.count], "en" if case == "dative" else "e"
        noun = dative_plural if case == "dative" else plural
    size = SIZES[figures.size] + ending if figures.size else ""
    return words(determiner, size, COLOURS[figures.colour] + ending, noun)


LANGUAGE = Language(
    tag="de",
    noun_phrase=noun_phrase,
    places={"left of": "links von {anchor}", "right of": "rechts von {anchor}", "above": "über {anchor}", "below": "unter {anchor}"},
    anchor_case=same_case("dative"),
    phrase="{subject} {place}",
    sentence="Das Bild zeigt {subject} {place}.",
    sentence_alone="Das Bild zeigt {subject}.",
    sentence_case="accusative",
)
