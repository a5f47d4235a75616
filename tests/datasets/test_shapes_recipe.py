"""The splits of the drawn world: deterministic, balanced, and nothing that is tested as unseen was seen."""

import hashlib
import io
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from PIL import Image

from raysys.errors import UserError
from raysys.shards.sample import parse_captions
from tests.datasets.recipes import DATASETS, recipe_module

recipe, scenes, concepts = recipe_module("shapes.recipe"), recipe_module("shapes.scenes"), recipe_module("shapes.concepts")
LANGUAGES = recipe.LANGUAGES
NOWHERE = Path("/nonexistent")


def make(count: int = 900, seed: int = 0, languages=LANGUAGES) -> dict[str, list]:
    splits = defaultdict(list)
    for sample in recipe.samples(NOWHERE, seed=seed, languages=languages, count=count):
        splits[sample.split].append(sample)
    return splits


@pytest.fixture(scope="module")
def splits():
    return make()


def digest(splits) -> str:
    total = hashlib.sha256()
    for sample in (sample for split in splits.values() for sample in split):
        total.update(f"{sample.split}/{sample.key}.{sample.extension}".encode() + sample.image)
        total.update(json.dumps(sample.metadata).encode())
    return total.hexdigest()


def groups(samples) -> set[str]:
    return {sample.metadata["group"] for sample in samples}


def bindings(samples) -> set[tuple[str, str]]:
    return {(figures["colour"], figures["shape"]) for sample in samples for figures in sample.metadata["scene"]["figures"]}


def test_same_seed_same_bytes():
    first = digest(make(240, languages=LANGUAGES[:4]))
    assert digest(make(240, languages=LANGUAGES[:4])) == first
    assert digest(make(240, languages=LANGUAGES[:4], seed=1)) != first


def test_the_order_of_sets_has_no_say():
    """Python orders sets of strings differently in every process."""
    code = "from tests.datasets import test_shapes_recipe as t; print(t.digest(t.make(60, languages=('ru',))))"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=DATASETS.parent, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        for seed in "12"
    ]
    assert runs[0].stdout == runs[1].stdout != ""


def test_splits_have_their_sizes(splits):
    assert list(splits) == ["train", "validation", "test-seen", "test-unseen"]
    assert {split: len(samples) for split, samples in splits.items()} == recipe.split_sizes(900)
    assert sum(map(len, splits.values())) == 900
    for samples in splits.values():
        assert len({sample.key for sample in samples}) == len(samples)
    assert recipe.split_sizes(recipe.COUNT) == {"train": 5152, "validation": 448, "test-seen": 200, "test-unseen": 200}


def test_training_is_monolingual_and_balanced(splits):
    for split in ("train", "validation"):
        used = Counter()
        for sample in splits[split]:
            (language,) = sample.metadata["captions"]
            assert len(set(sample.metadata["captions"][language])) == 2
            used[language] += 1
        assert set(used) == set(LANGUAGES)
        assert max(used.values()) - min(used.values()) <= 1
    for split in ("test-seen", "test-unseen"):
        for sample in splits[split]:
            assert tuple(sample.metadata["captions"]) == LANGUAGES


@pytest.mark.parametrize("seed", range(5))
def test_no_group_is_in_two_splits(seed):
    counts = {"train": 700, "validation": 60, "unseen": 150}
    divided = concepts.divide(seed, **counts)
    parts = {name: getattr(divided, name) for name in counts}
    assert {name: len(part) for name, part in parts.items()} == counts
    found = {name: {scene.group for scene in part} for name, part in parts.items()}
    assert not found["train"] & found["unseen"]
    assert not found["validation"] & found["unseen"]
    assert not found["train"] & found["validation"]
    assert len(found["unseen"]) == counts["unseen"]
    for part in parts.values():
        assert len({scene.concept for scene in part}) == len(part)


def test_unseen_concepts_are_unseen(splits):
    train, validation, unseen = splits["train"], splits["validation"], splits["test-unseen"]
    assert not (groups(train) | groups(validation)) & groups(unseen)
    known = bindings(train) | bindings(validation)
    for sample in unseen:
        new = bindings([sample]) - known
        assert bool(new) == (sample.metadata["novel"] == "colour and shape")
    assert Counter(sample.metadata["novel"] for sample in unseen).keys() == {"pair", "colour and shape"}


