"""Czech: two to four agree with the noun in the plural; neuter adjectives have their own plural ending."""

from ..scenes import Figures
from .base import Language, words

CASES = ("nominative", "genitive", "instrumental")
# count → nominative (masculine, feminine and neuter), genitive, instrumental
NUMERALS = {
    2: ("dva", "dvě", "dvou", "dvěma"),
    3: ("tři", "tři", "tří", "třemi"),
    4: ("čtyři", "čtyři", "čtyř", "čtyřmi"),
}
COLOURS = {
    "red": "červen",
    "orange": "oranžov",
    "yellow": "žlut",
    "green": "zelen",
    "blue": "modr",
    "purple": "fialov",
    "pink": "růžov",
    "black": "čern",
}
SIZES = {"small": "mal", "large": "velk"}
# gender → endings in the singular, endings in the plural
ENDINGS = {
    "m": (("ý", "ého", "ým"), ("é", "ých", "ými")),
    "f": (("á", "é", "ou"), ("é", "ých", "ými")),
    "n": (("é", "ého", "ým"), ("á", "ých", "ými")),
}
# gender, (nominative, genitive, instrumental) singular, the same in the plural; masculine = inanimate
SHAPES = {
    "circle": ("m", ("kruh", "kruhu", "kruhem"), ("kruhy", "kruhů", "kruhy")),
    "square": ("m", ("čtverec", "čtverce", "čtvercem"), ("čtverce", "čtverců", "čtverci")),
    "triangle": ("m", ("trojúhelník", "trojúhelníku", "trojúhelníkem"), ("trojúhelníky", "trojúhelníků", "trojúhelníky")),
    "star": ("f", ("hvězda", "hvězdy", "hvězdou"), ("hvězdy", "hvězd", "hvězdami")),
    "heart": ("n", ("srdce", "srdce", "srdcem"), ("srdce", "srdcí", "srdci")),
    "cross": ("m", ("kříž", "kříže", "křížem"), ("kříže", "křížů", "kříži")),
    "ring": ("m", ("prstenec", "prstence", "prstencem"), ("prstence", "prstenců", "prstenci")),
    "arrow": ("f", ("šipka", "šipky", "šipkou"), ("šipky", "šipek", "šipkami")),
}


def noun_phrase(figures: Figures, case: str) -> str:
    gender, singular, plural = SHAPES[figures.shape]
    index, several = CASES.index(case), figures.count > 1
    numeral = ""
    if several:
        forms = NUMERALS[figures.count]
        numeral = forms[index + 1] if index else forms[gender != "m"]
    ending = ENDINGS[gender][several][index]
    size = SIZES[figures.size] + ending if figures.size else ""
    return words(numeral, size, COLOURS[figures.colour] + ending, (plural if several else singular)[index])


LANGUAGE = Language(
    tag="cs",
    noun_phrase=noun_phrase,
    places={"left of": "vlevo od {anchor}", "right of": "vpravo od {anchor}", "above": "nad {anchor}", "below": "pod {anchor}"},
    anchor_case={"left of": "genitive", "right of": "genitive", "above": "instrumental", "below": "instrumental"},
    phrase="{subject} {place}",
    sentence="Na obrázku {verb} {subject} {place}.",
    sentence_alone="Na obrázku {verb} {subject}.",
    verbs=("je", "jsou"),
)
