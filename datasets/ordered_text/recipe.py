"""Ordered sentences in one language, such as books: for objectives that predict the sentences around a sentence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raysys.errors import UserError
from raysys.shards import languages as known_languages
from raysys.shards.parts import Part, Skipped
from raysys.shards.sample import Sample
from raysys.storage import Entry

from ..common.lines import find_files, part_name
from .documents import ENDINGS, LONGEST, OVERLAP, read_pieces

SOURCE = (
    "A folder of text files with one sentence a line and blank lines between documents (.txt, .txt.gz), or of json lines with a field "
    "`text` (.jsonl, .jsonl.gz), all in the one language given with --languages; BookCorpus is passed on in both forms."
)
LANGUAGES = ("en",)
AVAILABLE = tuple(known_languages.LANGUAGES)


@dataclass(frozen=True)
class Pieces:
    """Every `of`-th piece of each of some files, from piece `index` on."""

    name: str
    files: tuple[tuple[int, Entry], ...]
    """(number, file)"""
    language: str
    index: int
    of: int

    def __call__(self) -> Iterator[Sample | Skipped]:
        for number, file in self.files:
            for count, piece in enumerate(read_pieces(file.uri)):
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


def parts(source: str, *, languages: Sequence[str], shards: int, seed: int) -> dict[str, list[Part]]:
    """One split, `train`. Parts are given whole files where there are enough of them, and a share of the pieces of all files otherwise.

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
    by_file = len(files) >= shards
    found: list[Part] = []
    for index in range(shards):
        own = (tuple(files[index::shards]), languages[0], 0, 1) if by_file else (tuple(files), languages[0], index, shards)
        found.append(Pieces(part_name(f"ordered_text {index}", LONGEST, OVERLAP, *own), *own))
    return {"train": found}
