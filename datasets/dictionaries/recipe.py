"""FreeDict's bilingual dictionaries from English, as word pairs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from raysys.evaluation.lexicon import single_word

from ..common.archives import DebianArchive, fetch_debian, to_stderr
from ..common.debian import read_files
from .dictd import read_entries, translations

ENGLISH = "en"

PACKAGES = {
    "de": DebianArchive("dict-freedict-eng-deu", "2022.04.21-1", "e85da1519a4d5efdbd7a5a169e828b97920f91e899f45d56fd5b2266a05b5906"),
    "cs": DebianArchive("dict-freedict-eng-ces", "2022.04.21-1", "282e38a11aa8317f61a9f449f028357261b06aabdc35934c1fc04a954d4e5add"),
    "fi": DebianArchive("dict-freedict-eng-fin", "2022.12.07-2", "037351c22b6f803358517d0293bab9619f6bef964e22cab68f63a174b5d22ebe"),
    "hu": DebianArchive("dict-freedict-eng-hun", "2022.04.21-1", "64eec7b44df8c8f2ce4c787a3070f90c56907b384e72618a9f7bdb9cd988bcb8"),
    "ja": DebianArchive("dict-freedict-eng-jpn", "2022.12.07-2", "3d06a55a8fa16a529b9f95b8d2fe3f7163700cea03aa7ee5b53c40dcdd6c6868"),
    "tr": DebianArchive("dict-freedict-eng-tur", "2022.04.21-1", "dd18d6682827301cb7131fda95728dd4c5ec3d73da6dab1f98619310608fbd99"),
    "el": DebianArchive("dict-freedict-eng-ell", "2022.04.21-1", "b6a7d3154f93fc26554d2e3fd2529b98bfc67d17020a4ff8b2fe804373c83ecc"),
    "fr": DebianArchive("dict-freedict-eng-fra", "2022.04.21-1", "b8db6774b640ae8a372bee119b4304d88e6fd471a283d1326d7ec0abcc8b930e"),
    "id": DebianArchive("dict-freedict-eng-ind", "2022.12.07-2", "d2929618bdbdfecf7f71bc46e038fe873d3e6a50ec29cecc1f60ef1c4e940070"),
    "es": DebianArchive("dict-freedict-eng-spa", "2022.04.21-1", "1b6a624048eddad805dcf0473a74e53420fbe391e7f2638090bddf625e9ad2b6"),
    "it": DebianArchive("dict-freedict-eng-ita", "2022.04.21-1", "aef18ac10bd7582f99b819f634edad0dc0060e59a06f3f041a40203c53e9bb22"),
    "ru": DebianArchive("dict-freedict-eng-rus", "2022.04.21-1", "0683c8eda017ff1082815c3bd918a7c9f1516b18621fcdf0ef46a9a1b9d61ea3"),
    "hi": DebianArchive("dict-freedict-eng-hin", "2022.04.21-1", "15b21e02e94b1a3a31a0b7a298687bee518797586a70745655cf5cefd3721c67"),
}
"""Language → package; the files in it are named after the package."""

LANGUAGES = AVAILABLE = tuple(PACKAGES)
"""Languages that English is translated into."""

_FOLDER = "usr/share/dictd"

_HUNGARIAN = str.maketrans("ôûõũÔÛÕŨ", "őűőűŐŰŐŰ")
"""Letters the Hungarian dictionary lost in another character set; Hungarian has none of the left ones."""


def files(cache: Path, *, languages: Sequence[str], seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Fetch the packages that `cache` lacks, then yield `en-<language>.tsv` and its content for each of `languages`.

    A line is an English word, a tab and its translation, each one word as :func:`raysys.evaluation.lexicon.single_word` writes
    it; lines are sorted by code points, none is there twice.

    Raises:
        UserError: the network cannot be reached, or a package is not the right one.
    """
    for language in languages:
        package = fetch_debian(PACKAGES[language], cache, to_stderr)
        found = read_files(package, _FOLDER, (".index", ".dict.dz"))
        name = PACKAGES[language].name.removeprefix("dict-")
        pairs = word_pairs(found[f"{name}.index"], found[f"{name}.dict.dz"], language, package.name)
        yield f"{ENGLISH}-{language}.tsv", "".join(f"{word}\t{translation}\n" for word, translation in pairs).encode()


def word_pairs(index: bytes, data: bytes, language: str, where: str) -> list[tuple[str, str]]:
    """All (English word, translation) of a dictionary whose sides are one word each, sorted, each once."""
    pairs = set()
    for entry in read_entries(index, data, where):
        for headword, translation in translations(entry):
            if language == "hu":
                translation = translation.translate(_HUNGARIAN)
            first, second = single_word(headword), single_word(translation)
            if first and second:
                pairs.add((first, second))
    return sorted(pairs)