def test_seen_concepts_were_seen(splits):
    trained = defaultdict(set)
    texts = {language: set() for language in LANGUAGES}
    images = set()
    for sample in splits["train"]:
        ((language, captions),) = sample.metadata["captions"].items()
        trained[sample.metadata["concept"]].add(language)
        texts[language].update(captions)
        images.add(sample.image)
    assert len(groups(splits["test-seen"])) == len(splits["test-seen"])
    for sample in splits["test-seen"]:
        assert sample.metadata["trained_languages"] == [tag for tag in LANGUAGES if tag in trained[sample.metadata["concept"]]]
        assert sample.metadata["trained_languages"]
        assert sample.image not in images
        for language, (caption,) in sample.metadata["captions"].items():
            assert caption not in texts[language] or language in sample.metadata["trained_languages"]


def test_no_training_picture_pairs_languages(splits):
    """Every picture is drawn once, so that no two captions of different languages share an image."""
    images = [sample.image for samples in splits.values() for sample in samples]
    assert len(set(images)) == len(images)


@pytest.mark.parametrize(
    ("count", "languages"), [(900, LANGUAGES), (300, LANGUAGES), (375, recipe.AVAILABLE), (240, LANGUAGES[:4]), (60, ("en",))]
)
def test_every_word_is_trained_in_every_language(count, languages):
    seen = defaultdict(set)
    spoken = {language: Counter() for language in languages}
    for sample in make(count, seed=3, languages=languages)["train"]:
        ((language, captions),) = sample.metadata["captions"].items()
        facts = sample.metadata["scene"]
        for figures in facts["figures"]:
            seen[language] |= {figures["colour"], figures["shape"], figures["count"], figures["size"]}
        spoken[language].update(" ".join(captions).lower().replace(".", "").split())
    everything = {*scenes.COLOURS, *scenes.SHAPES, *scenes.COUNTS, *scenes.SIZES, None}
    assert {language: everything - words for language, words in seen.items()} == {language: set() for language in languages}
    if "en" in languages:
        assert {*scenes.COLOURS, *scenes.SIZES, "left", "right", "above", "below", "two", "three", "four"} <= spoken["en"].keys()


def test_captions_of_a_test_are_unique_and_tell_one_concept(splits):
    for language in LANGUAGES:
        told: dict[str, str] = {}
        for samples in splits.values():
            for sample in samples:
                for caption in sample.metadata["captions"].get(language, []):
                    assert told.setdefault(caption, sample.metadata["concept"]) == sample.metadata["concept"]
        for split in ("test-seen", "test-unseen"):
            captions = [sample.metadata["captions"][language][0] for sample in splits[split]]
            assert len(set(captions)) == len(captions)


def test_samples_keep_the_contract(splits):
    for samples in splits.values():
        for sample in samples[:40]:
            parsed = parse_captions(json.dumps(sample.metadata).encode())
            assert parsed.captions == sample.metadata["captions"]
            assert parsed.alignment == "strict"
            image = Image.open(io.BytesIO(sample.image))
            assert (image.size, image.format) == ((96, 96), {"png": "PNG", "jpg": "JPEG"}[sample.extension])
            assert len(sample.metadata["boxes"]) == sum(figures["count"] for figures in sample.metadata["scene"]["figures"])


@pytest.mark.parametrize(
    ("count", "languages", "says"),
    [
        (900, ("en", "tlh"), "tlh"),
        (900, ("en", "sw"), "no grammar for sw"),
        (900, ("en", "en"), "each named once"),
        (900, (), "each named once"),
        (20, ("en", "de"), "20"),
        (299, LANGUAGES, "needs 300 samples or more.*not 299"),
        (50_000, ("en",), "up to 10000 samples.*not 50000"),
    ],
)
def test_bad_settings_are_named(count, languages, says):
    with pytest.raises(UserError, match=says):
        next(recipe.samples(NOWHERE, seed=0, languages=languages, count=count))


def test_languages_are_normalised():
    tags = {tag for sample in make(120, languages=("de_DE", "zh_CN"))["test-seen"] for tag in sample.metadata["captions"]}
    assert tags == {"de", "zh-Hans"}
