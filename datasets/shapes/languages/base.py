"""What a language must bring along: a noun phrase in every case it needs, and the frames that put phrases together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..scenes import Figures, Reading

NOMINATIVE = "nominative"


@dataclass(frozen=True)
class Language:
    """A grammar. Frames are format strings over {subject}, {place}, {verb}; a place is a format string over {anchor}.

    Case names are the language's own; a language without cases ignores them.
    """

    tag: str
    """BCP-47."""
    noun_phrase: Callable[[Figures, str], str]
    """(figures, case) → text, agreement and numerals included."""
    places: Mapping[str, str]
    """Relation → the words for it around {anchor}."""
    anchor_case: Mapping[str, str]
    """Relation → the case that it asks of the anchor."""
    phrase: str
    """A noun phrase with a place."""
    sentence: str
    """A sentence about figures at a place."""
    sentence_alone: str
    """A sentence about figures alone."""
    sentence_case: str = NOMINATIVE
    """The case of the subject in a sentence."""
    verbs: tuple[str, str] = ("", "")
    """The verb for one figure and for several."""

    def describe(self, reading: Reading, sentence: bool) -> str:
        """The reading as a noun phrase or as a sentence."""
        subject = self.noun_phrase(reading.first, self.sentence_case if sentence else NOMINATIVE)
        verb = self.verbs[reading.first.count > 1]
        if reading.relation is None or reading.second is None:
            return self.sentence_alone.format(subject=subject, verb=verb) if sentence else subject
        anchor = self.noun_phrase(reading.second, self.anchor_case[reading.relation])
        place = self.places[reading.relation].format(anchor=anchor)
        return (self.sentence if sentence else self.phrase).format(subject=subject, place=place, verb=verb)


def same_case(case: str) -> dict[str, str]:
    """The table of a language in which every relation asks for the same case."""
    return dict.fromkeys(("left of", "right of", "above", "below"), case)


def words(*parts: str) -> str:
    """The parts that are not empty, with single spaces between them."""
    return " ".join(part for part in parts if part)
