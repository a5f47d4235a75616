"""The emoji data set: grouping and splitting on small inputs, then every promise of its card on the real thing."""

import io
import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from PIL import Image

from raysys.errors import UserError
from raysys.shards.sample import parse_captions
from tests.datasets.cache import CACHE
from tests.datasets.recipes import recipe_module

art = recipe_module("emoji.art")
concepts = recipe_module("emoji.concepts")
plan = recipe_module("emoji.plan")
recipe = recipe_module("emoji.recipe")
sources = recipe_module("emoji.sources")
pictures = recipe_module("common.pictures")

SKIN_TONES = {chr(point) for point in range(0x1F3FB, 0x1F400)}


def concept(point: str, name: str, **others: str):
    names = {"en": name, **{language: others.get(language, f"{name} {language}") for language in recipe.LANGUAGES if language != "en"}}
    keywords = {language: ["one", "two", "three", "four"] for language in names}
    return concepts.Concept(point, chr(int(point, 16)), names, keywords)


def items_for(many, groups=None, languages=recipe.LANGUAGES, seed=0, multilingual=False):
    drawn = {style: {one.point for one in many} for style in ("s1", "s2", "s3", "flat", "3d")}
    groups = groups or [[one.point] for one in many]
    return plan.plan(many, groups, drawn, (["s1", "s2", "s3"], "flat", "3d"), languages, seed, multilingual)


MANY = [concept(f"{number:x}", f"thing {number}") for number in range(0x1F400, 0x1F400 + 400)]


@pytest.mark.parametrize(
    ("emoji", "category", "expected"),
    [
        ("🐱", "Animals & Nature", True), ("❄️", "Travel & Places", True), ("❤", "Symbols", False), ("🏁", "Flags", False),
        ("🕒", "Travel & Places", False), ("⏰", "Travel & Places", True), ("👪", "People & Body", False), ("💑", "People & Body", False),
        ("👩‍🚀", "People & Body", False), ("👍🏽", "People & Body", False), ("x", None, False),
    ],
)  # fmt: skip
def test_pictorial(emoji, category, expected):
    assert concepts.is_pictorial(emoji, category) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("piñata", "pinata"), ("ON! arrow", "on-arrow"), ("woman’s hat", "womans-hat"), ("person: blond hair", "person-blond-hair")],
)
def test_slug(name, expected):
    assert art.slug(name) == expected


def test_captions_list_keywords_as_the_language_does():
    assert concepts.caption("de", "Hund", ["Tier", "Haustier"]) == "Hund, Tier, Haustier"
    assert concepts.caption("ja", "犬", ["動物"]) == "犬、動物"
    assert concepts.caption("ru", "собака", []) == "собака"


def test_equal_names_and_equal_or_mirrored_drawings_are_one_group():
    many = [concept("a1", "cat"), concept("a2", "dog", de="Cat DE "), concept("a3", "left"), concept("a4", "right"), concept("a5", "sun")]
    many[0].names["de"] = "cat de"
    random = np.random.default_rng(0)
    pixels = random.random((16, 16, 3), dtype=np.float32)
    drawings = {
        "s1": [("a3", pixels), ("a4", pixels[:, ::-1]), ("a5", random.random((16, 16, 3), dtype=np.float32))],
        "s2": [("a3", pixels), ("a4", 1 - pixels), ("a5", pixels * 0.5)],
    }
    assert recipe.group_concepts(many, drawings) == [["a1", "a2"], ["a3", "a4"], ["a5"]]


