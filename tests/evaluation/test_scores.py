"""Scores of a whole test split, through an encoder whose answers are known."""

import json

import numpy as np
import pytest

from raysys.evaluation.scores import Item, encode_items, evaluate, score
from raysys.evaluation.table import render, score_table

WORDS = 6


class Oracle:
    """A word `xx-3` and the image b"3" are the unit vector of their number; counts what it is asked."""

    def __init__(self):
        self.texts: list[str] = []
        self.images: list[bytes] = []

    def encode_texts(self, texts):
        self.texts += texts
        return np.eye(WORDS, dtype=np.float32)[[int(text.split("-")[1]) for text in texts]]

    def encode_captions_for_images(self, texts):
        return self.encode_texts(texts)

    def encode_images(self, images):
        self.images += images
        return np.eye(WORDS, dtype=np.float32)[[int(image) for image in images]]


def items(languages=("en", "ru", "ja", "de"), trained=("en",)):
    return [Item(str(i).encode(), {a: [f"{a}-{i}", "another-0"] for a in languages}, trained) for i in range(WORDS)]


def test_an_oracle_scores_one_everywhere_with_chance_beside():
    result = evaluate(Oracle(), items(trained=("en", "ru")))
    assert result["metrics"].keys() == result["chance"].keys()
    assert set(result["metrics"].values()) == {1.0}
    for name in ("eval/sentence_translation", "eval/translation_R@1", "eval/text_to_image_R@1", "eval/ja/image_to_text_R@1"):
        assert result["chance"][name] == pytest.approx(1 / WORDS)
    for name in ("eval/ru-en/translation_R@1", "eval/translation_R@1_both_seen", "eval/translation_R@1_some_unseen"):
        assert result["metrics"][name] == 1.0
    assert "eval/translation_R@1_non_latin_to_en" in result["metrics"]
    assert "eval/hi-en/translation_R@1" not in result["metrics"]
    assert result["items"] == WORDS
    assert result["lacking"] == {"en": 0, "ru": 0, "ja": 0, "de": 0, "image": 0}


def test_result_is_json_without_nan():
    some = items()
    some[0] = Item(None, {"en": ["en-0"]}, ("en",))
    text = json.dumps(evaluate(Oracle(), some), allow_nan=False)
    assert json.loads(text)["matrices"]["share"][0][0] is None


def test_lacking_captions_and_images_are_left_out_and_counted():
    some = items()
    some[2] = Item(b"2", {"en": ["en-2"], "ru": ["ru-2"]}, ("en",))
    some[3] = Item(None, some[3].captions, ("en",))
    some[4] = Item(b"4", {"en": []}, ("en",))
    result = evaluate(Oracle(), some)
    assert result["lacking"] == {"en": 1, "ru": 1, "ja": 2, "de": 2, "image": 1}
    assert result["pairs"] == {"en": 4, "ru": 4, "ja": 3, "de": 3}
    assert result["metrics"]["eval/sentence_translation"] == 1.0
    assert result["metrics"]["eval/text_to_image_R@1"] == 1.0
    assert result["chance"]["eval/ja/text_to_image_R@1"] == pytest.approx(1 / 3)


def test_first_caption_counts_and_each_distinct_input_is_encoded_once():
    oracle = Oracle()
    some = [*items(), Item(b"1", {"en": ["en-1"], "de": ["de-1", "de-5"]}, None)]
    encoded = encode_items(oracle, some, ["en", "de"])
    assert sorted(oracle.images) == [str(i).encode() for i in range(WORDS)]
    assert sorted(oracle.texts) == sorted([f"{a}-{i}" for a in ("en", "de") for i in range(WORDS)] * 2)
    assert encoded.texts["de"][-1] == "de-1"
    assert encoded.seen is None
    assert encoded.image_ids[1] == encoded.image_ids[-1]
    assert score(encoded)["metrics"]["eval/text_to_image_R@1"] == 1.0


