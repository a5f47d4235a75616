"""English."""

from ..scenes import Figures
from .base import NOMINATIVE, Frames, Language, alike, same_case, words

NUMERALS = {2: "two", 3: "three", 4: "four"}
IRREGULAR = {"cross": "crosses"}


def noun_phrase(figures: Figures, case: str) -> str:
    """Colours, shapes and sizes are named in English in the facts themselves."""
    phrase = _unnumbered(figures, figures.count > 1)
    if figures.count == 1:
        return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"
    return words(NUMERALS[figures.count], phrase)


def _unnumbered(figures: Figures, several: bool) -> str:
    noun = figures.shape or "figure"
    return words(figures.size or "", figures.colour or "", IRREGULAR.get(noun, f"{noun}s") if several else noun)


LANGUAGE = Language(
    tag="en",
    noun_phrase=noun_phrase,
    places={
        "left of": "to the left of {anchor}",
        "right of": "to the right of {anchor}",
        "above": "above {anchor}",
        "below": "below {anchor}",
    },
    anchor_case=same_case(NOMINATIVE),
    phrase="{subject} {place}",
    sentence="The picture shows {subject} {place}.",
    sentence_alone="The picture shows {subject}.",
    more=Frames(
        known=lambda figures: f"the {_unnumbered(figures, figures.count > 1)}",
        uncounted=lambda figures: _unnumbered(figures, True),
        frames={
            "colour": ("What colour is {subject}?", "What colour are {subject}?"),
            "shape": ("What shape is {subject}?", "What shape are {subject}?"),
            "count": alike("How many {subject} are there?"),
            "exists": ("Is there {subject}{placed}?", "Are there {subject}{placed}?"),
            "what": alike("What is{placed}?"),
            "left": alike("The left picture shows {subject}{placed}."),
            "right": alike("The right picture shows {subject}{placed}."),
            "both": alike("Both pictures show {subject}{placed}."),
            "one": alike("Exactly one of the pictures shows {subject}{placed}."),
            "more left": alike("The left picture shows more {subject} than the right one."),
            "more right": alike("The right picture shows more {subject} than the left one."),
        },
    ),
)