def test_a_group_is_never_divided():
    groups = [[one.point for one in MANY[start : start + 4]] for start in range(0, 400, 4)]
    for seed in range(5):
        sides = defaultdict(set)
        for item in items_for(MANY, groups, seed=seed):
            sides[int(item.point, 16) // 4].add(item.split == "test-unseen")
        assert all(len(side) == 1 for side in sides.values())
        assert Counter(side == {True} for side in sides.values()) == {True: 40, False: 60}


def test_validation_speaks_a_language_the_concept_was_not_trained_in():
    trained = defaultdict(set)
    items = items_for(MANY)
    for item in items:
        if item.split == "train":
            trained[item.point].update(item.captions)
    validation = [item for item in items if item.split == "validation"]
    assert len(validation) == 240
    assert all(len(item.captions) == 1 and trained[item.point].isdisjoint(item.captions) for item in validation)
    assert all(set(item.trained_languages) == trained[item.point] for item in items if item.split == "test-seen")


def test_split_does_not_depend_on_the_languages_but_on_the_seed():
    def unseen(**options):
        return {item.point for item in items_for(MANY, **options) if item.split == "test-unseen"}

    assert unseen() == unseen(languages=("en", "ja"))
    assert unseen() != unseen(seed=1)


def named(number: int):
    """A concept whose keywords are its own, but for one: the name of the next concept."""
    names = {language: f"thing {number} {language}" for language in recipe.LANGUAGES}
    keywords = {
        language: [f"THING {number + 1} {language}", *(f"word {place} of {number} {language}" for place in range(5))] for language in names
    }
    return concepts.Concept(f"{0x1F400 + number:x}", chr(0x1F400 + number), names, keywords)


def test_weak_captions_are_of_the_training_side_alone():
    many = [named(number) for number in range(400)]
    many[7].keywords["hi"] = []
    plain, weak = (items_for(many, multilingual=multilingual) for multilingual in (False, True))
    place = {split: [(item.point, item.style) for item in plain if item.split == split] for split in ("train", "validation", "test-unseen")}
    assert place == {split: [(item.point, item.style) for item in weak if item.split == split] for split in place}
    assert [item for item in plain if item.split.startswith("test")] == [item for item in weak if item.split.startswith("test")]

    unseen = {item.point for item in weak if item.split == "test-unseen"}
    held_out = {text.casefold() for item in weak if item.split == "test-unseen" for texts in item.captions.values() for text in texts}
    mentions = 0
    for before, item in zip(plain, weak, strict=True):
        if item.split.startswith("test"):
            continue
        assert item.point not in unseen
        assert (item.style == "flat") == (item.split == "validation")
        assert item.style != "3d"
        (own,) = before.captions
        assert list(item.captions) == [
            language for language in recipe.LANGUAGES if language == own or (item.point, language) != ("1f407", "hi")
        ]
        assert item.captions[own][0] == before.captions[own][0], "its language and name stay"
        concept = many[int(item.point, 16) - 0x1F400]
        for language, texts in item.captions.items():
            words = [word for text in texts for word in text.replace("、", ", ").split(", ")]
            assert held_out.isdisjoint(word.casefold() for word in words)
            assert (concept.names[language] in words) == (language == own), "words for it, not its name in translation"
            mentions += any(word.startswith("THING") for word in words)
    assert mentions > 0, "names of seen concepts may be keywords"
    assert weak == items_for(many, multilingual=True)


def test_few_languages_and_missing_names():
    many = MANY[:200]
    del many[0].names["de"]
    items = items_for(many, languages=("de", "hi"))
    many[0].names["de"] = "thing"
    assert all({"de"} != set(item.captions) for item in items if item.point == many[0].point)
    train = Counter(language for item in items if item.split == "train" for language in item.captions)
    assert abs(train["de"] - train["hi"]) <= 1
    assert {item.split for item in items} == {"train", "validation", "test-seen", "test-unseen"}


def test_aliases_are_mirrored_and_turned(tmp_path):
    icons = art.IconSet.__new__(art.IconSet)
    icons._icons = {"a": {"body": '<rect width="16" height="8"/>'}}
    icons._aliases = {
        "down": {"parent": "a", "vFlip": True},
        "side": {"parent": "a", "rotate": 1},
        "again": {"parent": "down", "vFlip": True},
    }
    icons._defaults = {"left": 0, "top": 0, "width": 16, "height": 16}
    dark = {key: np.argwhere(np.asarray(icons.draw(key, 16).convert("L")) < 128).mean(0).tolist() for key in ("a", "down", "side", "again")}
    assert dark == {"a": [3.5, 7.5], "down": [11.5, 7.5], "side": [7.5, 11.5], "again": [3.5, 7.5]}


def test_count_is_refused(tmp_path):
    with pytest.raises(UserError, match="size of the data set 'emoji' is fixed"):
        next(recipe.samples(tmp_path, seed=0, languages=recipe.LANGUAGES, count=5))


# ---- the real thing ----


@pytest.fixture(scope="module")
def real(loaded, drawn, grouped):
    """All samples of the default data set."""
    draw = recipe.draw

    def record(*arguments):
        encoded, groups = draw(*arguments)
        drawn.update(encoded)
        grouped.extend(groups)
        return encoded, groups

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe, "load", lambda *_: loaded)
        patch.setattr(recipe, "draw", record)
        return list(recipe.samples(CACHE, seed=0, languages=recipe.LANGUAGES))


