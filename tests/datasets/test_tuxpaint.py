"""The Tux Paint data set: reading and splitting on small inputs, then every promise of its card on the real thing."""

import io
import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from PIL import Image

from raysys.errors import UserError
from tests.datasets.cache import CACHE
from tests.datasets.recipes import recipe_module

stamps = recipe_module("tuxpaint.stamps")
recipe = recipe_module("tuxpaint.recipe")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A frog.", "A frog"), ("一个蟾蜍。", "一个蟾蜍"), ("एक मेंढक|", "एक मेंढक"), ("एक मेंढक ।", "एक मेंढक"), ("¡Una rana!", "Una rana"),
        ("እንቁራሪት። ", "እንቁራሪት"), ("Գdelays։", "Գdelays"), ("What is it?", "What is it?"), ("No. 5", "No. 5"),
        ("  two   words … ", "two words"), ("...", ""),
    ],
)  # fmt: skip
def test_tidy(text, expected):
    assert stamps.tidy(text) == expected


def test_captions_of_a_text():
    text = "A frog.\nde.utf8=Ein Frosch.\nen_GB.utf8=A frog.\npt_BR.utf8=Um sapo.\nzh_CN.utf8=青蛙。\n"
    text += "sr@latin.utf8=Žaba\nta.utf8=x\nfr.utf8= . \n\n#"
    assert stamps.parse_captions(text) == {"en": "A frog", "de": "Ein Frosch", "pt-BR": "Um sapo", "zh-Hans": "青蛙"}


def test_stamps_need_a_picture_and_a_sentence():
    files = {
        "a/cat.txt": b"A cat.", "a/cat.png": b"", "a/cat.svg": b"", "a/cat_mirror.png": b"", "a/dog.txt": b"A dog.", "a/sun.txt": b"A sun.",
        "a/sun.svg": b"", "a/mute.txt": b".", "a/mute.png": b"", "symbols/letter.txt": b"A.", "symbols/letter.png": b"",
    }  # fmt: skip
    assert [(stamp.name, stamp.file) for stamp in stamps.read_stamps(files)] == [("a/cat", "a/cat.png"), ("a/sun", "a/sun.svg")]


def stamp(name: str, english: str, **others: str):
    captions = {language: others.get(language, f"{name} {language}") for language in recipe.LANGUAGES}
    return stamps.Stamp(name, f"{name}.png", {**captions, "en": english})


def test_equal_captions_equal_bytes_and_mirror_images_are_one_group():
    many = [
        stamp("a", "A cat"),
        stamp("b", "a CAT"),
        stamp("c", "Dog", de="Hund"),
        stamp("d", "Hound", de="Hund"),
        stamp("e", "E"),
        stamp("f", "F"),
    ]
    many += [stamp("g", "G"), stamp("h", "H")]
    random = np.random.default_rng(0)
    small = [random.random((16, 16, 3), dtype=np.float32) for _ in many]
    small[5] = small[4][:, ::-1]
    pictures = {one.name: one.name.encode() for one in many} | {"h": b"g"}
    assert recipe.group_stamps(many, pictures, small) == [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]]


def test_groups_stay_whole_and_incomplete_ones_are_not_tested_on():
    many = [stamp(f"s{number:03}", f"thing {number // 3}") for number in range(600)]
    del many[30].captions["ja"]
    groups = [[one.name for one in many[start : start + 3]] for start in range(0, 600, 3)]
    for seed in range(5):
        splits = recipe.divide(many, groups, seed)
        where = {name: split for split, names in splits.items() for name in names}
        assert len(where) == sum(map(len, splits.values())) == 600
        assert all(len({where[name] for name in group}) == 1 for group in groups)
        assert where["s031"] != "test"
        assert {split: len(names) for split, names in splits.items()} == {"train": 378, "validation": 42, "test": 180}


def test_all_languages_of_a_picture_to_train_on():
    many = [stamp(f"s{number}", f"thing {number}") for number in range(20)]
    many[3].captions.pop("de")
    for split in ("train", "validation", "test"):
        found = dict(recipe._captions(split, many, ("en", "de", "ja"), 0, multilingual=True))
        assert set(found) == {one.name for one in many}
        assert set(found["s3"]) == {"en", "ja"}
        assert found["s4"] == {language: [many[4].captions[language]] for language in ("en", "de", "ja")}


def test_count_is_refused(tmp_path):
    with pytest.raises(UserError, match="size of the data set 'tuxpaint' is fixed"):
        next(recipe.samples(tmp_path, seed=0, languages=recipe.LANGUAGES, count=5))


# ---- the real thing ----


@pytest.fixture(scope="module")
def package():
    """The texts and pictures of the package, read once."""
    return recipe.read_files(recipe.fetch_debian(recipe.PACKAGE, CACHE), stamps.FOLDER, (".txt", ".png", ".svg"))


