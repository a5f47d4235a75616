"""Cached image vectors: those that the network gives, computed once, and never taken for those of another network."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from raysys.data.features import FeatureCache
from raysys.data.images import ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.samples import Samples
from raysys.shards.layout import Layout
from raysys.training.features import FeatureExtractor, cached_features
from raysys.training.settings import TrainingSettings
from tests.training.pictures import small_samples
from tests.training.worlds import FEATURES, build, model_settings, objective, tiny_backbone

COUNT, VIEWS = 40, 3  # more pictures than one task takes
IMAGE = ImagePreprocessorSettings(size=32)
TINY = {"image": "tiny", "views": "as usual"}
"""What the caller says of the networks."""


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("features")


@pytest.fixture(scope="module")
def samples(root) -> Samples:
    return small_samples(root / "train", COUNT)


@pytest.fixture(scope="module")
def system(root) -> Any:
    return functools.partial(build, model_settings(tiny_backbone(root / "backbone")), objective())


def compute(samples: Samples, system: Any, root: Path, lines: list[str], key: dict[str, Any], **settings: Any) -> FeatureCache:
    training = TrainingSettings(workers=2, **settings)
    return cached_features(samples, system, IMAGE, VIEWS, training, str(root / "image-vectors"), key, lines.append)


@pytest.fixture(scope="module")
def computed(ray_session, samples, system, root) -> tuple[FeatureCache, list[str]]:
    lines: list[str] = []
    return compute(samples, system, root, lines, TINY), lines


def test_vectors_are_those_of_the_network(computed, samples, system):
    cache, lines = computed
    assert cache.shape == (COUNT, VIEWS, FEATURES)
    assert lines[0] == f"computing image vectors once: {COUNT} pictures, {VIEWS} views each"
    assert lines[-1].endswith(f"kept in {cache.uri}")
    preprocess, network = ImagePreprocessor(IMAGE), system().eval().image
    pictures = [preprocess(samples.picture(sample)[1]) for sample in samples.read(np.arange(COUNT))]
    with torch.inference_mode():
        expected = network(torch.stack(pictures)).numpy()
    found = cache.read(np.arange(COUNT))
    np.testing.assert_allclose(found[:, 0], expected, rtol=2e-3, atol=1e-4)
    assert np.abs(found[:, 1] - found[:, 0]).mean() > 1e-3
    assert np.abs(found[:, 2] - found[:, 1]).mean() > 1e-3


def test_the_other_views_are_drawn_by_seed_and_sample(ray_session, computed, samples, system):
    task = {"id": np.arange(32, COUNT)}
    again, other = (FeatureExtractor(samples, system, IMAGE, VIEWS, seed) for seed in (0, 1))
    first = again(task)["vectors"]
    again({"id": np.arange(8)})
    assert first.dtype == np.float16
    np.testing.assert_array_equal(again(task)["vectors"], first), "whatever was drawn before"
    different = other(task)["vectors"]
    np.testing.assert_array_equal(different[:, 0], first[:, 0])
    assert np.abs(different[:, 1] - first[:, 1]).mean() > 1e-3


def test_they_are_computed_once(computed, samples, system, root):
    cache, _ = computed
    lines: list[str] = []
    # Neither how many workers compute nor how they train changes them.
    again = compute(samples, system, root, lines, TINY, learning_rate=0.5, zero_stage=3)
    assert lines == []
    assert again.uri == cache.uri


def test_whatever_they_depend_on_gives_another_file(computed, samples, system, root, monkeypatch):
    cache, _ = computed
    asked: list[str] = []

    def pretend(*arguments: Any) -> tuple[np.ndarray, dict[int, str]]:
        asked.append("computed")
        return np.zeros((COUNT, VIEWS, FEATURES), np.float16), {}

    monkeypatch.setattr("raysys.training.features._compute", pretend)
    uris = {cache.uri}
    uris.add(compute(samples, system, root, [], TINY | {"image": "another"}).uri)
    uris.add(compute(samples, system, root, [], TINY | {"views": "darker"}).uri)
    uris.add(compute(samples, system, root, [], TINY, seed=5).uri)
    uris.add(compute(Samples(samples.manifests, ["de"], samples.storage), system, root, [], TINY).uri)
    uris.add(compute(Samples(samples.manifests, (), samples.storage, Layout(image_member="png")), system, root, [], TINY).uri)
    uris.add(compute(small_samples(root / "fewer", 39), system, root, [], TINY).uri)
    bigger = ImagePreprocessorSettings(size=48)
    training = TrainingSettings(workers=2)
    for views, image in ((VIEWS + 1, IMAGE), (VIEWS, bigger)):
        folder = str(root / "image-vectors")
        uris.add(cached_features(samples, system, image, views, training, folder, TINY, lambda line: None).uri)
    assert len(uris) == 9
    assert len(asked) == 8
