"""Turkish: no plural after a numeral; the anchor stands in the genitive (vowel harmony, softened final consonant)."""

from ..scenes import Figures
from .base import Language, same_case, words

NUMERALS = {2: "iki", 3: "üç", 4: "dört"}
COLOURS = {
    "red": "kırmızı",
    "orange": "turuncu",
    "yellow": "sarı",
    "green": "yeşil",
    "blue": "mavi",
    "purple": "mor",
    "pink": "pembe",
    "black": "siyah",
}
SIZES = {"small": "küçük", "large": "büyük"}
# nominative, genitive
SHAPES = {
    "circle": ("daire", "dairenin"),
    "square": ("kare", "karenin"),
    "triangle": ("üçgen", "üçgenin"),
    "star": ("yıldız", "yıldızın"),
    "heart": ("kalp", "kalbin"),
    "cross": ("haç", "haçın"),
    "ring": ("halka", "halkanın"),
    "arrow": ("ok", "okun"),
}


def noun_phrase(figures: Figures, case: str) -> str:
    """ "bir" stands beside the noun as an article, the numerals before the adjectives."""
    noun = SHAPES[figures.shape][case == "genitive"]
    size = SIZES[figures.size] if figures.size else ""
    colour = COLOURS[figures.colour]
    return words(size, colour, "bir", noun) if figures.count == 1 else words(NUMERALS[figures.count], size, colour, noun)


LANGUAGE = Language(
    tag="tr",
    noun_phrase=noun_phrase,
    places={"left of": "{anchor} solunda", "right of": "{anchor} sağında", "above": "{anchor} üstünde", "below": "{anchor} altında"},
    anchor_case=same_case("genitive"),
    phrase="{place}ki {subject}",
    sentence="Resimde {place} {subject} var.",
    sentence_alone="Resimde {subject} var.",
)
