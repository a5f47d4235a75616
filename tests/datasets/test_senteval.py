"""Our own evaluation sets: what follows from what, balance, nothing that gives labels away; and the rated sentences."""

import io
import tarfile
import zipfile
from collections import Counter, defaultdict
from random import Random

import numpy as np
import pytest

from raysys.errors import UserError
from raysys.evaluation.senteval.tasks import find_tasks, read_task, task_named
from raysys.storage import Storage
from tests.datasets.cache import CACHE
from tests.datasets.recipes import recipe_module

recipe = recipe_module("senteval.recipe")
facts = recipe_module("senteval.facts")
drawn = recipe_module("senteval.drawn")
rated = recipe_module("senteval.rated")
scenes = recipe_module("shapes.scenes")
Figures, Scene = scenes.Figures, scenes.Scene

RING, STAR = Figures(2, "red", "ring"), Figures(1, "blue", "star")
SMALL_RING = Figures(2, "red", "ring", "small")
PREMISE = Scene(SMALL_RING, "above", STAR)


@pytest.mark.parametrize(
    ("hypothesis", "expected"),
    [
        (PREMISE, "entailment"),
        (Scene.of(STAR, "below", SMALL_RING), "entailment"),
        (Scene(RING, "above", STAR), "entailment"),
        (Scene(STAR), "entailment"),
        (Scene(SMALL_RING), "entailment"),
        (Scene(Figures(1, "blue", "star", "large")), "neutral"),
        (Scene(RING, "above", Figures(1, "blue", "star", "small")), "neutral"),
        (Scene(Figures(2, "red", "ring", "large")), "contradiction"),
        (Scene(Figures(1, "red", "ring")), "contradiction"),
        (Scene(Figures(1, "red", "star")), "contradiction"),
        (Scene.of(RING, "below", STAR), "contradiction"),
        (Scene.of(RING, "left of", STAR), "contradiction"),
        (Scene(Figures(1, "red", "ring"), "above", Figures(2, "blue", "star")), "contradiction"),
    ],
)
def test_judgements(hypothesis, expected):
    assert facts.judge(PREMISE, hypothesis) == expected


@pytest.mark.parametrize(
    ("one", "other", "common", "share"),
    [
        (Scene(RING, "above", STAR), Scene.of(STAR, "below", RING), 7, 1),
        (Scene(RING, "above", STAR), Scene.of(STAR, "above", RING), 6, 6 / 7),
        (Scene(RING, "above", STAR), Scene(Figures(2, "blue", "ring"), "above", Figures(1, "red", "star")), 5, 5 / 7),
        (Scene(RING, "above", STAR), Scene(Figures(3, "pink", "heart"), "left of", Figures(4, "black", "cross")), 0, 0),
        (Scene(RING), Scene(STAR), 0, 0),
        (PREMISE, Scene(RING), 3, 6 / 11),
        (PREMISE, PREMISE, 8, 1),
    ],
)
def test_similarity_by_hand(one, other, common, share):
    assert facts.common_facts(one, other) == facts.common_facts(other, one) == common
    assert facts.similarity(one, other) == pytest.approx(share)


