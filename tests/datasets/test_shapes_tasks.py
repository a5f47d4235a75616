"""The five tasks about the drawn world: labels are true, nothing is to be guessed from one side alone, and no test scene is trained on."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from raysys.errors import UserError
from tests.datasets.recipes import recipe_module

recipe, streams = recipe_module("shapes_tasks.recipe"), recipe_module("shapes_streams.recipe")
entailment, questions = recipe_module("shapes_tasks.entailment"), recipe_module("shapes_tasks.questions")
two_images, published = recipe_module("shapes_tasks.two_images"), recipe_module("shapes_tasks.published")
scenes, grammar, roles = recipe_module("shapes.scenes"), recipe_module("shapes.grammar"), recipe_module("shapes.roles")
Figures, Reading, Scene = scenes.Figures, scenes.Reading, scenes.Scene
LANGUAGES = recipe.LANGUAGES
SIZES = {"train": 900, "validation": 12, "test": 900}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, dict]:
    """Split → key → json, of the smallest set."""
    found: dict[str, dict] = {}
    for sample in recipe.samples(tmp_path_factory.mktemp("cache"), seed=0, languages=LANGUAGES, count=recipe.LEAST):
        assert (sample.image is not None) == (sample.split == "images")
        assert sample.key not in found.setdefault(sample.split, {})
        found[sample.split][sample.key] = sample.metadata
    return found


def scene_of(facts):
    first, *rest = (Figures(**figures) for figures in facts["figures"])
    return Scene.of(first, facts["relation"], rest[0]) if rest else Scene.of(first)


def test_english_for_training_and_every_language_for_tests(made):
    tests = [f"{task}-{language}" for task in ("xvnli-test", "xgqa-testdev", "marvl-test", "xflickrco-test") for language in LANGUAGES]
    english = [
        *("xvnli-train-en", "xvnli-validation-en", "xgqa-train-en", "xgqa-val-en"),
        *("nlvr2-train-en", "nlvr2-dev-en", "flickr30k-train-en", "flickr30k-validation-en"),
    ]
    translated = ["mmt-train", "mmt-validation", "mmt-test-2016-shapes", "mmt-test-2017-ambiguous"]
    assert sorted(made) == sorted([*tests, *english, *translated, "images"])
    assert [len(made[split]) for split in ("xvnli-train-en", "xgqa-train-en", "nlvr2-train-en", "mmt-train")] == [78, 80, 80, 80]
    assert set(next(iter(made["mmt-train"].values()))["captions"]) == {"en", "de", "fr", "cs"}
    for task in ("xvnli-test", "xgqa-testdev", "marvl-test", "xflickrco-test"):
        label = {"xvnli-test": "gold_label", "xgqa-testdev": "answer", "marvl-test": "label", "xflickrco-test": "id"}[task]
        asked = {
            language: [(record["id"], record["images"], record["record"][label]) for record in made[f"{task}-{language}"].values()]
            for language in LANGUAGES
        }
        assert all(asked[language] == asked["en"] for language in LANGUAGES)
        assert len({json.dumps([record["texts"] for record in made[f"{task}-{language}"].values()]) for language in LANGUAGES}) == 7


def test_every_picture_is_there_and_named(made):
    named = {key for split, records in made.items() if split != "images" for record in records.values() for key in record.get("images", [])}
    named |= {record["group"] for split, records in made.items() if split.startswith("mmt") for record in records.values()}
    assert named == set(made["images"])
    for key, picture in made["images"].items():
        figures = [row for row in picture["boxes"] if row[0] >= 0]
        assert len(figures) == sum(one.count for one in scene_of(picture["scene"]).figures)
        assert ("sheet" in picture) == key.startswith("xvnli") == (picture["boxes"][-1][0] == -1)
        for _, *box in figures if "sheet" in picture else ():
            left, top, right, bottom = picture["boxes"][-1][1:]
            assert box[2] <= left or box[0] >= right or box[3] <= top or box[1] >= bottom  # nothing is half hidden


def test_no_scene_of_a_test_is_trained_on(made, tmp_path):
    groups: dict[str, set[str]] = {"train": set(), "validation": set(), "test": set()}
    for key, picture in made["images"].items():
        tested, kept_back = "test" in key or key.startswith("marvl"), "-val" in key or key.startswith("dev")
        groups["test" if tested else "validation" if kept_back else "train"].add(picture["group"])
    for seed in (0, 5):
        for sample in streams.samples(tmp_path, seed=seed, languages=("en", "de"), count=100):
            groups[sample.split if sample.split in groups else "train"].add(sample.metadata["group"])
    assert all(groups.values())
    assert not groups["test"] & (groups["train"] | groups["validation"])
    assert not groups["validation"] & groups["train"]


def judge(picture, said) -> str:
    """What may lie behind the sheet is another kind, in one direction from everything that is seen."""
    assert picture.sheet in (("left", "right") if picture.scene.relation == "left of" else ("top", "bottom"))
    beyond = {"left": "left of", "right": "right of", "top": "above", "bottom": "below"}[picture.sheet]
    seen = {figures.binding: figures for figures in picture.scene.figures}
    if picture.scene.shows(said):
        return "entailment"
    assert seen[said.second.binding] == said.second
    assert said.first.binding != said.second.binding
    if said.first.binding not in seen and said.relation == beyond:
        return "neutral"
    # In the other direction everything is in view, and of what is seen nothing is hidden.
    assert said.relation == scenes.INVERSE[beyond] or said.first.binding in seen
    return "contradiction"


def test_hypotheses_are_what_they_are_labelled():
    random = Random(0)
    kinds: Counter[str] = Counter()
    pointing: Counter[tuple[str, bool]] = Counter()
    for number, scene in zip(range(300), roles.scenes_for("train", random, sized=False, singles=False), strict=False):
        picture = published.Picture(f"p{number}", scene, random.choice(entailment.ENDS[scene.relation]))
        towards = entailment.TOWARDS[picture.sheet]
        for label, said in entailment.hypotheses(picture, "train", random).items():
            assert judge(picture, said) == label
            pointing[label, said.relation == towards] += 1
            assert roles.role_of(Scene.of(said.first, said.relation, said.second)) == "train" or label == "contradiction"
            if label == "contradiction":
                kinds[
                    "exchanged"
                    if said.first in scene.figures
                    else "number"
                    if said.first.binding in {f.binding for f in scene.figures}
                    else "stranger"
                ] += 1
    assert min(kinds[kind] for kind in ("exchanged", "number", "stranger")) > 20
    # Whoever sees only whether the relation points to the sheet is right half the time.
    assert sum(
        max(pointing[label, way] for label in ("entailment", "neutral", "contradiction")) for way in (True, False)
    ) / 900 == pytest.approx(0.5, abs=0.03)


def bag_of_words(train, test) -> float:
    """Accuracy on `test` of a logistic regression on words, trained on `train`; both lists of (text, label)."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    vectors = CountVectorizer(token_pattern=r"\S+")
    model = LogisticRegression(max_iter=300, C=0.1).fit(vectors.fit_transform([text for text, _ in train]), [label for _, label in train])
    return model.score(vectors.transform([text for text, _ in test]), [label for _, label in test])


