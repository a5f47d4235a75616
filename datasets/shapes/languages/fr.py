"""French: size before the noun, colour after it, both agree; "orange" never does; "de" is elided before "un(e)"."""

from ..scenes import Figures
from .base import NOMINATIVE, Frames, Language, alike, words

ARTICLES = {"m": "un", "f": "une"}
DEFINITE = {"m": "le", "f": "la"}
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
    None: ("f", "figure", "figures"),
}


def noun_phrase(figures: Figures, case: str) -> str:
    """`case` "de" puts the preposition before the phrase."""
    several = figures.count > 1
    phrase = words(NUMERALS[figures.count] if several else ARTICLES[SHAPES[figures.shape][0]], _unnumbered(figures, several))
    if case == NOMINATIVE:
        return phrase
    return f"de {phrase}" if several else f"d'{phrase}"


def _unnumbered(figures: Figures, several: bool) -> str:
    gender, singular, plural = SHAPES[figures.shape]
    form = 2 * several + (gender == "f")
    return words(
        SIZES[figures.size][form] if figures.size else "",
        plural if several else singular,
        COLOURS[figures.colour][form] if figures.colour else "",
    )


def _elided(word: str, phrase: str) -> str:
    """ "le", "la" or "de" before a phrase: elided before a vowel."""
    return f"{word[0]}'{phrase}" if phrase[0] in "aeiouéœ" else f"{word} {phrase}"


def _known(figures: Figures) -> str:
    if figures.count > 1:
        return f"les {_unnumbered(figures, True)}"
    return _elided(DEFINITE[SHAPES[figures.shape][0]], _unnumbered(figures, False))


LANGUAGE = Language(
    tag="fr",
    noun_phrase=noun_phrase,
    places={"left of": "à gauche {anchor}", "right of": "à droite {anchor}", "above": "au-dessus {anchor}", "below": "en dessous {anchor}"},
    anchor_case={"left of": "de", "right of": "de", "above": "de", "below": "de"},
    phrase="{subject} {place}",
    sentence="L'image montre {subject} {place}.",
    sentence_alone="L'image montre {subject}.",
    more=Frames(
        known=_known,
        uncounted=lambda figures: _elided("de", _unnumbered(figures, True)),
        frames={
            "colour": ("De quelle couleur est {subject} ?", "De quelle couleur sont {subject} ?"),
            "shape": ("Quelle forme a {subject} ?", "Quelle forme ont {subject} ?"),
            "count": alike("Combien y a-t-il {subject} ?"),
            "exists": alike("Y a-t-il {subject}{placed} ?"),
            "what": alike("Que voit-on{placed} ?"),
            "left": alike("L'image de gauche montre {subject}{placed}."),
            "right": alike("L'image de droite montre {subject}{placed}."),
            "both": alike("Les deux images montrent {subject}{placed}."),
            "one": alike("Une seule des deux images montre {subject}{placed}."),
            "more left": alike("L'image de gauche montre plus {subject} que celle de droite."),
            "more right": alike("L'image de droite montre plus {subject} que celle de gauche."),
        },
    ),
)