def test_changes_change_one_fact_or_keep_the_words():
    random = Random(0)
    for _ in range(300):
        scene = facts.draw_scene(random)
        assert facts.common_facts(scene, facts.altered(scene, random)) >= 6
        other = facts.exchanged(scene, random)
        for name in facts.ATTRIBUTES:
            assert sorted(map(str, (getattr(one, name) for one in scene.figures))) == sorted(
                map(str, (getattr(one, name) for one in other.figures))
            )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Our own sets in three languages, on disk."""
    folder = tmp_path_factory.mktemp("senteval")
    for name, lines in recipe.own_sets(("en", "de", "ja"), 0):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_all_tasks_are_found_and_balanced(folder):
    kinds = ("MRPC-shapes-{}", "SICK-shapes-{}", "SST5-shapes-{}-colour", "SST5-shapes-{}-count", "SST5-shapes-{}-shape")
    names = sorted(kind.format(language) for kind in kinds for language in ("en", "de", "ja"))
    assert find_tasks(str(folder))[8:] == tuple(names)
    for name in names:
        parts, classes = read_task(task_named(name), str(folder), Storage())
        assert classes == {"MRPC": 2, "SICK": 3}.get(name.split("-")[0], 4 if name.endswith("count") else 8)
        for part in parts.values():
            assert len(set(np.bincount(part.labels))) == 1  # chance is one by the number of classes
            assert len(set(zip(part.first, part.second or part.first, strict=True))) == len(part)


def test_splits_share_no_figures():
    for split_pairs in (drawn.paraphrases(0), drawn.entailment(0)):
        groups = [{pair.first.scene.without_sizes().group for pair in pairs} for pairs in split_pairs.values()]
        assert sum(map(len, groups)) == len(set().union(*groups))
    groups = [{item.statement.scene.group for item in items} for items in drawn.described(0).values()]
    assert sum(map(len, groups)) == len(set().union(*groups))


def test_labels_are_true():
    for pairs in drawn.entailment(0).values():
        assert all(facts.judge(pair.first.scene, pair.second.scene) == pair.label for pair in pairs)
    for pairs in drawn.paraphrases(0).values():
        assert all((pair.first.scene == pair.second.scene) == pair.label for pair in pairs)
        assert all(pair.first.text("en") != pair.second.text("en") for pair in pairs)


@pytest.mark.parametrize("language", ["en", "de", "ja"])
def test_neither_length_nor_a_word_tells_what_follows(folder, language):
    parts, _ = read_task(task_named(f"SICK-shapes-{language}"), str(folder), Storage())
    labels = np.concatenate([part.labels for part in parts.values()])
    for side in ("first", "second"):
        texts = [text for part in parts.values() for text in getattr(part, side)]
        tokens = [text if language == "ja" else text.rstrip(".").split() for text in texts]
        lengths = np.array([len(its) for its in tokens])
        spread = lengths.std() / np.sqrt(len(texts) / 3)
        means = [lengths[labels == label].mean() for label in range(3)]
        assert max(means) - min(means) < 4 * spread
        with_word: dict[str, Counter[int]] = defaultdict(Counter)
        for its, label in zip(tokens, labels.tolist(), strict=True):
            for word in set(its):
                with_word[word][label] += 1
        for word, counts in with_word.items():
            n = sum(counts.values())
            if n >= 50:
                assert max(counts.values()) / n < 1 / 3 + 4.5 * np.sqrt(2 / 9 / n), (word, counts)


def test_similarity_is_even_and_in_the_layout_of_sts(folder):
    scores = (folder / "STS/shapes-de/STS.gs.shapes.txt").read_text().splitlines()
    assert Counter(scores) == {f"{5 * common / 7:.3f}": 100 for common in range(8)}
    rows = [line.split("\t") for line in (folder / "STS/shapes-de/STS.input.shapes.txt").read_text().splitlines()]
    assert len(rows) == 800
    assert all(len(row) == 2 and row[0] != row[1] for row in rows)
    assert scores == (folder / "STS/shapes-en/STS.gs.shapes.txt").read_text().splitlines()  # the same facts in every language


def test_attributes_are_those_of_the_kind_a_sentence_is_about(folder):
    parts, _ = read_task(task_named("SST5-shapes-en-colour"), str(folder), Storage())
    for text, label in zip(parts["dev"].first, parts["dev"].labels, strict=True):
        words = [word for word in text.removeprefix("The picture shows ").split() if word in scenes.COLOURS]
        assert len(words) == 2
        assert words[0] == scenes.COLOURS[label]


def test_the_seed_decides(folder):
    again = {name: "".join(f"{line}\n" for line in lines) for name, lines in recipe.own_sets(("ja",), 0)}
    assert all((folder / name).read_text() == text for name, text in again.items())
    assert drawn.paraphrases(1) != drawn.paraphrases(0)
    assert drawn.described(1) != drawn.described(0)


# ---- what people rated ----


def test_what_is_clear_is_sorted_and_the_rest_left_out():
    text = "1\t0.6\tgood  one\r\n2\t-0.5\tmiddling\r\n3\t-3\tbad\r\n4\t-0.9\tgood one\r\n5\t0.51\tcafé\r\n"
    assert rated.by_polarity(text, "x") == (["good one", "café"], ["bad"])
    for line in ("7\tgood\tx", "7\t1.0"):
        with pytest.raises(UserError, match="x, line 2: an id, a rating and a sentence were expected"):
            rated.by_polarity(f"1\t1\ta\n{line}\n", "x")


@pytest.mark.parametrize("damage", ["no zip", "no member", "cut"])
def test_another_file_is_not_the_package(damage, tmp_path):
    path = tmp_path / "package.zip"
    path.write_bytes(b"PK nothing")
    if damage != "no zip":
        inner = io.BytesIO()
        with tarfile.open(fileobj=inner, mode="w:gz"):
            pass
        content = inner.getvalue() if damage == "no member" else inner.getvalue()[:5]
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(rated._INNER, content)
    with pytest.raises(UserError, match=r"package\.zip is not the source distribution of vaderSentiment 0\.5"):
        rated.read_rated(path)


def test_the_real_sentences():
    """Counts of the card."""
    real = {
        name: content.decode()
        for name, content in recipe.files(CACHE, languages=("en",))
        if name.partition("/")[0] in ("MR-rated", "CR-rated")
    }
    counts = {name: len(text.splitlines()) for name, text in real.items()}
    assert counts == {
        "MR-rated/rt-polarity.pos": 4981,
        "MR-rated/rt-polarity.neg": 5060,
        "CR-rated/custrev.pos": 1719,
        "CR-rated/custrev.neg": 1216,
    }
    assert "classic cinema served up with heart and humor\n" in real["MR-rated/rt-polarity.pos"]
    assert "Effective but too tepid biopic\n" in real["MR-rated/rt-polarity.neg"]
    assert "well worth the money.\n" in real["CR-rated/custrev.pos"]
