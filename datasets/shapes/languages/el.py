"""Greek: "από" governs the accusative; some colours are indeclinable; three and four have a neuter form."""

from ..scenes import Figures
from .base import Language, same_case, words

CASES = ("nominative", "accusative")
ARTICLES = {"m": ("ένας", "έναν"), "f": ("μία", "μία"), "n": ("ένα", "ένα")}
# masculine and feminine, neuter
NUMERALS = {2: ("δύο", "δύο"), 3: ("τρεις", "τρία"), 4: ("τέσσερις", "τέσσερα")}
# (stem, declines)
COLOURS = {
    "red": ("κόκκιν", True),
    "orange": ("πορτοκαλί", False),
    "yellow": ("κίτριν", True),
    "green": ("πράσιν", True),
    "blue": ("μπλε", False),
    "purple": ("μοβ", False),
    "pink": ("ροζ", False),
    "black": ("μαύρ", True),
}
# gender → (nominative, accusative) singular, the same in the plural
ENDINGS = {
    "m": (("ος", "ο"), ("οι", "ους")),
    "f": (("η", "η"), ("ες", "ες")),
    "n": (("ο", "ο"), ("α", "α")),
}
STRESSED_ENDINGS = {
    "m": (("ός", "ό"), ("οί", "ούς")),
    "f": (("ή", "ή"), ("ές", "ές")),
    "n": (("ό", "ό"), ("ά", "ά")),
}
SIZES = {"small": ("μικρ", STRESSED_ENDINGS), "large": ("μεγάλ", ENDINGS)}
# gender, (nominative, accusative) singular, the same in the plural
SHAPES = {
    "circle": ("m", ("κύκλος", "κύκλο"), ("κύκλοι", "κύκλους")),
    "square": ("n", ("τετράγωνο", "τετράγωνο"), ("τετράγωνα", "τετράγωνα")),
    "triangle": ("n", ("τρίγωνο", "τρίγωνο"), ("τρίγωνα", "τρίγωνα")),
    "star": ("n", ("αστέρι", "αστέρι"), ("αστέρια", "αστέρια")),
    "heart": ("f", ("καρδιά", "καρδιά"), ("καρδιές", "καρδιές")),
    "cross": ("m", ("σταυρός", "σταυρό"), ("σταυροί", "σταυρούς")),
    "ring": ("m", ("δακτύλιος", "δακτύλιο"), ("δακτύλιοι", "δακτυλίους")),
    "arrow": ("n", ("βέλος", "βέλος"), ("βέλη", "βέλη")),
}


def noun_phrase(figures: Figures, case: str) -> str:
    gender, singular, plural = SHAPES[figures.shape]
    index, several = CASES.index(case), figures.count > 1
    size = ""
    if figures.size:
        stem, endings = SIZES[figures.size]
        size = stem + endings[gender][several][index]
    colour, declines = COLOURS[figures.colour]
    return words(
        NUMERALS[figures.count][gender == "n"] if several else ARTICLES[gender][index],
        size,
        colour + ENDINGS[gender][several][index] if declines else colour,
        (plural if several else singular)[index],
    )


LANGUAGE = Language(
    tag="el",
    noun_phrase=noun_phrase,
    places={
        "left of": "αριστερά από {anchor}",
        "right of": "δεξιά από {anchor}",
        "above": "πάνω από {anchor}",
        "below": "κάτω από {anchor}",
    },
    anchor_case=same_case("accusative"),
    phrase="{subject} {place}",
    sentence="Στην εικόνα {verb} {subject} {place}.",
    sentence_alone="Στην εικόνα {verb} {subject}.",
    verbs=("υπάρχει", "υπάρχουν"),
)
