"""Help of programs: paragraphs that people translated, each in all its languages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from raysys.errors import UserError
from raysys.shards.sample import Sample

from ..common.archives import to_stderr
from . import sources
from .parallel import Paragraph, align, split_paragraphs

LANGUAGES = ("en", "de", "fr", "cs", "id", "ja", "zh-Hans")

_GNOME_ALONE = ("as", "fa", "gu", "hr", "lv", "mr", "sr", "sr-Latn", "ta", "uk")
AVAILABLE = tuple(sorted([*sources.LIBREOFFICE, *_GNOME_ALONE]))
"""Languages with at least 1 000 paragraphs that differ from the English ones."""


def samples(cache: Path, *, seed: int, languages: Sequence[str], count: int | None = None) -> Iterator[Sample]:
    """Fetch the packages that `cache` lacks, then yield every paragraph that is there in two or more of `languages`: `train`,
    `validation` and `test`, divided by documents. What was read and what was left out is told on standard error.

    Raises:
        UserError: the network cannot be reached, a package is not the right one, `count` is given, or one language alone.
    """
    if count is not None:
        raise UserError("the size of the data set 'helptexts' is fixed by its sources; --samples is for 'shapes'")
    if len(languages) < 2:
        raise UserError(f"--languages: 'helptexts' is parallel text; it needs two languages or more, and {languages[0]!r} is one")
    texts = sources.read_texts(cache, list(dict.fromkeys(["en", *languages])))
    paragraphs = align(texts)
    splits, crossing = split_paragraphs(paragraphs, seed)
    for line in _told({language: len(found) for language, found in texts.items()}, paragraphs, crossing):
        to_stderr(line)
    for split, members in splits.items():
        for paragraph in members:
            captions = {language: [paragraph.texts[language]] for language in languages if language in paragraph.texts}
            if len(captions) > 1:
                document, place = paragraph.places[0]
                source = document.partition("/")[0]
                metadata = {"captions": captions, "alignment": "strict", "document": document, "place": place}
                metadata |= {"licence": sources.LICENCES[source], "source": source}
                yield Sample(split, f"{document}-{place}".replace("/", "-").replace(".", "-"), None, metadata=metadata)


def _told(read: dict[str, int], paragraphs: Sequence[Paragraph], crossing: int) -> Iterator[str]:
    """What a person should know of how the data set came about."""
    yield f"paragraphs read: {_listed(read)}"
    for source in sources.LICENCES:
        its = [paragraph for paragraph in paragraphs if paragraph.places[0][0].startswith(source + "/")]
        counts = Counter(language for paragraph in its for language in paragraph.texts)
        yield f"distinct and translated, from {source}: {_listed(counts)}"
    yield f"left out of validation and test, as a sentence of theirs stands in a split before: {crossing}"


def _listed(counts: dict[str, int]) -> str:
    return " ".join(f"{language} {count}" for language, count in counts.items())
