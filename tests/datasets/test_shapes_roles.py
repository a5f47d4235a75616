"""Scenes for training and for tests are apart, whatever the seed, and balanced."""

import itertools
from collections import Counter
from itertools import islice
from random import Random

import pytest

from tests.datasets.recipes import recipe_module

scenes, roles = recipe_module("shapes.scenes"), recipe_module("shapes.roles")
Figures, Scene = scenes.Figures, scenes.Scene


def test_a_role_belongs_to_the_group():
    kinds = [Figures(*facts) for facts in itertools.product((1, 2), scenes.COLOURS[:4], scenes.SHAPES, (None, "small"))]
    pairs = list(itertools.combinations(kinds, 2))
    by_group: dict[str, set[str]] = {}
    for one, other in pairs:
        for scene in (Scene.of(one, "above", other), Scene.of(one, "right of", other)):
            by_group.setdefault(scene.group, set()).add(roles.role_of(scene))
    assert all(len(found) == 1 for found in by_group.values())
    shares = Counter(next(iter(found)) for found in by_group.values())
    total = shares.total()
    assert shares["test"] / total == pytest.approx(0.1, abs=0.02)
    assert shares["validation"] / total == pytest.approx(0.05, abs=0.02)


def test_scenes_of_a_role():
    drawn = {role: list(islice(roles.scenes_for(role, Random(3)), 400)) for role in ("train", "validation", "test")}
    for role, found in drawn.items():
        assert {roles.role_of(scene) for scene in found} == {role}
        assert len({scene.concept for scene in found}) == len(found)
        alone = sum(scene.second is None for scene in found)
        assert 0 < alone <= len(found) // 8
        figures = [figures for scene in found for figures in scene.figures]
        for name, values in (("colour", scenes.COLOURS), ("shape", scenes.SHAPES), ("size", (None, *scenes.SIZES))):
            counts = Counter(getattr(one, name) for one in figures)
            assert set(counts) == set(values)
            assert max(counts.values()) < 3 * min(counts.values())
    assert sum(scene.second is None for scene in drawn["train"]) == 50


def test_scenes_without_sizes_and_of_two_kinds():
    found = list(islice(roles.scenes_for("train", Random(0), sized=False, singles=False), 60))
    assert not any(scene.sized for scene in found)
    assert all(scene.second is not None for scene in found)
