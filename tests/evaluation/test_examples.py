"""Examples shown to people: nothing flattered, nothing hidden."""

import io

import numpy as np
import pytest
from PIL import Image

from raysys.evaluation.examples import failures, transitive_matches, translation_examples
from raysys.evaluation.scores import Item, encode_items

LANGUAGES = ("en", "ru", "ja", "de")


def png(shade):
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), (shade, shade, shade)).save(buffer, "PNG")
    return buffer.getvalue()


class Table:
    """Vectors looked up by input."""

    def __init__(self, texts, images):
        self.texts, self.images = texts, images

    def encode_texts(self, texts):
        return np.array([self.texts[text] for text in texts])

    encode_captions_for_images = encode_texts

    def encode_images(self, images):
        return np.array([self.images[image] for image in images])


def world(n=12, noise=0.0, seed=0):
    generator = np.random.default_rng(seed)
    meaning = generator.normal(size=(n, 16))
    items = [Item(png(i), {a: [f"{a} {i}"] for a in LANGUAGES}) for i in range(n)]
    texts = {f"{a} {i}": meaning[i] + noise * generator.normal(size=16) for a in LANGUAGES for i in range(n)}
    return items, Table(texts, {png(i): meaning[i] for i in range(n)})


def test_examples_of_a_perfect_encoder_are_right_and_failures_empty():
    items, encoder = world()
    encoded = encode_items(encoder, items)
    examples = translation_examples(encoded, items, count=4, targets=3)
    assert [e.language for e in examples] == ["en", "ru", "ja", "de"]
    assert len({e.text for e in examples}) == 4
    for example in examples:
        number = example.text.split()[1]
        assert example.image == png(int(number))
        assert example.gloss == ("" if example.language == "en" else f"en {number}")
        assert len(example.retrieved) == 3
        for found in example.retrieved:
            assert found.right
            assert found.text == f"{found.language} {number}"
            assert found.similarity == pytest.approx(1.0, abs=1e-6)
            assert found.expected_rank == 1
            assert found.candidates == 12
    assert failures(encoded, items) == []


def test_same_seed_same_examples():
    items, encoder = world(noise=1.0)
    encoded = encode_items(encoder, items)
    assert translation_examples(encoded, items, seed=1) == translation_examples(encoded, items, seed=1)
    assert translation_examples(encoded, items, seed=1) != translation_examples(encoded, items, seed=2)


def test_a_tie_with_a_wrong_sentence_is_shown_as_wrong():
    items = [Item(None, {"en": [f"en {i}"], "de": [f"de {i}"]}) for i in range(3)]
    encoded = encode_items(Table({t: np.ones(3) for i in range(3) for t in (f"en {i}", f"de {i}")}, {}), items)
    for example in translation_examples(encoded, items, count=3):
        for found in example.retrieved:
            assert not found.right
            assert found.expected_rank == 3


def test_equal_strings_are_right_whichever_item_they_come_from():
    items = [Item(None, {"en": [f"en {i}"], "de": ["gleich"]}) for i in range(3)]
    vectors = {f"en {i}": np.eye(3)[i] for i in range(3)} | {"gleich": np.ones(3)}
    for example in translation_examples(encode_items(Table(vectors, {}), items), items, count=3):
        assert all(found.right for found in example.retrieved if found.language == "de")


def test_the_worst_failure_comes_first_and_each_item_once():
    items, encoder = world()
    encoder.texts["de 3"] = -encoder.texts["de 3"]
    encoder.texts["ru 5"], encoder.texts["ru 6"] = encoder.texts["ru 6"], encoder.texts["ru 5"]
    shown = failures(encode_items(encoder, items), items, count=10)
    assert {e.text.split()[1] for e in shown} == {"3", "5", "6"}
    assert len(shown) == 3
    gaps = [e.retrieved[0].similarity - e.retrieved[0].expected_similarity for e in shown]
    assert gaps == sorted(gaps, reverse=True)
    for example in shown:
        assert not example.retrieved[0].right
        assert example.retrieved[0].expected.split()[1] == example.text.split()[1]


def test_transitive_matches_are_of_the_three_kinds():
    # Items 0–1 and 2–3: twins. 4–5: twin images, but the captions of 5 fit nothing. All others are alone.
    n, d = 10, 32
    meaning = np.eye(n, d)
    meaning[1], meaning[3], meaning[5] = (0.95 * meaning[i] + 0.3 * np.eye(d)[20 + i] for i in (0, 2, 4))
    items = [Item(png(i), {LANGUAGES[i % 4]: [f"c {i}"]}) for i in range(n)]
    texts = {f"c {i}": meaning[i] for i in range(n)}
    texts["c 5"] = np.eye(d)[31]
    matches = transitive_matches(encode_items(Table(texts, {png(i): meaning[i] for i in range(n)}), items), items, margin=0.4)
    by_kind = {kind: [m for m in matches if m.kind == kind] for kind in ("match", "weak caption", "different images")}
    pair = lambda m: {m.left.text, m.right.text}  # noqa: E731
    assert [pair(m) for m in by_kind["match"]] == [{"c 0", "c 1"}, {"c 2", "c 3"}]
    assert [pair(m) for m in by_kind["weak caption"]] == [{"c 4", "c 5"}]
    assert len(by_kind["different images"]) == 2
    for match in matches:
        assert match.left.language != match.right.language
        product = match.images * match.left.image_caption * match.right.image_caption
        assert match.transitive == pytest.approx(max(0.0, product - 0.4) / 0.6, abs=1e-5)
        assert (match.transitive > 0) == (match.kind == "match")
    used = [side.text for m in matches for side in (m.left, m.right)]
    assert len(used) == len(set(used))


def test_nothing_to_show_without_images_or_languages():
    items = [Item(None, {"en": ["en 0"]})]
    encoded = encode_items(Table({"en 0": np.ones(2)}, {}), items)
    assert transitive_matches(encoded, items) == []
    assert translation_examples(encoded, items) == []
    assert failures(encoded, items) == []
