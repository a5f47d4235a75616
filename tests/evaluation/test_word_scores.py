"""Word translation as one more split of the scores."""

import json

import numpy as np
import pytest

from raysys.evaluation.word_scores import WordTranslationSettings, score_words, word_task
from raysys.storage import Storage
from tests.evaluation.test_procrustes import rotation


def name(language: str, number: int) -> str:
    """A word without digits; the first ten are spelt alike in all languages."""
    letters = chr(97 + number // 26) + chr(97 + number % 26)
    return letters if number < 10 else letters + language


@pytest.fixture
def world(tmp_path):
    """30 words in three languages, captions of one word; the dictionary knows half of them from English to German."""
    training = {language: [name(language, i) for i in range(30) for _ in range(31 - i)] for language in ("en", "de", "fr")}
    parallel = [{language: [name(language, i)] for language in training} for i in range(25) for _ in range(3)]
    lines = [*(f"{name('en', i)}\t{name('de', i)}\n" for i in range(15)), "zebra\tzebra\n"]
    (tmp_path / "en-de.tsv").write_text("".join(lines))
    return training, parallel, str(tmp_path)


def test_every_metric_stands_beside_chance_and_its_matrix(world):
    training, parallel, folder = world
    settings = WordTranslationSettings(dictionaries=folder, least_pairs=5)
    task = word_task(training, parallel, settings, Storage())
    random = np.random.default_rng(0)
    meaning = random.normal(size=(30, 12))
    vectors = {language: meaning @ rotation(random, 12, 0.15).T for language in training}
    result = json.loads(json.dumps(score_words(task, vectors, settings), allow_nan=False))
    names = {
        f"word_translation{source}_R@10{words}{space}{measure}"
        for source in ("", "_dictionary") for words in ("", "_disjoint") for space in ("", "_procrustes") for measure in ("", "_csls")
    }  # fmt: skip
    assert set(result["matrices"]) == names
    assert set(result["metrics"]) == set(result["chance"]) == {f"eval/{one}" for one in names}
    assert result["items"] == 90
    assert result["languages"] == ["en", "de", "fr"]
    assert result["lacking"] == {"en": 5, "de": 5, "fr": 5}
    for one in names:
        rows = np.array(result["matrices"][one], dtype=float)
        assert np.nanmean(rows) == pytest.approx(result["metrics"][f"eval/{one}"], abs=1e-6)
        assert result["chance"][f"eval/{one}"] == pytest.approx(10 / 30)
        assert np.isnan(rows).sum() == (3 if "dictionary" not in one else 7)
    assert result["metrics"]["eval/word_translation_R@10_procrustes"] == 1
    assert result["words"]["vocabulary"] == {"en": 30, "de": 30, "fr": 30}
    assert result["words"]["left_out"] == {"en": 0, "de": 0, "fr": 0}
    assert result["words"]["word_translation"]["en-de"] == {"items": 75, "pairs": 25, "ambiguous": 0, "missing": 0}
    assert result["words"]["word_translation_dictionary"] == {"en-de": {"entries": 16, "pairs": 15, "missing": 1, "through": 0}}
    assert set(result["procrustes"]["pairs"]) == {"en-de", "en-fr", "de-fr"}


def test_the_vocabulary_is_bounded(world):
    training, parallel, _ = world
    settings = WordTranslationSettings(vocabulary=20, csls=False, least_pairs=5)
    task = word_task(training, parallel, settings, Storage())
    vectors = {language: np.random.default_rng(0).normal(size=(20, 4)) for language in training}
    result = score_words(task, vectors, settings)
    assert result["words"]["left_out"] == {"en": 10, "de": 10, "fr": 10}
    assert result["words"]["word_translation"]["en-de"]["missing"] == 10
    assert result["metrics"]["eval/word_translation_R@10"] == 1  # equal vectors in equal order
    assert not any("csls" in one or "dictionary" in one for one in result["metrics"])


def test_too_few_pairs_leave_the_other_metrics(world):
    training, parallel, _ = world
    settings = WordTranslationSettings(least_pairs=1000)
    task = word_task(training, parallel, settings, Storage())
    result = score_words(task, {language: np.random.default_rng(0).normal(size=(30, 4)) for language in training}, settings)
    assert "en and de have" in result["procrustes"]["error"]
    assert "eval/word_translation_R@10" in result["metrics"]
    assert not any("procrustes" in one for one in result["metrics"])


def test_what_has_nothing_to_count_is_absent(world):
    training, _, _ = world
    settings = WordTranslationSettings(least_pairs=1)
    vectors = {language: np.random.default_rng(0).normal(size=(30, 4)) for language in training}
    result = score_words(word_task(training, [], settings, Storage()), vectors, settings)
    assert result["metrics"] == result["chance"] == result["matrices"] == {}
    alone = word_task({"en": training["en"]}, [], settings, Storage())
    assert score_words(alone, vectors, settings)["metrics"] == {}
