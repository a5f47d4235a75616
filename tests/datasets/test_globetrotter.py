"""The Globetrotter data set in the layout it is published in, in small: three collections, what can be wrong, and the split rule."""

import itertools
import pickle
import random
from collections import Counter
from pathlib import Path

import pytest

from raysys.errors import UserError
from raysys.runs.settings import GlobetrotterSettings
from raysys.settings import from_command_line
from raysys.shards.languages import normalise_language
from raysys.shards.parts import write_parts
from raysys.storage import Storage, join
from tests.datasets.prepared import Split, prepared
from tests.datasets.recipes import DATASETS, recipe_module
from tests.shards.tars import picture

recipe = recipe_module("globetrotter.recipe")
splits = recipe_module("globetrotter.splits")

COCO, FLICKR, CONCEPTUAL = "COCO/annotations", "flickr30k/entities", "ConceptualCaptions"
INDEPENDENT, ALL = "translated_independent", "translated_alllangs"


class Published:
    """A download in the making."""

    def __init__(self, folder: Path):
        self.folder = folder

    def text(self, collection: str, kind: str, listing: str | None, path: str, *captions: str) -> None:
        """A text of captions, and its line in the listing."""
        file = self.folder / collection / kind / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{caption}\n" for caption in captions))
        if listing:
            self.line(collection, kind, listing, f"./{path}")

    def line(self, collection: str, kind: str, listing: str, line: str) -> None:
        (self.folder / collection / kind).mkdir(parents=True, exist_ok=True)
        with (self.folder / collection / kind / f"listing_{listing}.txt").open("a") as file:
            file.write(f"{line}\n")

    def image(self, path: str, content: bytes | None = None, number: int = 0) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture(number, (8, 6), "JPEG") if content is None else content)

    def train(self, language: str, number: int, *captions: str, listing: str = "train") -> str:
        """An image of COCO with a text in one language; where the text lies."""
        name = f"{language}/COCO_train2014_{number:012d}.txt"
        self.text(COCO, INDEPENDENT, listing, name, *captions)
        self.image(f"COCO/train2014/COCO_train2014_{number:012d}.jpg", number=number)
        return f"{COCO}/{INDEPENDENT}/{name}"

    def test(self, number: int, listing: str = "test", **captions: str | list[str]) -> None:
        """An image of COCO with texts in many languages."""
        for language, its in captions.items():
            lines = [its] if isinstance(its, str) else its
            self.text(COCO, ALL, listing, f"{language}/COCO_train2014_{number:012d}.txt", *lines)
        self.image(f"COCO/train2014/COCO_train2014_{number:012d}.jpg", number=number)


@pytest.fixture
def published(tmp_path):
    return Published(tmp_path / "dataset")


def read(published: Published, out: Path, languages: tuple[str, ...] = (), shards: int = 2) -> dict[str, Split]:
    return prepared(recipe, published.folder, out, shards, languages)


def write_world(published: Published, seed: int) -> None:
    """All three collections by lot, without faults: numbers and names as published, sentences that some images share."""
    draw = random.Random(seed)
    languages = ["de", "fa-AF", "fa", "no", "tl", "zh", "ja", "am"]

    def captions(language: str, count: int) -> list[str]:
        return [f"{language} {draw.choice('αбתあ')} {draw.randrange(120)}." for _ in range(count)]

    for collection in (COCO, FLICKR, CONCEPTUAL):
        names = draw.sample(range(1, 10_000_000), 50)
        for position, number in enumerate(names):
            if collection == COCO:
                half = draw.choice(["train", "val"])
                name, image, count = f"COCO_{half}2014_{number:012d}", f"COCO/{half}2014/COCO_{half}2014_{number:012d}.jpg", 5
            elif collection == FLICKR:
                name, image, count = str(number), f"flickr30k/images/{number}.jpg", 5
            else:
                name = draw.choice([f"{number:08d}", f"training_1{number:08d}"])
                image, count = f"ConceptualCaptions/train/{number:08d}.{draw.choice(['jpg', 'jpeg', 'png'])}", 1
            published.image(image, number=number)
            if position < 12:
                for language in [*languages, "en"]:
                    published.text(collection, ALL, "test", f"{language}/{name}.txt", *captions(language, count))
                published.text(collection, INDEPENDENT, draw.choice(["train", "val"]), f"en/{name}.txt", *captions("en", count))
            else:
                language = draw.choice(languages)
                published.text(
                    collection, INDEPENDENT, draw.choice(["train"] * 3 + ["val"]), f"{language}/{name}.txt", *captions(language, count)
                )