def lines(of, path) -> list[dict]:
    return [json.loads(line) for line in of.files[path].splitlines()]


def test_text_alone_tells_nothing_of_entailment():
    task = entailment.publish(SIZES, ("en", "de"), 0)
    train, test = (lines(task, f"XVNLI/annotations/en/{split}.jsonl") for split in ("train", "test"))
    for records in (train, test):
        labels = Counter((record["Flikr30kID"], record["gold_label"]) for record in records)
        assert set(labels.values()) == {1}  # every picture has one hypothesis of each class: the picture alone tells nothing either
        assert len(labels) == 3 * len({picture for picture, _ in labels})
    texts = [[(record["sentence2"], record["gold_label"]) for record in records] for records in (train, test)]
    assert bag_of_words(*texts) == pytest.approx(1 / 3, abs=0.05)


def test_neither_statement_nor_pictures_tell_anything_alone():
    task = two_images.publish(SIZES, ("en", "de"), 0)
    train, test = lines(task, "nlvr2/annotations/train.jsonl"), lines(task, "marvl-en.jsonl")
    truth = Counter()
    for record in train:
        truth["pair", record["identifier"].rpartition("-")[0], record["label"]] += 1
        family, _, which = record["identifier"].split("-", 1)[1].split("-")
        truth["statement", (family, which), record["label"]] += 1
    assert set(truth.values()) == {1}
    assert Counter(label for _, _, label in truth) == {"True": len(truth) // 2, "False": len(truth) // 2}
    assert bag_of_words([(r["sentence"], r["label"]) for r in train], [(r["caption"], str(r["label"])) for r in test]) == pytest.approx(
        0.5, abs=0.02
    )


def test_statements_about_two_pictures_are_labelled_truly():
    random = Random(1)
    frames: Counter[str] = Counter()
    for _ in range(150):
        pairs, statements = two_images.family("train", random)
        for place, (left, right) in enumerate(pairs):
            assert roles.role_of(left) == roles.role_of(right) == "train"
            for which, one in enumerate(statements):
                sums = [
                    sum(
                        f.count
                        for f in scene.figures
                        if (one.said.first.colour, one.said.first.shape) in ((f.colour, None), (None, f.shape))
                    )
                    for scene in (left, right)
                ]
                shown = [left.shows(one.said), right.shows(one.said)]
                expected = {
                    "left": shown[0],
                    "right": shown[1],
                    "both": shown == [True, True],
                    "one": sum(shown) == 1,
                    "more left": sums[0] > sums[1],
                    "more right": sums[1] > sums[0],
                }
                assert expected[one.frame] == one.is_true((left, right)) == (place == which)
                frames[one.frame] += 1
    assert set(frames) == {"left", "right", "both", "one", "more left", "more right"}


def test_answers_are_true_and_balanced():
    random = Random(2)
    answers: Counter[str] = Counter()
    for _, scene in zip(range(400), roles.scenes_for("train", random), strict=False):
        asked = questions.questions(scene, random)
        assert len({(frame, about) for frame, about, _ in asked}) == 4
        for frame, about, answer in asked:
            answers[answer] += 1
            first = about.first
            fitting = [f for f in scene.figures if first.colour in (None, f.colour) and first.shape in (None, f.shape)]
            if frame == "exists":
                assert scene.shows(about) == (answer == "yes")
            elif frame == "what":
                [found] = [f for f in scene.figures if f != about.second]
                assert scene.shows(Reading(found, about.relation, about.second))
                assert found.shape == answer
            else:
                [found] = fitting  # nothing else could be meant
                assert answer == str({"colour": found.colour, "shape": found.shape, "count": found.count}[frame])
    assert set(answers) == set(questions.ANSWERS)
    assert answers["yes"] / (answers["yes"] + answers["no"]) == pytest.approx(0.5, abs=0.1)
    assert answers.most_common(1)[0][1] / answers.total() < 0.2  # the answer that is given most often
    for group in (scenes.COLOURS, scenes.SHAPES, ("1", "2", "3", "4")):
        counts = [answers[answer] for answer in group]
        assert max(counts) < 2 * min(counts)


def test_captions_of_a_split_fit_one_picture(made):
    for split in ("flickr30k-train-en", *(f"xflickrco-test-{language}" for language in LANGUAGES)):
        texts = [text for record in made[split].values() for found in record["texts"].values() for text in found]
        assert len(set(texts)) == len(texts)
        for record in made[split].values():
            scene = scene_of(made["images"][record["images"][0]]["scene"])
            for language, found in record["texts"].items():
                assert set(found) <= {grammar.caption(scene, language, variant) for variant in grammar.variants(scene)}


def test_a_picture_tells_what_the_source_leaves_out(made):
    shares = {}
    for split in ("mmt-train", "mmt-test-2016-shapes", "mmt-test-2017-ambiguous"):
        whole = 0
        for record in made[split].values():
            scene, captions = scene_of(made["images"][record["group"]]["scene"]), record["captions"]
            full = {grammar.caption(scene, "en", variant): variant for variant in grammar.variants(scene)}
            [variant] = [one for one in full.values() if grammar.caption(scene, "de", one) == captions["de"][0]]
            assert captions["fr"] == [grammar.caption(scene, "fr", variant)]
            whole += captions["en"][0] in full
        shares[split] = whole / len(made[split])
    assert shares["mmt-test-2017-ambiguous"] == 0
    assert shares["mmt-train"] == pytest.approx(0.5, abs=0.15)
    said = Reading(Figures(2, "red", "heart"), "above", Figures(1, "blue", "star"))
    vague = {grammar.LANGUAGES["en"].describe(one, False) for one in recipe_module("shapes_tasks.translation").vaguer(said)}
    assert vague == {
        "two red figures above a blue star",
        "two hearts above a blue star",
        "two red hearts above a blue figure",
        "two red hearts above a star",
    }


def test_same_seed_same_files_and_pictures():
    sizes = {"train": 24, "validation": 8, "test": 8}
    for task in recipe.TASKS:
        one, again, other = (task.publish(sizes, ("en", "fr"), seed) for seed in (0, 0, 1))
        assert one == again
        assert one.files.keys() == other.files.keys()
        assert one.files != other.files
        picture = one.pictures[-1]
        assert picture.sample(0) == picture.sample(0)
        assert picture.sample(0).image != replace(picture, key="other").sample(0).image


@pytest.mark.parametrize("count", [10, 10**6])
def test_counts_that_cannot_be_made_are_refused(count):
    with pytest.raises(UserError, match="--samples"):
        next(recipe.samples(Path("unused"), seed=0, languages=LANGUAGES, count=count))


def test_without_a_language_to_translate_into_there_is_no_translation():
    assert not recipe_module("shapes_tasks.translation").publish(SIZES, ("en", "ja"), 0).files
