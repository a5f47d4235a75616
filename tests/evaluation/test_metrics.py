"""Every named score against a plain loop over queries and candidates, on random, tied, equal and missing captions."""

import itertools

import numpy as np
import pytest

from raysys.evaluation.naming import script
from raysys.evaluation.scores import EncodedItems, score

LANGUAGES = ("en", "ru", "hi", "de", "sw")
HELD_OUT = ("hi", "sw")


def cosine(x, y):
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return round(float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y) or 1.0)), 6)


def hit(scores, right, k):
    """Mean over who of the tied group gets the last of k places: is a right one among them?"""
    k = min(k, len(scores))
    cut = sorted(scores)[-k]
    if any(s > cut and r for s, r in zip(scores, right, strict=True)):
        return 1.0
    level = [r for s, r in zip(scores, right, strict=True) if s == cut]
    draws = list(itertools.combinations(level, k - sum(s > cut for s in scores)))
    return sum(any(drawn) for drawn in draws) / len(draws)


def split(seed, coarse, n=7):
    generator = np.random.default_rng(seed)

    def vectors():
        made = generator.integers(-1, 2, (n, 2)) if coarse else generator.normal(size=(n, 6))
        return made.astype(np.float32)

    texts, sentences = {}, {}
    for a in LANGUAGES:
        strings = [None if generator.random() < 0.15 else f"{a}{generator.integers(6)}" for _ in range(n)]
        of_string = dict(zip(sorted({t for t in strings if t}), vectors(), strict=False))
        texts[a], sentences[a] = strings, np.stack([np.zeros_like(vectors()[0]) if t is None else of_string[t] for t in strings])
    return EncodedItems(
        languages=LANGUAGES,
        texts=texts,
        sentences=sentences,
        captions={a: vectors() for a in LANGUAGES},
        images=vectors(),
        image_ids=[f"i{generator.integers(5)}" for _ in range(n)],
        seen={a: generator.random(n) < 0.5 for a in LANGUAGES},
    )


def translations(encoded, a, b, k=1):
    """(hit, chance, seen on both sides) of every query of a direction."""
    bank = [j for j, text in enumerate(encoded.texts[b]) if text is not None]
    found = []
    for i, text in enumerate(encoded.texts[a]):
        if text is None or encoded.texts[b][i] is None:
            continue
        scores = [cosine(encoded.sentences[a][i], encoded.sentences[b][j]) for j in bank]
        right = [encoded.texts[b][j] == encoded.texts[b][i] for j in bank]
        found.append((hit(scores, right, k), hit([0] * len(bank), right, k), bool(encoded.seen[a][i] and encoded.seen[b][i])))
    return found


def retrievals(encoded, a, k, to_image):
    rows = [i for i, text in enumerate(encoded.texts[a]) if text is not None]
    found = []
    for i in rows:
        query, bank = (encoded.captions[a][i], encoded.images) if to_image else (encoded.images[i], encoded.captions[a])
        right = [encoded.image_ids[i] == encoded.image_ids[j] or encoded.texts[a][i] == encoded.texts[a][j] for j in rows]
        found.append((hit([cosine(query, bank[j]) for j in rows], right, k), hit([0] * len(rows), right, k)))
    return found


def mean(found):
    return tuple(np.mean([one[:2] for one in found], axis=0))


