"""English."""

from ..scenes import Figures
from .base import NOMINATIVE, Language, same_case, words

NUMERALS = {2: "two", 3: "three", 4: "four"}
IRREGULAR = {"cross": "crosses"}


def noun_phrase(figures: Figures, case: str) -> str:
    """Colours, shapes and sizes are named in English in the facts themselves."""
    if figures.count == 1:
        phrase = words(figures.size or "", figures.colour, figures.shape)
        return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"
    plural = IRREGULAR.get(figures.shape, f"{figures.shape}s")
    return words(NUMERALS[figures.count], figures.size or "", figures.colour, plural)


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
)
