"""Words and their translations: vocabularies from captions, ground truth from bilingual dictionaries."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tokenizers import Regex, normalizers, pre_tokenizers

from raysys.data.encoding import whole
from raysys.data.tokenizer import INVISIBLE
from raysys.errors import UserError
from raysys.storage import Storage

Direction = tuple[str, str]
"""Language of the query, language of its translations."""

_AS_SEEN = normalizers.Sequence([normalizers.Replace(Regex(INVISIBLE), ""), normalizers.NFKC(), normalizers.Lowercase()])
_LETTERS = pre_tokenizers.Split(Regex(r"\p{L}[\p{L}\p{M}]*"), behavior="removed", invert=True)


def split_words(text: str) -> list[str]:
    """The words of a text: the one rule by which vocabularies, parallel captions and dictionaries are read.

    A word is a run of letters with their marks (vowel signs, accents), in NFKC and lower case, without invisible marks, as the
    tokenizer sees them. Digits, hyphens, apostrophes and all other characters separate words: `l'arbre` is two. Where a script
    puts no spaces between words (Chinese, Japanese, Thai …), a whole run of letters is one word.
    """
    return [word for word, _ in _LETTERS.pre_tokenize_str(_AS_SEEN.normalize_str(whole(text)))]


def single_word(text: str) -> str | None:
    """`text` as :func:`split_words` writes it, if it is one word and nothing else beside spaces around it; None otherwise."""
    seen = _AS_SEEN.normalize_str(whole(text)).strip()
    found = split_words(seen)
    return found[0] if found == [seen] else None


@dataclass(frozen=True)
class Vocabulary:
    """The words of one language."""

    words: tuple[str, ...]
    """Most frequent first; of equally frequent ones in the order of code points."""
    left_out: int = 0
    """Distinct words that occurred too, but were too rare for the bound."""

    def __len__(self) -> int:
        return len(self.words)


def vocabulary(captions: Iterable[str], size: int = 5000) -> Vocabulary:
    """The `size` most frequent words of `captions`. Counted is how often a word occurs, several times in one caption included."""
    counts = Counter(word for caption in captions for word in split_words(caption))
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary(tuple(ordered[:size]), max(0, len(ordered) - size))


@dataclass(frozen=True)
class GroundTruth:
    """Which words translate which."""

    right: dict[Direction, dict[str, frozenset[str]]]
    """Direction → word → its right translations; words without any are not there. Both languages' vocabularies hold them all."""
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """What was counted on the way, for both directions of two languages together: `<first>-<second>` → what → how many."""

    def disjoint(self, vocabularies: Mapping[str, Vocabulary]) -> "GroundTruth":
        """Only words whose string is in one of the two languages' vocabularies alone, as queries and as translations."""
        known = {language: frozenset(words.words) for language, words in vocabularies.items()}
        kept: dict[Direction, dict[str, frozenset[str]]] = {}
        for (a, b), right in self.right.items():
            shared = known[a] & known[b]
            own = {word: translations - shared for word, translations in right.items() if word not in shared}
            kept[a, b] = {word: translations for word, translations in own.items() if translations}
        return GroundTruth(kept, self.counts)


Entry = tuple[str, str]


_ADVICE = "python jobs/prepare.py dictionaries --out data/dictionaries makes some"


def read_dictionaries(folder: str, languages: Sequence[str], storage: Storage) -> dict[Direction, frozenset[Entry]]:
    """All dictionaries of `folder` between two of `languages`: (language, language) as the file is named → (word, word).

    A dictionary is a file `<source>-<target>.tsv`, the names being BCP-47 tags: UTF-8, a line has a word, a tab and its translation.
    Entries are read by :func:`single_word`; those that are not one word on both sides are left out, as no vocabulary has them.

    Raises:
        UserError: no dictionary between any two of the languages, or a line that has not two columns.
    """
    try:
        files = {entry.uri.rpartition("/")[2]: entry.uri for entry in storage.list(folder, ".tsv")}
    except UserError as error:
        raise UserError(f"dictionaries: {error}; {_ADVICE}") from None
    wanted = {f"{a}-{b}.tsv": (a, b) for a, b in itertools.permutations(languages, 2)}
    found = {direction: _entries(storage, files[name]) for name, direction in wanted.items() if name in files}
    if not found:
        there = f"there are {', '.join(sorted(files))}" if files else "there is no .tsv file at all"
        raise UserError(f"{folder} has no dictionary between two of {', '.join(languages)}; {there}; {_ADVICE}")
    return found


def _entries(storage: Storage, uri: str) -> frozenset[Entry]:
    try:
        lines = storage.read(uri).decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise UserError(f"the dictionary {uri} is not UTF-8 text") from None
    entries = set()
    for number, line in enumerate(lines, 1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise UserError(f"{uri}, line {number}: a word, a tab and its translation were expected, found {line[:80]!r}")
        first, second = map(single_word, columns)
        if first and second:
            entries.add((first, second))
    return frozenset(entries)


def from_dictionaries(
    vocabularies: Mapping[str, Vocabulary], dictionaries: Mapping[Direction, frozenset[Entry]], *, through: str | None = None
) -> GroundTruth:
    """Translations as dictionaries have them, each read in both directions; a word may have several.

    Args:
        vocabularies: language → words; entries with a word outside of them cannot be asked and are counted.
        dictionaries: those of :func:`read_dictionaries`. Two languages without one have no translations,
        through: unless this language (`en`) is named, which has dictionaries with both: then two words are translations if some
            word of it translates both. Several meanings of that word make wrong pairs, so this is never done unasked.

    `counts` of two languages that have a dictionary: `entries` in it; of them `pairs`, whose words are both in the vocabularies, and
    `missing`, the others; `through`: 1 if the entries come from two dictionaries through a third language.
    """
    both: dict[Direction, set[Entry]] = defaultdict(set)
    for (a, b), listed in dictionaries.items():
        both[a, b] |= listed
        both[b, a] |= {(second, first) for first, second in listed}
    known = {language: frozenset(words.words) for language, words in vocabularies.items()}
    right: dict[Direction, dict[str, frozenset[str]]] = {}
    counts: dict[str, dict[str, int]] = {}
    for a, b in itertools.combinations(vocabularies, 2):
        entries = both.get((a, b), set())
        indirect = False
        if not entries and through and {(a, through), (through, b)} <= both.keys():
            entries, indirect = _joined(both[a, through], both[through, b]), True
        if not entries:
            continue
        kept = {(first, second) for first, second in entries if first in known[a] and second in known[b]}
        right[a, b], right[b, a] = _by_word(kept), _by_word({(second, first) for first, second in kept})
        counts[f"{a}-{b}"] = {"entries": len(entries), "pairs": len(kept), "missing": len(entries) - len(kept), "through": int(indirect)}
    return GroundTruth(right, counts)


def _joined(first: set[Entry], second: set[Entry]) -> set[Entry]:
    onward = _by_word(second)
    return {(word, translation) for word, middle in first for translation in onward.get(middle, ())}


def _by_word(entries: Iterable[Entry]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for word, translation in entries:
        found[word].add(translation)
    return {word: frozenset(found[word]) for word in sorted(found)}