def read_independently(folder: Path) -> dict[str, dict[tuple[str, bytes], dict[str, list[str]]]]:
    """Published split → (image file, its bytes) → language as published → lines; found as the authors' loader does."""
    found: dict = {"train": {}, "val": {}, "test": {}}
    for collection in (COCO, FLICKR, CONCEPTUAL):
        for split, kind in (("train", INDEPENDENT), ("val", INDEPENDENT), ("test", ALL)):
            for line in (folder / collection / kind / f"listing_{split}.txt").read_text().splitlines():
                _, language, name = line.split("/")
                number = int(name.split(".")[-2].split("_")[-1])
                if collection == COCO:
                    half = "val" if "val" in name else "train"
                    files = [f"COCO/{half}2014/COCO_{half}2014_{number:012d}.jpg"]
                elif collection == FLICKR:
                    files = [f"flickr30k/images/{number}.jpg"]
                else:
                    number = int(str(number)[1:]) if len(str(number)) > 8 else number
                    files = [f"ConceptualCaptions/train/{number:08d}{extension}" for extension in (".jpeg", ".jpg", ".png")]
                (file,) = [file for file in files if (folder / file).exists()]
                lines = (folder / collection / kind / language / name).read_text().split("\n")[:-1]
                found[split].setdefault((file, (folder / file).read_bytes()), {})[language] = lines
    return found


@pytest.mark.parametrize("seed", range(3))
def test_equals_an_independent_reading(published, tmp_path, seed, monkeypatch):
    monkeypatch.setattr(recipe, "TRANSLATION_IMAGES", 7)
    monkeypatch.setattr(recipe, "RETRIEVAL_IMAGES", 11)
    write_world(published, seed)
    expected = read_independently(published.folder)
    found = read(published, tmp_path / "out", shards=3)
    assert list(found) == ["train", "validation", "test", "test-retrieval", "test-rest"]
    assert [len(found[split].metadata) for split in ("test", "test-retrieval", "test-rest")] == [7, 11, 36 - 18]

    def samples(*names: str) -> dict:
        result = {}
        for name in names:
            for member, image in found[name].images.items():
                metadata = found[name].metadata[member.rpartition(".")[0]]
                result[metadata["file_name"], image] = metadata["captions"]
        return result

    test = samples("test", "test-retrieval", "test-rest")
    assert test == {
        (file.rpartition("/")[2], image): {normalise_language(language): lines for language, lines in its.items()}
        for (file, image), its in expected["test"].items()
    }
    said = {line for its in expected["test"].values() for lines in its.values() for line in lines}
    for published_split, split in (("val", "validation"), ("train", "train")):
        wanted, left_out = {}, 0
        for (file, image), its in expected[published_split].items():
            if (file, image) in expected["test"]:
                assert list(its) == ["en"]
                continue
            ((language, lines),) = its.items()
            left_out += sum(line in said for line in lines)
            if lines := [line for line in lines if line not in said]:
                wanted[file.rpartition("/")[2], image] = {normalise_language(language): lines}
        assert samples(split) == wanted
        assert 0 < left_out == sum(count for cause, count in found[split].counts.skipped.items() if cause.startswith("sentence of"))
        said |= {line for its in expected[published_split].values() if "en" not in its for lines in its.values() for line in lines}
    assert {metadata["alignment"] for metadata in found["test"].metadata.values()} == {"strict"}
    assert {metadata["alignment"] for metadata in found["train"].metadata.values()} == {"weak"}


