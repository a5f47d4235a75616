"""Ordered sentences in one language, such as books: for objectives that predict the sentences around a sentence."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raysys.errors import UserError
from raysys.shards import languages as known_languages
from raysys.shards.parts import Part, Skipped
from raysys.shards.sample import Sample
from raysys.storage import Entry

from ..common.lines import find_files, part_name, read_lines
from ..common.pieces import LONGEST, OVERLAP
from .documents import ENDINGS, read_pieces

SOURCE = (
    "A folder of text files with one sentence a line and blank lines between documents (.txt, .txt.gz), or of json lines with a field "
    "`text` (.jsonl, .jsonl.gz), all in the one language given with --languages; BookCorpus is passed on in both forms. Books of running "
    "text are divided into sentences with --prose True."
)
TAKES_PROSE = True
LANGUAGES = ("en",)
AVAILABLE = tuple(known_languages.LANGUAGES)


@dataclass(frozen=True)
class Pieces:
    """Every `of`-th piece of each of some files, from piece `index` on."""

    name: str
    files: tuple[tuple[int, Entry], ...]
    """(number, file)"""
    language: str
    prose: bool
    """Whether the text is still to be divided into sentences."""
    index: int
    of: int

    def __call__(self) -> Iterator[Sample | Skipped]:
        for number, file in self.files:
            for count, piece in enumerate(read_pieces(file.uri, self.language if self.prose else "")):
                if count % self.of != self.index:
                    continue
                if len(piece.sentences) < 2:
                    yield Skipped(piece.fault or "sentence without neighbours", f"{file.uri} line {piece.line}")
                    continue
                metadata = {
                    "sentences": piece.sentences,
                    "language": self.language,
                    "file": file.uri.rpartition("/")[2],
                    "line": piece.line,
                }
                yield Sample("train", f"{number:05d}-{count:07d}", None, metadata=metadata)


def parts(source: str, *, languages: Sequence[str], shards: int, seed: int, prose: bool = False) -> dict[str, list[Part]]:
    """One split, `train`. Parts are given whole files where there are enough of them, and a share of the pieces of all files otherwise.

    Args:
        prose: whether the files hold running text, not a sentence a line.

    Raises:
        UserError: not exactly one language, or no text beneath `source`.
    """
    if len(languages) != 1:
        raise UserError(
            f"--languages: the files of 'ordered_text' are in one language, not in {' '.join(languages)}; prepare each by itself"
        )
    files = [(number, file) for number, file in enumerate(file for file in find_files(source) if file.uri.endswith(ENDINGS))]
    if not files:
        raise UserError(f"--source: {source} has no file that ends with {', '.join(ENDINGS)}. {SOURCE}")
    if not prose and (text := next((file.uri for _, file in files if file.uri.removesuffix(".gz").endswith(".txt")), None)):
        _notice_prose(text)
    by_file = len(files) >= shards
    found: list[Part] = []
    for index in range(shards):
        own = (tuple(files[index::shards]), languages[0], prose, 0, 1) if by_file else (tuple(files), languages[0], prose, index, shards)
        found.append(Pieces(part_name(f"ordered_text {index}", LONGEST, OVERLAP, *own), *own))
    return {"train": found}


def _notice_prose(uri: str) -> None:
    """Say so where lines look like those of running text: most end in the midst of a sentence and are about as long as the longest."""
    lines = [line.text.rstrip() for line in itertools.islice(read_lines(uri), 500) if line.text.strip()]
    longest = max(map(len, lines), default=0)
    filled = [line for line in lines if len(line) > 0.7 * longest and line[-1].isalnum()]
    if 40 < longest < 120 and len(filled) > 0.4 * len(lines):
        print(f"note: {uri} looks like running text, and every line of it becomes a sentence; to divide it into sentences add --prose True")
