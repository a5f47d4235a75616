"""WikiMatrix: sentences of Wikipedia in two languages that were found to mean the same."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from raysys.errors import UserError
from raysys.shards.languages import normalise_language
from raysys.shards.parts import Part, Skipped
from raysys.shards.sample import Sample
from raysys.storage import Entry

from ..common.lines import find_files, part_name
from .mined import THRESHOLD, read_rows

SOURCE = "A folder with files WikiMatrix.<language>-<language>.tsv.gz (or .tsv) of WikiMatrix v1, such as WikiMatrix.de-en.tsv.gz."
LANGUAGES = ("en", "de", "fr", "cs", "id", "ja", "zh-Hans")
PAIRS_PER_SAMPLE = 64
"""Lines of the file that make up one sample."""

_PUBLISHED = """
an ar arz as az azb ba bar be bg bn br bs ca ceb cs da de el en eo es et eu fa fi fo fr fy gl gom he hi hr hu hy id io is it ja jv ka kk
ko la lb lmo lt mg mk ml mr mwl nds nds_nl ne nl no oc pl pt rm ro ru scn sh si sk sl sq sr sv sw ta te tg tl tr tt ug uk vi wuu zh
"""
AVAILABLE = tuple(sorted(normalise_language(tag) for tag in _PUBLISHED.split()))

_FILE = re.compile(r"WikiMatrix\.(?P<source>[a-z_]+)-(?P<target>[a-z_]+)\.tsv(?:\.gz)?")


@dataclass(frozen=True)
class Pairs:
    """Every `of`-th sample of one file, from sample `index` on."""

    name: str
    file: Entry
    languages: tuple[str, str]
    index: int
    of: int

    def __call__(self) -> Iterator[Sample | Skipped]:
        source, target = self.languages
        for block, rows in groupby(read_rows(self.file.uri), key=lambda row: (row.number - 1) // PAIRS_PER_SAMPLE):
            if block % self.of != self.index:
                continue
            pairs = []
            for row in rows:
                if row.fault:
                    yield Skipped(row.fault, f"{self.file.uri} line {row.number}")
                else:
                    pairs.append(row)
            if pairs:
                texts = {source: [row.source for row in pairs], target: [row.target for row in pairs]}
                metadata = {"texts": texts, "scores": [row.score for row in pairs], "alignment": "strict", "source": "WikiMatrix"}
                yield Sample("train", f"{source}-{target}-{block:06d}", None, metadata=metadata)


def parts(source: str, *, languages: Sequence[str], shards: int, seed: int) -> dict[str, list[Part]]:
    """One split, `train`, with `shards` parts for each pair of `languages` that has a file.

    Raises:
        UserError: no file of two of these languages, or two of the same pair.
    """
    files = find_files(source)
    found: dict[tuple[str, str], Entry] = {}
    others = []
    for file in files:
        pair = _languages_of(file)
        if pair is None:
            continue
        if not set(pair) <= set(languages):
            others.append("-".join(pair))
        elif pair in found:
            raise UserError(f"{found[pair].uri} and {file.uri} are the same text; leave one of them there")
        else:
            found[pair] = file
    if not found:
        there = f"there are {', '.join(others[:10])}" if others else "there are none of any"
        raise UserError(f"--source: {source} has no file of WikiMatrix in two of the languages {' '.join(languages)}; {there}. {SOURCE}")
    settings = (THRESHOLD, PAIRS_PER_SAMPLE)
    return {
        "train": [
            Pairs(part_name(f"wikimatrix {'-'.join(pair)} {index}/{shards}", file, pair, settings), file, pair, index, shards)
            for pair, file in found.items()
            for index in range(shards)
        ]
    }


def _languages_of(file: Entry) -> tuple[str, str] | None:
    """The two languages of a file of WikiMatrix; None for any other file and for languages without a tag (`simple`)."""
    named = _FILE.fullmatch(file.uri.rpartition("/")[2])
    try:
        return (normalise_language(named["source"]), normalise_language(named["target"])) if named else None
    except ValueError:
        return None