def test_one_sample_of_each_collection(published, tmp_path):
    published.text(COCO, INDEPENDENT, "train", "no/COCO_val2014_000000000042.txt", "To katter", "  Katter på et bord ")
    published.text(FLICKR, INDEPENDENT, "train", "zh/1000092795.txt", "两个年轻人")
    published.text(CONCEPTUAL, INDEPENDENT, "train", "fa-AF/training_100000123.txt", "مرد")
    published.image("COCO/val2014/COCO_val2014_000000000042.jpg", number=1)
    published.image("flickr30k/images/1000092795.jpg", number=2)
    published.image("ConceptualCaptions/train/00000123.png", number=3)
    train = read(published, tmp_path / "out")["train"]
    common = {"alignment": "weak", "source": "globetrotter"}
    assert train.metadata == {
        "coco-val2014-000000000042": {
            "captions": {"nb": ["To katter", "Katter på et bord"]}, **common, "collection": "coco",
            "file_name": "COCO_val2014_000000000042.jpg",
        },
        "flickr30k-1000092795": {
            "captions": {"zh-Hans": ["两个年轻人"]}, **common, "collection": "flickr30k", "file_name": "1000092795.jpg",
        },
        "conceptual-00000123": {"captions": {"fa-AF": ["مرد"]}, **common, "collection": "conceptual", "file_name": "00000123.png"},
    }  # fmt: skip
    assert sorted(train.images) == ["coco-val2014-000000000042.jpg", "conceptual-00000123.jpg", "flickr30k-1000092795.jpg"]
    assert train.images["flickr30k-1000092795.jpg"] == picture(2, (8, 6), "JPEG")


def test_what_gives_no_sample_is_counted_by_cause(published, tmp_path):
    published.train("de", 1, "gut", " \u200b", "auch gut")
    published.train("de", 2, "")
    published.train("ja", 3, "画像がない")
    published.train("ja", 4, "壊れた画像")
    bad = published.train("am", 5, "x", "ok")
    gone = published.train("am", 6, "y")
    utf16 = published.train("am", 7, "y")
    for line in (
        "./listing.txt",
        "./de/COCO_train2014.txt",
        "./xx/COCO_train2014_000000000009.txt",
        "./de/COCO_train2014_000000000001.txt",
    ):
        published.line(COCO, INDEPENDENT, "train", line)
    published.text(COCO, INDEPENDENT, "train", "de/again_000000000001.txt", "noch einmal")
    images = published.folder / "COCO" / "train2014"
    (images / "COCO_train2014_000000000003.jpg").unlink()
    (images / "COCO_train2014_000000000004.jpg").write_bytes(b"<html>")
    (published.folder / bad).write_bytes(b"\xff\xfa\nok\n")
    (published.folder / gone).unlink()
    (published.folder / utf16).write_bytes("y\n".encode("utf-16"))
    train = read(published, tmp_path / "out")["train"]
    assert train.captions == {
        "coco-train2014-000000000001": {"de": ["gut", "auch gut"]},
        "coco-train2014-000000000005": {"am": ["ok"]},
    }
    source, texts = published.folder, f"{published.folder}/{COCO}/{INDEPENDENT}"
    assert train.counts.skipped == {
        "empty line": 2, "no caption": 1, "image missing": 1, "image cannot be read": 1, "not UTF-8": 1, "text missing": 1,
        "text is UTF-16": 1, "not the name of a text": 2, "unknown language": 1, "listed twice": 1,
        "another text of the image in its language": 1,
    }  # fmt: skip
    examples = train.counts.examples
    assert examples["empty line"] == f"{texts}/de/COCO_train2014_000000000001.txt line 2"
    assert examples["no caption"] == f"{texts}/de/COCO_train2014_000000000002.txt"
    assert examples["image missing"] == f"{images}/COCO_train2014_000000000003.jpg"
    assert examples["image cannot be read"].startswith(f"{images}/COCO_train2014_000000000004.jpg: ")
    assert examples["not UTF-8"] == f"{source}/{bad} line 1"
    assert f"{source}/{gone}" in examples["text missing"]
    assert examples["text is UTF-16"] == f"{source}/{utf16}"
    assert examples["not the name of a text"] == f"{texts}/listing_train.txt line 8: './listing.txt'"
    assert examples["unknown language"] == f"{texts}/listing_train.txt line 10: xx"
    assert examples["listed twice"].startswith(f"{texts}/listing_train.txt line 11: ")

    published.image("COCO/train2014/COCO_train2014_000000000003.jpg")
    published.train("am", 6, "y", listing="other")
    again = read(published, tmp_path / "out")["train"]  # what was missing is made now that it is there
    assert {"coco-train2014-000000000003", "coco-train2014-000000000006"} < set(again.metadata)


