"""What a language must bring along: a noun phrase in every case it needs, and the frames that put phrases together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..scenes import Figures, Reading

NOMINATIVE = "nominative"

Frame = Literal["colour", "shape", "count", "exists", "what", "left", "right", "both", "one", "more left", "more right"]
"""The first five ask about a picture, the others are statements about two: what the left or the right one shows, both of them, exactly
one, and which shows more figures of a kind."""
_KNOWN, _UNCOUNTED = ("colour", "shape"), ("count", "more left", "more right")


@dataclass(frozen=True)
class Frames:
    """What a language needs to ask about a picture and to speak of two. One that has it can also leave colours and shapes unsaid."""

    known: Callable[[Figures], str]
    """Figures that were spoken of before, as a subject: "the red stars"."""
    uncounted: Callable[[Figures], str]
    """Several figures as they stand after "how many" and "more"."""
    frames: Mapping[Frame, tuple[str, str]]
    """Format strings over {subject} and {placed}, for one figure and for several. `placed` is a place and what parts it from the words
    beside it, or nothing where no place is told."""


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
    more: Frames | None = None
    """Questions, and statements about two pictures; None where nobody has written them yet."""

    def describe(self, reading: Reading, sentence: bool) -> str:
        """The reading as a noun phrase or as a sentence."""
        subject = self.noun_phrase(reading.first, self.sentence_case if sentence else NOMINATIVE)
        verb = self.verbs[reading.first.count > 1]
        if reading.relation is None or reading.second is None:
            return self.sentence_alone.format(subject=subject, verb=verb) if sentence else subject
        return (self.sentence if sentence else self.phrase).format(subject=subject, place=self._place(reading), verb=verb)

    def say(self, frame: Frame, said: Reading) -> str:
        """A question about `said.first`, or a statement, in a language with `more`.

        "what" asks what is at the place; "colour", "shape", "count" and the statements of more figures tell no place.
        """
        assert self.more is not None
        if frame in _KNOWN:
            subject = self.more.known(said.first)
        elif frame in _UNCOUNTED:
            subject = self.more.uncounted(said.first)
        else:
            subject = self.noun_phrase(said.first, self.sentence_case)
        space = " " if " " in self.phrase else ""
        placed = space + self._place(said) if said.relation else ""
        return self.more.frames[frame][said.first.count > 1].format(subject=subject, placed=placed)

    def _place(self, reading: Reading) -> str:
        assert reading.relation is not None
        assert reading.second is not None
        anchor = self.noun_phrase(reading.second, self.anchor_case[reading.relation])
        return self.places[reading.relation].format(anchor=anchor)


def same_case(case: str) -> dict[str, str]:
    """The table of a language in which every relation asks for the same case."""
    return dict.fromkeys(("left of", "right of", "above", "below"), case)


def alike(frame: str) -> tuple[str, str]:
    """A frame that is the same for one figure and for several."""
    return frame, frame


def words(*parts: str) -> str:
    """The parts that are not empty, with single spaces between them."""
    return " ".join(part for part in parts if part)