@pytest.fixture(scope="module")
def drawn():
    """Everything that was drawn for `real`: (style, code point) → encoded picture."""
    return {}


@pytest.fixture(scope="module")
def loaded():
    """The concepts and the art of the default data set."""
    return recipe.load(CACHE, recipe.LANGUAGES)


@pytest.fixture(scope="module")
def grouped():
    """The concept groups of `real`."""
    return []


@pytest.fixture(scope="module")
def splits(real):
    return {split: list(group) for split, group in itertools.groupby(real, key=lambda sample: sample.split)}


def captions_of(samples):
    return {(language, text.casefold()) for sample in samples for language, texts in sample.metadata["captions"].items() for text in texts}


def test_counts_of_the_card(splits):
    assert {split: len(samples) for split, samples in splits.items()} == {
        "train": 4928, "validation": 971, "test-seen": 971, "test-unseen": 160,
    }  # fmt: skip


def test_unseen_concepts_share_nothing_with_training(splits):
    known = splits["train"] + splits["validation"]
    unseen = splits["test-unseen"]
    assert {sample.metadata["group"] for sample in known}.isdisjoint(sample.metadata["group"] for sample in unseen)
    assert {sample.key.partition("-")[0] for sample in known}.isdisjoint(sample.key.partition("-")[0] for sample in unseen)
    assert {sample.image for sample in known}.isdisjoint(sample.image for sample in unseen)
    assert captions_of(known).isdisjoint(captions_of(unseen))


def test_near_duplicates_are_in_one_group(real):
    names, images, groups = defaultdict(set), defaultdict(set), defaultdict(set)
    for sample in real:
        group = sample.metadata["group"]
        images[sample.image].add(group)
        groups[sample.key.partition("-")[0]].add(group)
        assert SKIN_TONES.isdisjoint(sample.metadata["emoji"]), "skin tones are no concepts of their own"
        if sample.split.startswith("test"):
            for language, (name,) in sample.metadata["captions"].items():
                names[language, name.casefold()].add(group)
    for found in (names, images, groups):
        assert all(len(its_groups) == 1 for its_groups in found.values())
    for left, right in (("1f448", "1f449"), ("1f91b", "1f91c"), ("1f50d", "1f50e"), ("1f31b", "1f31c"), ("1f642", "1f643")):
        assert groups[left] == groups[right]


def test_no_mirror_image_crosses_the_split(splits, drawn):
    """In the styles that were trained on, no unseen concept is a seen one mirrored or turned."""
    unseen = {sample.key.partition("-")[0] for sample in splits["test-unseen"]}
    for style in ("noto", "openmoji"):
        encoded = {point: data for (its_style, point), data in drawn.items() if its_style == style}
        small = [pictures.thumbnail(Image.open(io.BytesIO(data))) for data in encoded.values()]
        side = [point in unseen for point in encoded]
        pairs = pictures.alike(small, recipe.SAME_DRAWING)
        assert pairs
        assert not [pair for pair in pairs if side[pair[0]] != side[pair[1]]]


def test_one_language_per_image_and_balanced(splits):
    for split, tolerance in (("train", 1), ("validation", 2)):
        languages = [sample.metadata["captions"] for sample in splits[split]]
        assert all(len(captions) == 1 for captions in languages)
        texts = [texts for captions in languages for texts in captions.values()]
        # In training the name alone comes first, then it with one, two and three keywords, as many as the concept has.
        assert all(len(each) <= 4 and all(text.startswith(each[0]) for text in each) for each in texts if split == "train")
        assert Counter(map(len, texts)).most_common(1)[0][0] == (4 if split == "train" else 1)
        assert all(len(each) == 1 for each in texts if split == "validation")
        counts = Counter(language for captions in languages for language in captions)
        assert set(counts) == set(recipe.LANGUAGES)
        assert max(counts.values()) - min(counts.values()) <= tolerance
    per_concept = defaultdict(list)
    for sample in splits["train"]:
        per_concept[sample.key.partition("-")[0]] += sample.metadata["captions"]
    assert all(len(set(languages)) == len(languages) for languages in per_concept.values())


def test_styles_keep_to_their_splits(splits):
    styles = {split: {sample.metadata["style"] for sample in samples} for split, samples in splits.items()}
    assert styles["train"] == {"noto", "twemoji", "openmoji", "noto-v1", "emojione", "emojione-v1"}
    assert styles["validation"] == {"fluent-emoji-flat"}
    assert styles["test-seen"] == styles["test-unseen"] == {"fluent-emoji-3d"}