def test_the_test_set_says_the_same_in_every_language(published, tmp_path):
    published.test(1, de=["a", "b", "c"], ja=["あ", " ", "う"], **{"fa-AF": ["x", "y", "z"]})
    published.test(2, de="d", ja="え")
    published.test(3, de=["e", "f"], ja=["お"], **{"fa-AF": ["v", "w"]})
    found = read(published, tmp_path / "out")["test"]
    assert found.captions == {"coco-train2014-000000000001": {"de": ["a", "c"], "fa-AF": ["x", "z"], "ja": ["あ", "う"]}}
    assert found.counts.skipped == {"empty line": 1, "not in every language": 1, "languages differ in their numbers of captions": 1}
    assert found.counts.examples["not in every language"].endswith("translated_alllangs has no text in fa-AF")
    assert "ja/COCO_train2014_000000000003.txt has 1" in found.counts.examples["languages differ in their numbers of captions"]
    fewer = read(published, tmp_path / "fewer", languages=("ja", "de"))["test"]
    assert fewer.captions["coco-train2014-000000000002"] == {"ja": ["え"], "de": ["d"]}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda it: (it.train("de", 9, "eins"), it.train("de", 9, "zwei", listing="val")),
            r"COCO_train2014_000000000009\.jpg is in two splits: \S*/de/COCO_\S*000000000009\.txt is listed for validation, \S* for train",
        ),
        (
            lambda it: (it.train("de", 9, "eins"), it.test(9, de="eins", ja="一")),
            r"000000000009\.jpg is in two splits: \S*translated_alllangs/de/\S* is listed for test, \S*_independent/de/\S* for train",
        ),
        (
            lambda it: (it.train("de", 9, "eins"), it.train("fa-AF", 9, "یک")),
            r"000000000009\.jpg is in two languages of train: \S*/de/COCO_\S*_000000000009\.txt and \S*/fa-AF/COCO_\S*_000000000009\.txt",
        ),
        (
            lambda it: (it.train("de", 9, "eins"), it.test(9, "val", de="eins", ja="一")),
            r"000000000009\.jpg is in two splits: \S*translated_alllangs/de/\S* is listed for validation, \S*/de/\S* for train",
        ),
        (
            lambda it: it.image("train2014/1.jpg"),
            r"has no COCO/annotations/translated_independent/listing_train.*found there: train2014\. Exp",
        ),
    ],
)
def test_an_inconsistent_download_is_refused(published, spoil, message):
    spoil(published)
    with pytest.raises(UserError, match=message):
        recipe.parts(str(published.folder), languages=recipe.LANGUAGES, shards=1, seed=0)


def test_english_goes_where_the_rule_lets_it(published, tmp_path):
    published.test(1, de="a", en="A")
    published.train("en", 1, "A")
    published.train("en", 2, "only in English")
    published.train("en", 3, "first", "second")
    published.train("hr", 3, "prva", "druga")
    train = read(published, tmp_path / "out")["train"]
    assert train.captions == {
        "coco-train2014-000000000002": {"en": ["only in English"]},
        "coco-train2014-000000000003": {"hr": ["prva", "druga"]},
    }
    assert train.metadata["coco-train2014-000000000003"]["translations"] == {"en": ["first", "second"]}
    assert train.counts.skipped == {"English of an image of the test split": 1}


