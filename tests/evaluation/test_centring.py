"""Centring per language against its definition."""

import numpy as np
import pytest

from raysys.evaluation.centring import centred, language_means
from raysys.evaluation.scores import Item, encode_items, score

D = 12
GENERATOR = np.random.default_rng(0)
MEANING = GENERATOR.normal(size=(40, D))
OFFSET = {a: 4 * GENERATOR.normal(size=D) for a in ("en", "de", "ru")}


class Biased:
    """A sentence `3 de` is meaning 3, hidden beneath what all of German have in common."""

    has_images = False
    reads_languages = True

    def encode_texts(self, texts, languages):
        return np.stack([MEANING[int(text.split()[0])] + OFFSET[a] for text, a in zip(texts, languages, strict=True)]).astype(np.float32)


def items(numbers, languages=("en", "de", "ru")):
    return [Item(None, {a: [f"{i} {a}"] for a in languages}) for i in numbers]


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_the_splits_own_means_and_given_ones_by_definition():
    encoder = Biased()
    encoded = encode_items(encoder, items(range(20)))
    means = language_means(encoder, {"en": [f"{i} en" for i in range(20, 40)], "ru": []})
    assert list(means) == ["en"]
    np.testing.assert_allclose(means["en"], unit(MEANING[20:] + OFFSET["en"]).mean(axis=0), atol=1e-6)
    got = centred(encoded, means)
    assert got.centred == {"en": "given", "de": "split", "ru": "split"}
    plain = {a: unit(MEANING[:20] + OFFSET[a]) for a in OFFSET}
    np.testing.assert_allclose(got.sentences["en"], unit(plain["en"] - means["en"]), atol=1e-5)
    np.testing.assert_allclose(got.sentences["de"], unit(plain["de"] - plain["de"].mean(axis=0)), atol=1e-5)
    assert got.sentences["de"].dtype == np.float32
    assert encoded.centred is None


def test_it_lays_meaning_bare():
    encoded = encode_items(Biased(), items(range(40)))
    before, after = score(encoded), score(centred(encoded))
    assert before["metrics"]["eval/translation_R@1"] < 0.9 < after["metrics"]["eval/translation_R@1"]
    assert "centred" not in before
    assert after["centred"] == {"en": "split", "de": "split", "ru": "split"}


def test_equal_strings_weigh_once_and_lacking_ones_not_at_all():
    some = [*items([0, 1, 2, 0, 0]), Item(None, {"en": ["3 en"]})]
    got = centred(encode_items(Biased(), some))
    plain = unit(MEANING[:3] + OFFSET["de"])
    np.testing.assert_allclose(got.sentences["de"][:3], unit(plain - plain.mean(axis=0)), atol=1e-5)
    np.testing.assert_array_equal(got.sentences["de"][5], 0)
    np.testing.assert_array_equal(got.sentences["de"][3], got.sentences["de"][0])
    lacking = centred(encode_items(Biased(), some, ["en", "de", "fr"]))
    np.testing.assert_array_equal(lacking.sentences["fr"], 0)


@pytest.mark.parametrize("given", [False, True])
def test_constant_vectors_have_no_direction_left_and_score_chance(given):
    class Constant(Biased):
        def encode_texts(self, texts, languages):
            return np.stack([OFFSET[a] for a in languages]).astype(np.float32)

    encoder = Constant()
    means = language_means(encoder, {a: ["0", "1", "2"] for a in OFFSET}) if given else None
    result = score(centred(encode_items(encoder, items(range(20))), means))
    assert result["metrics"] == pytest.approx(result["chance"], abs=1e-9)


def test_refuses_a_mean_of_another_size():
    with pytest.raises(ValueError, match=r"en: a mean of shape \(3,\) for vectors of size 12"):
        centred(encode_items(Biased(), items(range(3))), {"en": np.zeros(3)})