def test_tests_hold_all_languages_and_know_what_was_trained(splits):
    trained = defaultdict(set)
    for sample in splits["train"]:
        trained[sample.key.partition("-")[0]].update(sample.metadata["captions"])
    for sample in splits["test-seen"] + splits["test-unseen"]:
        assert list(sample.metadata["captions"]) == list(recipe.LANGUAGES)
        assert all(len(texts) == 1 for texts in sample.metadata["captions"].values())
    for sample in splits["test-seen"]:
        assert set(sample.metadata["trained_languages"]) == trained[sample.key.partition("-")[0]]
    for sample in splits["validation"]:
        assert trained[sample.key.partition("-")[0]].isdisjoint(sample.metadata["captions"])


def test_every_picture_decodes_and_shows_something(real):
    for sample in real:
        image = Image.open(io.BytesIO(sample.image))
        assert (image.format, image.size) == ("WEBP", (recipe.PICTURE_SIZE,) * 2), sample.key
        assert any(low != high for low, high in image.convert("RGB").getextrema()), sample.key


def test_captions_are_clean(real):
    for sample in real:
        for texts in sample.metadata["captions"].values():
            assert all(text == text.strip() and text and "↑" not in text and "{" not in text for text in texts), sample.key
    training = [sample.metadata["captions"] for sample in real if sample.split == "train"]
    lengths = Counter(1 + text.count(", ") + text.count("、") for captions in training for texts in captions.values() for text in texts)
    assert set(range(1, 5)) <= set(lengths)


def test_the_plan_repeats_for_a_seed():
    loaded, sets = recipe.load(CACHE, ["en", "uk", "sw"])
    drawn = {style: {one.point for one in loaded if icons.find(one.point, one.names["en"])} for style, icons in sets.items()}
    styles = ([style.name for style in sources.TRAINING_STYLES], "fluent-emoji-flat", "fluent-emoji-3d")
    groups = [[one.point] for one in loaded]
    first, again, other = (plan.plan(loaded, groups, drawn, styles, ("en", "uk", "sw"), seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other
    assert {language for item in first for language in item.captions} == {"en", "uk", "sw"}


def test_every_available_language_has_names():
    loaded, _ = recipe.load(CACHE, recipe.AVAILABLE)
    counts = Counter(language for one in loaded for language in one.names)
    assert set(counts) == set(recipe.AVAILABLE)
    assert min(counts.values()) >= 0.95 * len(loaded)


def test_weakly_aligned_samples(splits, loaded, drawn, grouped, monkeypatch):
    """The real thing once more, with keywords in all languages."""
    monkeypatch.setattr(recipe, "load", lambda *_: loaded)
    monkeypatch.setattr(recipe, "draw", lambda *_: (drawn, grouped))
    weak = defaultdict(list)
    for sample in recipe.samples(CACHE, seed=0, languages=recipe.LANGUAGES, multilingual=True):
        weak[sample.split].append(sample)
    unseen = captions_of(splits["test-unseen"])
    # Two names of seen concepts are lists, and an unseen name is part of them: "fog, haze".
    listed = {(language, part) for language, name in captions_of(splits["test-seen"]) for part in name.split(", ")}
    for split in ("train", "validation"):
        assert {sample.key for sample in weak[split]} == {sample.key for sample in splits[split]}
        assert {sample.metadata["alignment"] for sample in weak[split]} == {"weak"}
        words = {(language, word) for language, text in captions_of(weak[split]) for word in text.replace("、", ", ").split(", ")}
        assert words & unseen <= listed
        assert all({"translations", "paraphrases"}.isdisjoint(sample.metadata) for sample in weak[split])
        assert sum(len(sample.metadata["captions"]) == len(recipe.LANGUAGES) for sample in weak[split]) > 0.95 * len(weak[split])
    assert [vars(sample) for sample in weak["test-unseen"]] == [vars(sample) for sample in splits["test-unseen"]]


def test_metadata_is_what_the_sample_contract_reads(real):
    import json

    for sample in real[::500]:
        captions = parse_captions(json.dumps(sample.metadata).encode())
        assert captions.captions == sample.metadata["captions"]
        assert captions.alignment == "strict"
        assert {"group", "licence", "source", "style"} <= set(captions.extra)