def test_translations_of_what_is_trained_on(published, tmp_path):
    """Line i of each translation is caption i; one that does not fit is left out, and counted."""
    published.train("de", 1, "eins", "", "drei")
    published.test(1, "train", de=["eins", "zwei", "drei"], ja=["一", "二", "三"], am=["1", "2"], he=["א", "ב", ""], ru=["один", "", "три"])
    for number in range(10, 22):  # in all languages, in none of its own: one by lot, each as often
        published.test(number, "train", de=f"Bild {number}", ja=f"図 {number}", ru=f"рис. {number}")
    train = read(published, tmp_path / "out", languages=("de", "ja", "am", "he", "ru"))["train"]
    own = train.metadata.pop("coco-train2014-000000000001")
    assert own["captions"] == {"de": ["eins", "drei"]}
    assert own["translations"] == {"ja": ["一", "三"], "ru": ["один", "три"]}
    assert train.counts.skipped == {"empty line": 1, "translation: another number of lines": 1, "translation: empty line": 1}
    dealt = Counter(next(iter(metadata["captions"])) for metadata in train.metadata.values())
    assert dealt == {"de": 4, "ja": 4, "ru": 4}
    for metadata in train.metadata.values():
        assert len(metadata["captions"]) == 1
        assert sorted([*metadata["captions"], *metadata["translations"]]) == ["de", "ja", "ru"]
        number = metadata["file_name"].removesuffix(".jpg").rpartition("_")[2].lstrip("0")
        assert all(texts[0].endswith(number) for texts in (metadata["captions"] | metadata["translations"]).values())


def test_the_english_that_was_translated(published, tmp_path):
    published.train("de", 1, "eins", "zwei")
    published.test(1, "train", de=["eins", "zwei"], ru=["раз", "два"])
    published.train("ja", 2, "一")
    published.train("am", 3, "1")
    for path, *lines in (("a/COCO_train2014_000000000001", "one", "two"), ("b/c/COCO_train2014_000000000002", "one", "more")):
        published.text(COCO, "clean_sentences", None, f"{path}.txt", *lines)
    train = read(published, tmp_path / "out")["train"]
    translations = {metadata["file_name"][-5:]: metadata.get("translations") for metadata in train.metadata.values()}
    assert translations == {"1.jpg": {"en": ["one", "two"], "ru": ["раз", "два"]}, "2.jpg": None, "3.jpg": None}
    assert train.counts.skipped == {"translation: another number of lines": 1}
    without = read(published, tmp_path / "without", languages=("de", "ja"))["train"]
    assert without.captions == {key: train.captions[key] for key in train.captions if "am" not in train.captions[key]}
    assert not any("translations" in metadata for metadata in without.metadata.values())
    assert not without.counts.skipped


