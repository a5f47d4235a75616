"""BLEU against its definition, and which tokeniser each language has."""

import math
from collections import Counter

import pytest

from raysys.evaluation.tasks.translation import bleu, tokeniser

WRITTEN = ["the red circle is above two stars", "a small ring lies left of the square today", "one cross"]
RIGHT = ["the red circle stands above two stars", "a small ring lies left of a square", "one large cross here"]


def by_definition(written: list[str], right: list[str]) -> float:
    """Papineni et al. 2002, equations 1 to 3, over a corpus with one reference each; words parted by spaces."""
    rows = [(one.split(), other.split()) for one, other in zip(written, right, strict=True)]
    logs = []
    for n in range(1, 5):
        grams = [[Counter(zip(*(words[i:] for i in range(n)), strict=False)) for words in row] for row in rows]
        hits = sum(min(count, other[gram]) for one, other in grams for gram, count in one.items())
        logs.append(math.log(hits / sum(sum(one.values()) for one, _ in grams)))
    have, want = (sum(len(row[side]) for row in rows) for side in range(2))
    return 100 * math.exp(min(0, 1 - want / have) + sum(logs) / 4)


def test_against_the_definition():
    found = bleu(WRITTEN, RIGHT, "en")
    assert found.value == pytest.approx(by_definition(WRITTEN, RIGHT))
    assert found.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert bleu(RIGHT, RIGHT, "de").value == pytest.approx(100)


def test_tokenisers():
    assert {tag: tokeniser(tag) for tag in ("de", "fr", "id", "zh-Hans", "zh-Hant", "th")} == {
        "de": "13a",
        "fr": "13a",
        "id": "13a",
        "zh-Hans": "zh",
        "zh-Hant": "zh",
        "th": "char",
    }
    assert tokeniser("ja") in ("ja-mecab", "char")
    assert bleu(["红色的圆在星上"], ["红色的圆在星上"], "zh-Hans").value == pytest.approx(100)


def test_as_many_translations_as_sentences():
    for written, right in (([], []), (["a"], ["a", "b"])):
        with pytest.raises(ValueError, match="translations of"):
            bleu(written, right, "en")
