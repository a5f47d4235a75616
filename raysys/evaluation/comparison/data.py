"""What the page of a comparison is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from raysys.evaluation.examples import TranslationExample
from raysys.evaluation.side_by_side.row import Row, SideBySide
from raysys.evaluation.word_scores import WORDS


@dataclass(frozen=True)
class FoundWord:
    """The word of one language that lies nearest to a word of another."""

    language: str
    word: str
    right: bool
    expected: str = ""
    """A right translation, where the nearest word is none."""


@dataclass(frozen=True)
class WordExample:
    """A word and what was found for it."""

    language: str
    word: str
    found: Sequence[FoundWord]


@dataclass(frozen=True)
class Comparison(SideBySide):
    """Everything that the page shows. All of it is text or numbers from elsewhere and is escaped; an empty field leaves its part out."""

    references: Sequence[Row] = ()
    """What stands beside the systems without a place in their order: untrained networks, encoders that others trained."""
    human: Sequence[str] = ()
    """Splits whose captions were translated by people."""
    example_of: str = ""
    """Whose examples are shown, in words."""
    translations: Mapping[str, Sequence[TranslationExample]] = field(default_factory=dict)
    """Test split → examples."""
    words: Sequence[WordExample] = ()
    failures: Sequence[TranslationExample] = ()

    @property
    def shown(self) -> list[Row]:
        """All rows that may have scores."""
        return [*self.rows, *self.references, *self.also]

    @property
    def splits(self) -> list[str]:
        """Test splits of captions, in order of first occurrence."""
        return [split for split in super().splits if split != WORDS]
