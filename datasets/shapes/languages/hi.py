"""Hindi: before a postposition noun and adjective stand in the oblique case; all the nouns used are masculine."""

from ..scenes import Figures
from .base import Language, same_case, words

NUMERALS = {1: "एक", 2: "दो", 3: "तीन", 4: "चार"}
# direct singular; everything else (oblique, plural)
COLOURS = {
    "red": ("लाल", "लाल"),
    "orange": ("नारंगी", "नारंगी"),
    "yellow": ("पीला", "पीले"),
    "green": ("हरा", "हरे"),
    "blue": ("नीला", "नीले"),
    "purple": ("बैंगनी", "बैंगनी"),
    "pink": ("गुलाबी", "गुलाबी"),
    "black": ("काला", "काले"),
}
SIZES = {"small": ("छोटा", "छोटे"), "large": ("बड़ा", "बड़े")}
# direct singular, oblique singular, direct plural, oblique plural
SHAPES = {
    "circle": ("वृत्त", "वृत्त", "वृत्त", "वृत्तों"),
    "square": ("वर्ग", "वर्ग", "वर्ग", "वर्गों"),
    "triangle": ("त्रिभुज", "त्रिभुज", "त्रिभुज", "त्रिभुजों"),
    "star": ("तारा", "तारे", "तारे", "तारों"),
    "heart": ("दिल", "दिल", "दिल", "दिलों"),
    "cross": ("क्रॉस", "क्रॉस", "क्रॉस", "क्रॉसों"),
    "ring": ("छल्ला", "छल्ले", "छल्ले", "छल्लों"),
    "arrow": ("तीर", "तीर", "तीर", "तीरों"),
}


def noun_phrase(figures: Figures, case: str) -> str:
    several, oblique = figures.count > 1, case == "oblique"
    changed = several or oblique
    return words(
        NUMERALS[figures.count],
        SIZES[figures.size][changed] if figures.size else "",
        COLOURS[figures.colour][changed],
        SHAPES[figures.shape][2 * several + oblique],
    )


LANGUAGE = Language(
    tag="hi",
    noun_phrase=noun_phrase,
    places={"left of": "{anchor} के बाईं ओर", "right of": "{anchor} के दाईं ओर", "above": "{anchor} के ऊपर", "below": "{anchor} के नीचे"},
    anchor_case=same_case("oblique"),
    phrase="{place} {subject}",
    sentence="चित्र में {place} {subject} {verb}।",
    sentence_alone="चित्र में {subject} {verb}।",
    verbs=("है", "हैं"),
)