@pytest.mark.parametrize("form", ["a file per language", "a folder per language"])
def test_human_translations(published, tmp_path, form):
    published.train("de", 1, "ein Hund", "vorher nie gesagt")
    texts = {"en": ["a dog", "a cat", "a sun"], "de": ["ein Hund", "eine Katze", "eine Sonne"], "ar": ["كلب", "", "شمس"]}
    folder = published.folder / "human_translations"
    for language, lines in {**texts, "xx": ["?"]}.items():
        for number, line in enumerate(lines, 1):
            path = folder / (f"{language}.txt" if form.startswith("a file") else f"{language}/{number:04d}.txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(f"{line}\n")
    (folder / "README").touch()
    found = read(published, tmp_path / "out")
    human = found["test-human"]
    assert human.captions == {
        "human-0001": {"ar": ["كلب"], "de": ["ein Hund"], "en": ["a dog"]},
        "human-0003": {"ar": ["شمس"], "de": ["eine Sonne"], "en": ["a sun"]},
    }
    assert not human.images
    one_by_one = {"no caption": 1} if form.startswith("a folder") else {}
    assert human.counts.skipped == {"unknown language": 1, "not the name of a text": 1, "empty line": 1} | one_by_one
    assert found["train"].captions == {"coco-train2014-000000000001": {"de": ["vorher nie gesagt"]}}
    assert found["train"].counts.skipped == {"sentence of the test-human split": 1}


def test_what_is_missing_is_said(published, tmp_path, capsys):
    published.train("de", 1, "eins")
    read(published, tmp_path / "out")
    said = capsys.readouterr().err
    assert f"note: {published.folder} has no COCO/annotations/translated_independent/listing_val.txt" in said
    assert "flickr30k/entities/translated_alllangs/listing_test.txt" in said
    assert "has no human_translations/" in said
    assert "translated_alllangs/listing_train" not in said  # the publication's is empty


def test_the_draw_of_the_test_set():
    records = list(range(50))
    drawn = splits.draw(records, (5, 20), seed=1)
    assert [len(its) for its in drawn] == [5, 20, 25]
    assert sorted(itertools.chain(*drawn)) == records
    assert drawn == splits.draw(records, (5, 20), seed=1) != splits.draw(records, (5, 20), seed=2)
    assert [len(its) for its in splits.draw(records[:7], (5, 20), seed=1)] == [5, 2, 0]


def test_a_parts_name_tells_when_it_would_differ(published):
    for number in range(4):
        published.train("de", number, f"Satz {number}")
    published.test(9, "train", de="x", ja="y")

    def names() -> list[str]:
        return [part.name for part in recipe.parts(str(published.folder), languages=("de", "ja"), shards=5, seed=0)["train"]]

    before = names()
    assert before == names()
    published.train("de", 2, "Anderes", listing="none")
    published.test(9, "none", ja="z", de="x")
    published.test(20, de="Satz 1", ja="yy")  # takes a sentence from the training split
    assert [a == b for a, b in zip(before, names(), strict=True)] == [True, False, False, True, False]


def test_the_same_on_ray_and_in_threads(published, tmp_path, monkeypatch, ray_session):
    write_world(published, 9)

    def write(out: str) -> tuple[dict, dict]:
        found = recipe.parts(str(published.folder), languages=("de", "fa-AF", "en"), shards=2, seed=3)
        found = pickle.loads(pickle.dumps(found))
        counts = {
            split: write_parts(parts, str(tmp_path / out / split), Storage(), log=lambda line: None) for split, parts in found.items()
        }
        return counts, {str(path.relative_to(tmp_path / out)): path.read_bytes() for path in (tmp_path / out).rglob("*.tar")}

    on_ray = write("ray")
    monkeypatch.setattr(ray_session, "is_initialized", lambda: False)
    assert write("threads") == on_ray
    assert {path.partition("/")[0] for path in on_ray[1]} == {"train", "validation", "test"}


def test_from_object_storage(published, tmp_path, object_store, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", object_store.endpoint)
    published.train("de", 1, "eins", "zwei")
    published.text(COCO, "clean_sentences", None, "a/COCO_train2014_000000000001.txt", "one", "two")
    published.train("ja", 2, "一", listing="val")
    published.test(3, de="drei", en="three")
    published.image("human_translations/de.txt", b"vier\n")
    remote = join(object_store.bucket_uri, "globetrotter-as-published")
    storage = Storage()
    for path in published.folder.rglob("*.*"):
        storage.upload(path, join(remote, path.relative_to(published.folder).as_posix()))
    there, here = prepared(recipe, remote, tmp_path / "there"), read(published, tmp_path / "here")
    assert list(there) == ["train", "validation", "test", "test-human"]
    assert {split: its.metadata for split, its in there.items()} == {split: its.metadata for split, its in here.items()}


def test_settings_of_the_comparison():
    """They name splits that the recipe makes and languages that it has; those of the paper's figures."""
    config = DATASETS.parent / "jobs" / "configs" / "comparison" / "globetrotter.yaml"
    settings = from_command_line(GlobetrotterSettings, ["--config", str(config)], "globetrotter.py", "")
    data, text = settings.data, settings.model.text
    assert set(data.languages) == set(recipe.LANGUAGES) - {"en", "zh-Hans"}
    assert (len(recipe.LANGUAGES), len(data.languages)) == (52, 50)
    assert [*data.train, *data.validation] == ["globetrotter/train", "globetrotter/validation"]
    assert list(data.tests.values()) == ["globetrotter/test", "globetrotter/test-retrieval", "globetrotter/test-human"]
    sizes = (text.hidden_size, text.layers, text.heads, text.intermediate_size, text.vocabulary_size, text.max_tokens)
    assert sizes == (512, 4, 4, 1024, 30_000, 50)
    training = settings.training
    assert (training.epochs, training.steps, training.global_batch, training.learning_rate, training.clip_norm) == (200, None, 440, 1e-4, 1)
    assert settings.data.image.size == 224
    assert set(settings.objective.temperature.model_dump().values()) == {False, 0.1}
