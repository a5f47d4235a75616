"""Maps of scenes: which sentences are taken, and that what belongs together lies together."""

import numpy as np
import pytest

from raysys.errors import RunFailed
from raysys.evaluation.scenes import choose_scenes, scene_map
from raysys.evaluation.structure import clusters

NAMES = ["coast", "plaza", "shoe shop"]


def world(seed=0, each=12):
    generator = np.random.default_rng(seed)
    centres = 6 * np.eye(16)[:3]
    vectors = np.concatenate([centre + generator.normal(size=(each, 16)) for centre in centres])
    scenes = [name for name in NAMES for _ in range(each)]
    return vectors.astype(np.float32), [f"{scene} {i}" for i, scene in enumerate(scenes)], scenes


def test_scenes_lie_apart_on_the_map():
    vectors, texts, scenes = world()
    got = scene_map(vectors, texts, scenes)
    assert [(point.text, point.scene) for point in got.points] == list(zip(texts, scenes, strict=True))
    points = np.array([(point.x, point.y) for point in got.points])
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert [scenes[row] for row in distances.argmin(axis=1)] == scenes
    expected = clusters(vectors, scenes)
    assert (got.intra, got.inter) == (expected.intra, expected.inter)
    assert got.intra > 0.5 > got.inter
    assert list(got.scenes) == NAMES
    assert got.scenes["plaza"] == expected.groups["plaza"]


def test_it_is_the_same_by_seed_and_for_any_length_of_the_vectors():
    vectors, texts, scenes = world()
    one = scene_map(vectors, texts, scenes, seed=3)
    assert scene_map(vectors, texts, scenes, seed=3) == one
    assert scene_map(8 * vectors, texts, scenes, seed=3).points == one.points


@pytest.mark.parametrize("vectors", [np.zeros((4, 3)), np.full((4, 3), 0.7), np.ones((4, 1)), np.eye(4)])
def test_few_or_constant_sentences_give_a_map_too(vectors):
    got = scene_map(vectors, ["a", "b", "c", "d"], ["x", "x", "y", "y"])
    assert np.isfinite([(point.x, point.y) for point in got.points]).all()
    assert np.isfinite([got.intra, got.inter, *got.scenes["x"]]).all()


@pytest.mark.parametrize("scenes", [["x", "x", "x", "x"], ["x", "x", "x", "y"]])
def test_too_few_scenes(scenes):
    with pytest.raises(ValueError, match="two scenes of two"):
        scene_map(np.eye(4), ["a", "b", "c", "d"], scenes)


def test_vectors_that_are_not_finite():
    with pytest.raises(RunFailed, match="not finite"):
        scene_map(np.full((4, 2), np.nan), ["a", "b", "c", "d"], ["x", "x", "y", "y"])


def test_scenes_are_drawn_by_seed():
    texts = [f"{scene} {i}" for scene in "abcdefg" for i in range(8)]
    scenes = [text[0] for text in texts]
    rows = choose_scenes(texts, scenes, count=3, each=6)
    assert len(rows) == len(set(rows)) == 18
    names = [scenes[row] for row in rows]
    assert {name: names.count(name) for name in names} == dict.fromkeys(names, 6)
    assert names == sorted(names, key=names.index)
    assert choose_scenes(texts, scenes, count=3, each=6) == rows
    assert len({frozenset(scenes[row] for row in choose_scenes(texts, scenes, 3, seed=seed)) for seed in range(20)}) > 3


def test_sentences_of_several_scenes_and_small_scenes_are_left_out():
    texts = ["sea", "sand", "sand", "both", "both", "square", "market", "shoes", "none"]
    scenes = ["coast", "coast", "coast", "coast", "plaza", "plaza", "plaza", "shop", None]
    rows = choose_scenes(texts, scenes, least=2)
    assert {texts[row] for row in rows} == {"sea", "sand", "square", "market"}
    assert len(rows) == 4
    assert choose_scenes(texts, scenes, least=3) == []
    assert choose_scenes([], []) == []