class Bilingual(Oracle):
    """Reads languages: the vector of a text is turned where it is said to be German."""

    reads_languages = True

    def __init__(self):
        super().__init__()
        self.pairs: list[tuple[str, str]] = []

    def encode_texts(self, texts, languages=None):
        self.pairs += zip(languages, texts, strict=True)
        turned = np.array([-1.0 if a == "de" else 1.0 for a in languages], np.float32)
        return super().encode_texts(texts) * turned[:, None]

    def encode_captions_for_images(self, texts, languages=None):
        return -self.encode_texts(texts, languages)


def test_a_text_is_encoded_once_per_language_where_the_encoder_reads_languages():
    same = [Item(str(i).encode(), {"en": [f"same-{i}"], "de": [f"same-{i}"]}) for i in (0, 1, 1, 2)]
    oracle, bilingual = Oracle(), Bilingual()
    shared, apart = encode_items(oracle, same), encode_items(bilingual, same)
    assert sorted(oracle.texts) == sorted([f"same-{i}" for i in range(3)] * 2)  # once in each of the two spaces
    assert sorted(bilingual.pairs) == sorted([(a, f"same-{i}") for a in ("de", "en") for i in range(3)] * 2)
    np.testing.assert_array_equal(shared.sentences["de"], shared.sentences["en"])
    np.testing.assert_array_equal(apart.sentences["de"], -apart.sentences["en"])
    np.testing.assert_array_equal(apart.captions["de"], apart.sentences["en"])


def test_an_encoder_without_images_is_asked_for_sentences_alone():
    class TextOnly(Oracle):
        has_images = False

        def encode_captions_for_images(self, texts):
            raise AssertionError

        encode_images = encode_captions_for_images

    result = evaluate(TextOnly(), items())
    assert result["metrics"]["eval/sentence_translation"] == 1.0
    assert result["lacking"]["image"] == WORDS
    assert not any("image" in name for name in result["metrics"])


def test_one_language_or_no_images_leaves_metrics_out():
    only = evaluate(Oracle(), [Item(None, {"en": [f"en-{i}"]}) for i in range(3)])
    assert only["metrics"] == {}
    text_only = evaluate(Oracle(), [Item(None, {"en": [f"en-{i}"], "de": [f"de-{i}"]}) for i in range(3)])
    assert "eval/sentence_translation" in text_only["metrics"]
    assert not any("image" in name for name in text_only["metrics"])


def test_sentence_translation_of_a_language_is_the_mean_of_its_queries():
    generator = np.random.default_rng(0)

    class Noise(Oracle):
        def encode_texts(self, texts):
            return super().encode_texts(texts) + generator.normal(size=(len(texts), WORDS))

    result = evaluate(Noise(), items())
    each = [result["metrics"][f"eval/{a}/sentence_translation"] for a in ("en", "ru", "ja", "de")]
    assert result["metrics"]["eval/sentence_translation"] == pytest.approx(np.mean(each))


def test_table_puts_chance_first_and_splits_apart():
    result = evaluate(Oracle(), items())
    other = evaluate(Oracle(), items(trained=None))
    table = score_table({"untrained": {"test-seen": result}, "this run": {"test-seen": result, "test": other}})
    assert [system for system, _ in table.rows] == ["chance", "untrained", "this run"]
    assert {column.split for column in table.columns} == {"test-seen", "test"}
    values = dict(table.rows)
    last = len(table.columns) - 1
    assert values["untrained"][last] is None
    assert values["this run"][last] == 1.0
    assert values["chance"][last] == pytest.approx(1 / WORDS)
    text = render(table)
    assert "test-seen  (seen concepts, unseen style)" in text
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("  untrained")] == ["1.000", "–"]
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("  chance")] == [".167", ".167"]
    assert max(map(len, text.splitlines())) <= 100


def test_labels_that_are_no_language_tags_are_scored_too():
    result = evaluate(Oracle(), [Item(str(i).encode(), {"first half": [f"x-{i}"], "2": [f"y-{i}"]}) for i in range(3)])
    assert result["metrics"]["eval/first half/translation_R@1"] == 1.0
    assert "eval/translation_R@1_non_latin_to_latin" not in result["metrics"]
