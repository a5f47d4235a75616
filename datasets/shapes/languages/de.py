"""German: mixed declension after "ein", strong declension after a numeral; the relations govern the dative."""

from ..scenes import Figures
from .base import Frames, Language, alike, same_case, words

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
    None: ("f", "Figur", "Figur", "Figuren", "Figuren"),
}
# (gender, case) → article, ending of the adjectives
SINGULAR = {
    ("m", "nominative"): ("ein", "er"),
    ("m", "accusative"): ("einen", "en"),
    ("m", "dative"): ("einem", "en"),
    ("n", "nominative"): ("ein", "es"),
    ("n", "accusative"): ("ein", "es"),
    ("n", "dative"): ("einem", "en"),
    ("f", "nominative"): ("eine", "e"),
    ("f", "accusative"): ("eine", "e"),
    ("f", "dative"): ("einer", "en"),
}
DEFINITE = {"m": "der", "n": "das", "f": "die"}


def noun_phrase(figures: Figures, case: str) -> str:
    gender, singular, dative_singular, plural, dative_plural = SHAPES[figures.shape]
    if figures.count == 1:
        determiner, ending = SINGULAR[gender, case]
        noun = dative_singular if case == "dative" else singular
    else:
        determiner, ending = NUMERALS[figures.count], "en" if case == "dative" else "e"
        noun = dative_plural if case == "dative" else plural
    return words(determiner, *_adjectives(figures, ending), noun)


def _adjectives(figures: Figures, ending: str) -> tuple[str, str]:
    return SIZES[figures.size] + ending if figures.size else "", COLOURS[figures.colour] + ending if figures.colour else ""


def _known(figures: Figures) -> str:
    """Weak declension after the definite article."""
    gender, singular, _, plural, _ = SHAPES[figures.shape]
    if figures.count == 1:
        return words(DEFINITE[gender], *_adjectives(figures, "e"), singular)
    return words("die", *_adjectives(figures, "en"), plural)


def _uncounted(figures: Figures) -> str:
    return words(*_adjectives(figures, "e"), SHAPES[figures.shape][3])


LANGUAGE = Language(
    tag="de",
    noun_phrase=noun_phrase,
    places={"left of": "links von {anchor}", "right of": "rechts von {anchor}", "above": "über {anchor}", "below": "unter {anchor}"},
    anchor_case=same_case("dative"),
    phrase="{subject} {place}",
    sentence="Das Bild zeigt {subject} {place}.",
    sentence_alone="Das Bild zeigt {subject}.",
    sentence_case="accusative",
    more=Frames(
        known=_known,
        uncounted=_uncounted,
        frames={
            "colour": ("Welche Farbe hat {subject}?", "Welche Farbe haben {subject}?"),
            "shape": ("Welche Form hat {subject}?", "Welche Form haben {subject}?"),
            "count": alike("Wie viele {subject} gibt es?"),
            "exists": alike("Gibt es {subject}{placed}?"),
            "what": alike("Was ist{placed} zu sehen?"),
            "left": alike("Das linke Bild zeigt {subject}{placed}."),
            "right": alike("Das rechte Bild zeigt {subject}{placed}."),
            "both": alike("Beide Bilder zeigen {subject}{placed}."),
            "one": alike("Genau eines der Bilder zeigt {subject}{placed}."),
            "more left": alike("Das linke Bild zeigt mehr {subject} als das rechte."),
            "more right": alike("Das rechte Bild zeigt mehr {subject} als das linke."),
        },
    ),
)
