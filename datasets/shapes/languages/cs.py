"""Czech: two to four agree with the noun in the plural; neuter adjectives have their own plural ending."""

from ..scenes import Figures
from .base import NOMINATIVE, Frames, Language, alike, words

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
    None: ("m", ("útvar", "útvaru", "útvarem"), ("útvary", "útvarů", "útvary")),
}


def noun_phrase(figures: Figures, case: str) -> str:
    index, several = CASES.index(case), figures.count > 1
    numeral = ""
    if several:
        forms = NUMERALS[figures.count]
        numeral = forms[index + 1] if index else forms[SHAPES[figures.shape][0] != "m"]
    return words(numeral, _unnumbered(figures, several, case))


def _unnumbered(figures: Figures, several: bool, case: str) -> str:
    gender, singular, plural = SHAPES[figures.shape]
    index = CASES.index(case)
    ending = ENDINGS[gender][several][index]
    return words(
        SIZES[figures.size] + ending if figures.size else "",
        COLOURS[figures.colour] + ending if figures.colour else "",
        (plural if several else singular)[index],
    )


LANGUAGE = Language(
    tag="cs",
    noun_phrase=noun_phrase,
    places={"left of": "vlevo od {anchor}", "right of": "vpravo od {anchor}", "above": "nad {anchor}", "below": "pod {anchor}"},
    anchor_case={"left of": "genitive", "right of": "genitive", "above": "instrumental", "below": "instrumental"},
    phrase="{subject} {place}",
    sentence="Na obrázku {verb} {subject} {place}.",
    sentence_alone="Na obrázku {verb} {subject}.",
    verbs=("je", "jsou"),
    more=Frames(
        known=lambda figures: _unnumbered(figures, figures.count > 1, NOMINATIVE),
        uncounted=lambda figures: _unnumbered(figures, True, "genitive"),
        frames={
            "colour": ("Jakou barvu má {subject}?", "Jakou barvu mají {subject}?"),
            "shape": ("Jaký tvar má {subject}?", "Jaký tvar mají {subject}?"),
            "count": alike("Kolik {subject} je na obrázku?"),
            "exists": ("Je na obrázku {subject}{placed}?", "Jsou na obrázku {subject}{placed}?"),
            "what": alike("Co je{placed}?"),
            "left": ("Na levém obrázku je {subject}{placed}.", "Na levém obrázku jsou {subject}{placed}."),
            "right": ("Na pravém obrázku je {subject}{placed}.", "Na pravém obrázku jsou {subject}{placed}."),
            "both": ("Na obou obrázcích je {subject}{placed}.", "Na obou obrázcích jsou {subject}{placed}."),
            "one": ("Právě na jednom z obrázků je {subject}{placed}.", "Právě na jednom z obrázků jsou {subject}{placed}."),
            "more left": alike("Na levém obrázku je více {subject} než na pravém."),
            "more right": alike("Na pravém obrázku je více {subject} než na levém."),
        },
    ),
)