@pytest.fixture(scope="module")
def drawn(package):
    """The pictures and thumbnails of all stamps, drawn once."""
    return recipe.draw(stamps.read_stamps(package), package)


def samples_of(package, drawn, **options):
    """All samples, without reading and drawing again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe, "fetch_debian", lambda *_: None)
        patch.setattr(recipe, "read_files", lambda *_: package)
        patch.setattr(recipe, "draw", lambda *_: drawn)
        samples = list(recipe.samples(CACHE, seed=0, languages=recipe.LANGUAGES, **options))
    return {split: list(group) for split, group in itertools.groupby(samples, key=lambda sample: sample.split)}


@pytest.fixture(scope="module")
def splits(package, drawn):
    return samples_of(package, drawn)


def captions_of(samples):
    return {(language, text.casefold()) for sample in samples for language, texts in sample.metadata["captions"].items() for text in texts}


def test_counts_of_the_card(splits):
    assert {split: len(samples) for split, samples in splits.items()} == {"train": 468, "validation": 52, "test": 181}


def test_no_concept_in_two_splits(splits):
    groups = [{sample.metadata["group"] for sample in samples} for samples in splits.values()]
    images = [{sample.image for sample in samples} for samples in splits.values()]
    captions = [captions_of(samples) for samples in splits.values()]
    for sides in (groups, images, captions):
        assert all(one.isdisjoint(other) for one, other in itertools.combinations(sides, 2))


def test_near_duplicates_are_in_one_group(splits, package):
    by_name = {one.name: one.captions for one in stamps.read_stamps(package)}
    labels, images = defaultdict(set), defaultdict(set)
    for sample in itertools.chain(*splits.values()):
        images[sample.image].add(sample.metadata["group"])
        for language in recipe.LANGUAGES:
            if caption := by_name[sample.metadata["stamp"]].get(language):
                labels[language, caption.casefold()].add(sample.metadata["group"])
    assert all(len(groups) == 1 for groups in (*labels.values(), *images.values()))


def test_one_language_per_image_and_balanced(splits):
    for split in ("train", "validation"):
        captions = [sample.metadata["captions"] for sample in splits[split]]
        assert all(len(one) == 1 and len(*one.values()) == 1 for one in captions)
        counts = Counter(language for one in captions for language in one)
        assert set(counts) == set(recipe.LANGUAGES)
        assert max(counts.values()) - min(counts.values()) <= 1


def test_strict_pairs_for_training(splits, package, drawn):
    """With all languages, each picture stays on its side, and its captions are those that lay apart before."""
    found = samples_of(package, drawn, multilingual=True)
    assert {split: [sample.key for sample in its] for split, its in found.items()} == {
        split: [sample.key for sample in its] for split, its in splits.items()
    }
    for before, sample in zip(splits["train"], found["train"], strict=True):
        assert sample.metadata["captions"] == before.metadata["captions"] | before.metadata["translations"]
        assert "translations" not in sample.metadata
        assert sample.metadata["alignment"] == "strict"
    assert sum(len(sample.metadata["captions"]) for sample in found["validation"]) > 9 * len(found["validation"])
    assert [vars(sample) for sample in found["test"]] == [vars(sample) for sample in splits["test"]]


def test_all_languages_at_test(splits):
    assert all(list(sample.metadata["captions"]) == list(recipe.LANGUAGES) for sample in splits["test"])


def test_every_picture_decodes_and_shows_something(splits):
    for sample in itertools.chain(*splits.values()):
        image = Image.open(io.BytesIO(sample.image))
        assert image.format == "WEBP"
        assert max(image.size) <= recipe.PICTURE_SIZE
        assert any(low != high for low, high in image.convert("RGB").getextrema()), sample.key


def test_splits_repeat_for_a_seed_and_do_not_depend_on_languages(package):
    many = stamps.read_stamps(package)
    groups = [[one.name] for one in many]
    assert recipe.divide(many, groups, 3) == recipe.divide(many, groups, 3)
    assert recipe.divide(many, groups, 3) != recipe.divide(many, groups, 4)
    train = [one for one in many if one.name in set(recipe.divide(many, groups, 3)["train"])]
    first, again = (list(recipe._captions("train", train, ("ga", "vi", "ka"), 3)) for _ in range(2))
    assert first == again
    assert {language for _, captions in first for language in captions} == {"ga", "vi", "ka"}


def test_every_available_language_is_well_covered(package):
    counts = Counter(language for one in stamps.read_stamps(package) for language in one.captions)
    assert {language for language, count in counts.items() if count >= 500} == set(recipe.AVAILABLE)
    assert len(recipe.AVAILABLE) == 60
    assert set(recipe.LANGUAGES) <= set(recipe.AVAILABLE)


def test_white_drawings_can_be_seen(package):
    bolt = next(one for one in stamps.read_stamps(package) if one.name == "naturalforces/lightningbolt")
    assert recipe.thumbnail(recipe._open(bolt, package[bolt.file])).std() > recipe.FAINT
