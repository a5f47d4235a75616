"""BLEU of translations, by sacreBLEU, with the signature that says how it was computed."""

import functools
import importlib.util
from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU

from raysys.shards.languages import script


class Bleu(NamedTuple):
    """A corpus BLEU, 0 to 100."""

    value: float
    signature: str
    """sacreBLEU's: references, case, effective order, tokeniser, smoothing, version."""


def bleu(translations: Sequence[str], references: Sequence[str], language: str) -> Bleu:
    """BLEU (Papineni et al. 2002) of a corpus with one reference each, as sacreBLEU (Post 2018) computes it; letters keep their case.

    Args:
        translations: of the sentences.
        references: of the same sentences, in the same order.
        language: that they are in (BCP-47), which chooses the tokeniser.

    Raises:
        ValueError: no sentences, or not as many translations as references.
    """
    if not references or len(translations) != len(references):
        raise ValueError(f"{len(translations)} translations of {len(references)} sentences")
    metric = BLEU(tokenize=tokeniser(language))
    value = metric.corpus_score(list(translations), [list(references)]).score
    return Bleu(float(value), str(metric.get_signature()))


@functools.cache
def tokeniser(language: str) -> str:
    """sacreBLEU's tokeniser for a language: `zh`, and `ja-mecab` where MeCab and its dictionary are installed; `char` for other scripts
    without spaces between words; `13a`, that of the WMT campaigns, for all others."""
    code = language.partition("-")[0]
    if code == "zh":
        return "zh"
    if code == "ja" and all(map(importlib.util.find_spec, ("MeCab", "ipadic"))):
        return "ja-mecab"
    return "char" if script(language) in ("Jpan", "Thai", "Laoo", "Khmr", "Mymr", "Tibt") else "13a"
