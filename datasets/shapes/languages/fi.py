"""Finnish: the partitive singular after a numeral in the nominative; the postpositions govern the genitive (singular, too)."""

from ..scenes import Figures
from .base import Language, same_case, words

# nominative, genitive
NUMERALS = {2: ("kaksi", "kahden"), 3: ("kolme", "kolmen"), 4: ("neljä", "neljän")}
# nominative, genitive, partitive
COLOURS = {
    "red": ("punainen", "punaisen", "punaista"),
    "orange": ("oranssi", "oranssin", "oranssia"),
    "yellow": ("keltainen", "keltaisen", "keltaista"),
    "green": ("vihreä", "vihreän", "vihreää"),
    "blue": ("sininen", "sinisen", "sinistä"),
    "purple": ("violetti", "violetin", "violettia"),
    "pink": ("vaaleanpunainen", "vaaleanpunaisen", "vaaleanpunaista"),
    "black": ("musta", "mustan", "mustaa"),
}
SIZES = {"small": ("pieni", "pienen", "pientä"), "large": ("iso", "ison", "isoa")}
SHAPES = {
    "circle": ("ympyrä", "ympyrän", "ympyrää"),
    "square": ("neliö", "neliön", "neliötä"),
    "triangle": ("kolmio", "kolmion", "kolmiota"),
    "star": ("tähti", "tähden", "tähteä"),
    "heart": ("sydän", "sydämen", "sydäntä"),
    "cross": ("risti", "ristin", "ristiä"),
    "ring": ("rengas", "renkaan", "rengasta"),
    "arrow": ("nuoli", "nuolen", "nuolta"),
}


def noun_phrase(figures: Figures, case: str) -> str:
    genitive, several = case == "genitive", figures.count > 1
    form = 1 if genitive else 2 if several else 0
    return words(
        NUMERALS[figures.count][genitive] if several else "",
        SIZES[figures.size][form] if figures.size else "",
        COLOURS[figures.colour][form],
        SHAPES[figures.shape][form],
    )


LANGUAGE = Language(
    tag="fi",
    noun_phrase=noun_phrase,
    places={
        "left of": "{anchor} vasemmalla puolella",
        "right of": "{anchor} oikealla puolella",
        "above": "{anchor} yläpuolella",
        "below": "{anchor} alapuolella",
    },
    anchor_case=same_case("genitive"),
    phrase="{subject} {place}",
    sentence="Kuvassa on {subject} {place}.",
    sentence_alone="Kuvassa on {subject}.",
)
