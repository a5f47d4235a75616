"""Russian: two to four take the genitive singular of the noun in the nominative, and agree in all other cases.

The adjective beside such a count form is genitive plural with masculine and neuter nouns, nominative plural with feminine ones.
"""

from ..scenes import Figures
from .base import Language, words

# count → nominative (masculine and neuter, feminine), genitive, instrumental
NUMERALS = {
    2: ("два", "две", "двух", "двумя"),
    3: ("три", "три", "трёх", "тремя"),
    4: ("четыре", "четыре", "четырёх", "четырьмя"),
}
# stem, declension
COLOURS = {
    "red": ("красн", "hard"),
    "orange": ("оранжев", "hard"),
    "yellow": ("жёлт", "hard"),
    "green": ("зелён", "hard"),
    "blue": ("син", "soft"),
    "purple": ("фиолетов", "hard"),
    "pink": ("розов", "hard"),
    "black": ("чёрн", "hard"),
}
SIZES = {"small": ("маленьк", "velar"), "large": ("больш", "stressed")}
CASES = ("nominative", "genitive", "instrumental")
# declension → gender or plural → nominative, genitive, instrumental
ENDINGS = {
    "hard": {
        "m": ("ый", "ого", "ым"),
        "f": ("ая", "ой", "ой"),
        "n": ("ое", "ого", "ым"),
        "plural": ("ые", "ых", "ыми"),
    },
    "soft": {
        "m": ("ий", "его", "им"),
        "f": ("яя", "ей", "ей"),
        "n": ("ее", "его", "им"),
        "plural": ("ие", "их", "ими"),
    },
    "velar": {
        "m": ("ий", "ого", "им"),
        "f": ("ая", "ой", "ой"),
        "n": ("ое", "ого", "им"),
        "plural": ("ие", "их", "ими"),
    },
    "stressed": {
        "m": ("ой", "ого", "им"),
        "f": ("ая", "ой", "ой"),
        "n": ("ое", "ого", "им"),
        "plural": ("ие", "их", "ими"),
    },
}
# gender, (nominative, genitive, instrumental) singular, (genitive, instrumental) plural
SHAPES = {
    "circle": ("m", ("круг", "круга", "кругом"), ("кругов", "кругами")),
    "square": ("m", ("квадрат", "квадрата", "квадратом"), ("квадратов", "квадратами")),
    "triangle": ("m", ("треугольник", "треугольника", "треугольником"), ("треугольников", "треугольниками")),
    "star": ("f", ("звезда", "звезды", "звездой"), ("звёзд", "звёздами")),
    "heart": ("n", ("сердце", "сердца", "сердцем"), ("сердец", "сердцами")),
    "cross": ("m", ("крест", "креста", "крестом"), ("крестов", "крестами")),
    "ring": ("n", ("кольцо", "кольца", "кольцом"), ("колец", "кольцами")),
    "arrow": ("f", ("стрелка", "стрелки", "стрелкой"), ("стрелок", "стрелками")),
}


def noun_phrase(figures: Figures, case: str) -> str:
    gender, singular, plural = SHAPES[figures.shape]
    index = CASES.index(case)
    if figures.count == 1:
        numeral, number, adjective_case, noun = "", gender, index, singular[index]
    elif case == "nominative":
        masculine, feminine, _, _ = NUMERALS[figures.count]
        numeral = feminine if gender == "f" else masculine
        number, adjective_case, noun = "plural", 0 if gender == "f" else 1, singular[1]
    else:
        numeral, number, adjective_case, noun = NUMERALS[figures.count][index + 1], "plural", index, plural[index - 1]
    adjectives = [SIZES[figures.size]] if figures.size else []
    adjectives.append(COLOURS[figures.colour])
    return words(numeral, *(stem + ENDINGS[declension][number][adjective_case] for stem, declension in adjectives), noun)


LANGUAGE = Language(
    tag="ru",
    noun_phrase=noun_phrase,
    places={"left of": "слева от {anchor}", "right of": "справа от {anchor}", "above": "над {anchor}", "below": "под {anchor}"},
    anchor_case={"left of": "genitive", "right of": "genitive", "above": "instrumental", "below": "instrumental"},
    phrase="{subject} {place}",
    sentence="На картинке {subject} {place}.",
    sentence_alone="На картинке {subject}.",
)