def expected(encoded, k):
    """Name → (value, chance) of everything that is recall@k, k = 1 where names do not tell it."""
    trained = [a for a in LANGUAGES if a not in HELD_OUT]
    within = [(a, b) for a in trained for b in trained if a != b]
    away = [(a, b) for a in HELD_OUT for b in trained]
    each = {(a, b): translations(encoded, a, b, k) for a in LANGUAGES for b in LANGUAGES if a != b}
    over = lambda pairs: mean([mean(each[pair]) for pair in pairs])  # noqa: E731
    names = {f"translation_R@{k}": over(within)}
    for way, to_image in (("text_to_image", True), ("image_to_text", False)):
        own = {a: mean(retrievals(encoded, a, k, to_image)) for a in LANGUAGES}
        names |= {f"{a}/{way}_R@{k}": own[a] for a in LANGUAGES}
        names[f"{way}_R@{k}"] = mean([own[a] for a in trained])
        names[f"transfer_{way}_R@{k}"] = mean([own[a] for a in HELD_OUT])
    if k == 1:
        names["transfer_R@1_from_held_out"] = over(away)
        names["transfer_R@1_to_held_out"] = over([(b, a) for a, b in away])
        names |= {f"{a}/translation_R@1": over([pair for pair in within + away if pair[0] == a]) for a in LANGUAGES}
        names |= {f"{a}-en/translation_R@1": mean(each[a, "en"]) for a in ("ru", "hi")}
        to_latin = [(a, b) for a, b in within if script(a) != "Latn" and script(b) == "Latn"]
        names["translation_R@1_non_latin_to_latin"] = over(to_latin)
        names["translation_R@1_non_latin_to_en"] = over([pair for pair in to_latin if pair[1] == "en"])
        every = [one for pair in within for one in each[pair]]
        names["translation_R@1_both_seen"] = mean([one for one in every if one[2]])
        names["translation_R@1_some_unseen"] = mean([one for one in every if not one[2]])
    return names


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_recall_equals_a_plain_loop_with_languages_held_out(seed, coarse):
    encoded = split(seed, coarse)
    result = score(encoded, ks=(1, 3), held_out=HELD_OUT)
    names = expected(encoded, 1) | expected(encoded, 3)
    others = {"sentence_translation", *(f"{a}/sentence_translation" for a in LANGUAGES)}  # test_translation.py has its plain loop
    assert {name.removeprefix("eval/") for name in result["metrics"]} - others == set(names)
    for name, (value, by_chance) in names.items():
        assert result["metrics"][f"eval/{name}"] == pytest.approx(value), name
        assert result["chance"][f"eval/{name}"] == pytest.approx(by_chance), name
    assert result["held_out"] == list(HELD_OUT)
    for x, a in enumerate(LANGUAGES):
        for y, b in enumerate(LANGUAGES):
            if a != b:
                assert result["matrices"]["recall@1"][x][y] == pytest.approx(mean(translations(encoded, a, b))[0], abs=1e-6)


def test_means_over_trained_languages_are_those_of_a_split_without_the_others():
    encoded = split(5, coarse=False)
    trained = [a for a in LANGUAGES if a not in HELD_OUT]
    alone = EncodedItems(
        languages=tuple(trained),
        texts={a: encoded.texts[a] for a in trained},
        sentences={a: encoded.sentences[a] for a in trained},
        captions={a: encoded.captions[a] for a in trained},
        images=encoded.images,
        image_ids=encoded.image_ids,
        seen=encoded.seen,
    )
    with_others, without = score(encoded, held_out=HELD_OUT), score(alone)
    assert without["held_out"] == []
    assert without["metrics"].items() <= with_others["metrics"].items()
    assert without["chance"].items() <= with_others["chance"].items()
    assert not any("transfer" in name for name in without["metrics"])


def test_constant_vectors_score_exactly_chance_under_every_name():
    n = 24
    constant = np.full((n, 9), 0.3, np.float32)
    encoded = EncodedItems(
        languages=LANGUAGES,
        texts={a: [f"{a} {i // (2 if a == 'de' else 1)}" for i in range(n)] for a in LANGUAGES},
        sentences=dict.fromkeys(LANGUAGES, constant),
        captions=dict.fromkeys(LANGUAGES, constant),
        images=constant,
        image_ids=[str(i // 2) for i in range(n)],
        seen={a: np.arange(n) % 3 > 0 for a in LANGUAGES},
    )
    result = score(encoded, held_out=HELD_OUT)
    assert {"eval/hubness_skewness", "eval/anti_hubs", "eval/transfer_R@1_to_held_out"} <= result["metrics"].keys()
    assert result["metrics"] == pytest.approx(result["chance"], abs=1e-9)


def test_all_languages_held_out_or_one_trained():
    encoded = split(1, coarse=False)
    nothing = score(encoded, held_out=LANGUAGES)
    assert {name.removeprefix("eval/").split("_")[0] for name in nothing["metrics"] if name.count("/") == 1} == {"transfer"}
    assert "eval/transfer_R@1_from_held_out" not in nothing["metrics"]
    one = score(encoded, held_out=LANGUAGES[1:])
    assert "eval/translation_R@1" not in one["metrics"]
    assert one["metrics"]["eval/transfer_R@1_from_held_out"] == pytest.approx(
        mean([mean(translations(encoded, a, "en")) for a in LANGUAGES[1:]])[0]
    )
