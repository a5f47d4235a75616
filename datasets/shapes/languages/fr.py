"""French: size before the noun, colour after it, both agree; "orange" never does; "de" is elided before "un(e)"."""

from ..scenes import Figures
from .base import NOMINATIVE, Language, words

ARTICLES = {"m": "un", "f": "une"}
NUMERALS = {2: "deux", 3: "trois", 4: "quatre"}
# masculine, feminine, masculine plural, feminine plural
COLOURS = {
    "red": ("rouge", "rouge", "rouges", "rouges"),
    "orange": ("orange", "orange", "orange", "orange"),
    "yellow": ("jaune", "jaune", "jaunes", "jaunes"),
    "green": ("vert", "verte", "verts", "vertes"),
    "blue": ("bleu", "bleue", "bleus", "bleues"),
    "purple": ("violet", "violette", "violets", "violettes"),
    "pink": ("rose", "rose", "roses", "roses"),
    "black": ("noir", "noire", "noirs", "noires"),
}
SIZES = {"small": ("petit", "petite", "petits", "petites"), "large": ("grand", "grande", "grands", "grandes")}
# gender, singular, plural
SHAPES = {
    "circle": ("m", "cercle", "cercles"),
    "square": ("m", "carré", "carrés"),
    "triangle": ("m", "triangle", "triangles"),
    "star": ("f", "étoile", "étoiles"),
    "heart": ("m", "cœur", "cœurs"),
    "cross": ("f", "croix", "croix"),
    "ring": ("m", "anneau", "anneaux"),
    "arrow": ("f", "flèche", "flèches"),
}


def noun_phrase(figures: Figures, case: str) -> str:
    """`case` "de" puts the preposition before the phrase."""
    gender, singular, plural = SHAPES[figures.shape]
    several = figures.count > 1
    form = 2 * several + (gender == "f")
    phrase = words(
        NUMERALS[figures.count] if several else ARTICLES[gender],
        SIZES[figures.size][form] if figures.size else "",
        plural if several else singular,
        COLOURS[figures.colour][form],
    )
    if case == NOMINATIVE:
        return phrase
    return f"de {phrase}" if several else f"d'{phrase}"


LANGUAGE = Language(
    tag="fr",
    noun_phrase=noun_phrase,
    places={"left of": "à gauche {anchor}", "right of": "à droite {anchor}", "above": "au-dessus {anchor}", "below": "en dessous {anchor}"},
    anchor_case={"left of": "de", "right of": "de", "above": "de", "below": "de"},
    phrase="{subject} {place}",
    sentence="L'image montre {subject} {place}.",
    sentence_alone="L'image montre {subject}.",
)
