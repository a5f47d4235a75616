"""Streams of the drawn world for pre-training: what is parallel is, what is not is not, and what texts tell is noted truly."""

import io
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from raysys.errors import UserError
from raysys.shards.sample import parse_captions
from tests.datasets.recipes import recipe_module

recipe, grammar = recipe_module("shapes_streams.recipe"), recipe_module("shapes.grammar")
scenes = recipe_module("shapes.scenes")
LANGUAGES = recipe.LANGUAGES


@pytest.fixture(scope="module")
def made() -> dict[str, list]:
    found: dict[str, list] = {}
    for sample in recipe.samples(Path("unused"), seed=0, languages=LANGUAGES, count=150):
        found.setdefault(sample.split, []).append(sample)
    return found


def scene_of(sample):
    facts = sample.metadata["scene"]
    first, *rest = (scenes.Figures(**figures) for figures in facts["figures"])
    return scenes.Scene.of(first, facts["relation"], rest[0]) if rest else scenes.Scene.of(first)


def test_splits_and_members(made):
    assert {split: len(samples) for split, samples in made.items()} == {
        "strict": 45,
        "weak": 45,
        "parallel": 60,
        "validation": 4,
        "test": 4,
    }
    assert all(sample.image is None and "boxes" not in sample.metadata for sample in made["parallel"])
    for split in ("strict", "weak", "validation", "test"):
        for sample in made[split][:3]:
            size = Image.open(io.BytesIO(sample.image)).size
            assert size == (96, 96)
            assert len(sample.metadata["boxes"]) == sum(figures.count for figures in scene_of(sample).figures)
    for sample in itertools.chain(*made.values()):
        captions = parse_captions(json.dumps(sample.metadata).encode())
        assert captions.alignment == ("weak" if sample.split == "weak" else "strict")


@pytest.mark.parametrize("split", ["strict", "parallel", "validation", "test"])
def test_strict_captions_are_translations(made, split):
    for sample in made[split]:
        scene, captions = scene_of(sample), sample.metadata["captions"]
        assert tuple(captions) == LANGUAGES
        for place, english in enumerate(captions["en"]):
            [variant] = [one for one in grammar.variants(scene) if grammar.caption(scene, "en", one) == english]
            assert all(captions[tag][place] == grammar.caption(scene, tag, variant) for tag in LANGUAGES)
    assert {len(sample.metadata["captions"]["de"]) for sample in made[split]} == ({2} if split == "strict" else {1})


def test_weak_captions_are_not(made):
    sorts: Counter[str] = Counter()
    languages: Counter[str] = Counter()
    for sample in made["weak"]:
        scene, captions, told = scene_of(sample), sample.metadata["captions"], sample.metadata["told"]
        assert captions.keys() == told.keys()
        assert 2 <= len(captions) <= 4
        whole = {variant: {grammar.caption(scene, tag, variant) for tag in captions} for variant in grammar.variants(scene)}
        said = {text for texts in captions.values() for text in texts}
        assert max(len(texts & said) for texts in whole.values()) <= 1
        for tag, [text] in captions.items():
            full = {grammar.caption(scene, tag, variant) for variant in grammar.variants(scene)}
            parts = {
                speech
                for figures in scene.figures
                for sentence in (True, False)
                for speech in [grammar.LANGUAGES[tag].describe(scenes.Reading(figures), sentence)]
            }
            sort, truth = told[tag]["sort"], told[tag]["truth"]
            assert (text in full) == (sort == "whole")
            if sort == "part":
                assert text in parts
            assert (truth == 0) == (sort == "other")
            assert truth <= 1
            assert sort == "whole" or truth < 1
            sorts[sort] += 1
            languages[tag] += 1
    assert set(sorts) == {"whole", "part", "aspect", "other"}
    assert min(sorts.values()) > 0.05 * sorts.total()
    assert max(languages.values()) - min(languages.values()) <= 1


def test_the_share_of_facts_is_counted():
    weak = recipe_module("shapes_streams.weak")
    scene = scenes.Scene.of(scenes.Figures(2, "red", "heart", "small"), "left of", scenes.Figures(1, "blue", "star"))
    readings = [
        (next(scene.readings()), 8),  # 4 of the hearts, 3 of the star, the relation
        (scenes.Reading(scenes.Figures(1, "blue", "star")), 3),
        (scenes.Reading(scenes.Figures(2, None, "heart"), "left of", scenes.Figures(1, None, "star")), 5),
    ]
    assert [weak._facts(reading) for reading, _ in readings] == [expected for _, expected in readings]


def test_no_scene_is_in_two_roles(made):
    groups = {split: {sample.metadata["group"] for sample in samples} for split, samples in made.items()}
    trained = groups["strict"] | groups["weak"] | groups["parallel"]
    assert not trained & groups["validation"]
    assert not trained & groups["test"]
    assert not groups["validation"] & groups["test"]


def test_same_seed_same_bytes():
    def make(seed):
        samples = itertools.islice(recipe.samples(Path("unused"), seed=seed, languages=("de", "ja"), count=100), 28, 36)
        return [(sample.split, sample.key, sample.image, json.dumps(sample.metadata)) for sample in samples]

    assert make(1) == make(1) != make(2)


@pytest.mark.parametrize(
    ("languages", "count", "named"), [(("de",), None, "--languages"), (LANGUAGES, 5, "--samples"), (LANGUAGES, 10**6, "--samples")]
)
def test_what_cannot_be_made_is_refused(languages, count, named):
    with pytest.raises(UserError, match=named):
        next(recipe.samples(Path("unused"), seed=0, languages=languages, count=count))
