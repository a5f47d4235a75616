"""Questions and statements about two pictures in the drawn world's languages: hand-checked, and different for different facts."""

import itertools
import typing
import unicodedata

import pytest

from tests.datasets.recipes import recipe_module
from tests.datasets.shapes_frames import FRAMES

scenes, grammar, base = recipe_module("shapes.scenes"), recipe_module("shapes.grammar"), recipe_module("shapes.languages.base")
Figures, Reading, Scene = scenes.Figures, scenes.Reading, scenes.Scene

ARROWS_AND_RING = Reading(Figures(2, "pink", "arrow", "large"), "above", Figures(1, None, "ring"))
CASES = [
    ("colour", Reading(Figures(1, None, "star"))),
    ("colour", Reading(Figures(3, None, "ring"))),
    ("shape", Reading(Figures(2, "red", None))),
    ("shape", Reading(Figures(1, "green", None, "small"))),
    ("count", Reading(Figures(1, "blue", "star"))),
    ("count", Reading(Figures(2, "orange", "cross"))),
    ("exists", ARROWS_AND_RING),
    ("exists", Reading(Figures(1, "red", "heart"))),
    ("what", Reading(Figures(1, None, None), "left of", Figures(2, "black", "cross"))),
    ("left", ARROWS_AND_RING),
    ("right", Reading(Figures(1, "orange", "arrow"))),
    ("both", Reading(Figures(3, "green", "star"))),
    ("one", Reading(Figures(1, "blue", "circle"), "below", Figures(3, "black", "heart"))),
    ("more left", Reading(Figures(1, None, "ring"))),
    ("more right", Reading(Figures(1, "yellow", None))),
    (None, Reading(Figures(2, "red", None), "left of", Figures(1, None, "star", "small"))),
    ("sentence", Reading(Figures(3, None, "heart"), "below", Figures(1, "pink", None))),
]
SPEAKING = [tag for tag, language in grammar.LANGUAGES.items() if language.more]


def test_the_languages_of_the_tasks_have_all_frames():
    assert set(SPEAKING) == set(FRAMES) >= {"en", "de", "fr", "ja", "zh-Hans", "id", "cs"}
    for tag in SPEAKING:
        assert set(grammar.LANGUAGES[tag].more.frames) == set(typing.get_args(base.Frame))


@pytest.mark.parametrize("tag", FRAMES)
def test_sentences_written_by_hand(tag):
    language = grammar.LANGUAGES[tag]
    expected = [unicodedata.normalize("NFC", line.strip()) for line in FRAMES[tag].strip().splitlines()]
    said = [language.say(frame, it) if frame in base.Frame.__args__ else language.describe(it, frame == "sentence") for frame, it in CASES]
    assert said == expected


@pytest.mark.parametrize("tag", SPEAKING)
def test_different_facts_are_said_in_different_words(tag):
    language = grammar.LANGUAGES[tag]
    every = [
        Figures(*facts) for facts in itertools.product((1, 3), (None, "red", "pink"), (None, "star", "ring"), (None, "small", "large"))
    ]
    for frame in ("exists", "left", "right", "both", "one"):
        assert len({language.say(frame, Reading(figures)) for figures in every}) == len(every)
    kinds = [figures for figures in every if figures.count == 3]
    for frame in ("colour", "count", "more left", "more right"):
        texts = {language.say(frame, Reading(figures)) for figures in kinds}
        assert len(texts) == len(kinds)
        assert all(text == unicodedata.normalize("NFC", " ".join(text.split())) for text in texts)


def test_what_a_scene_shows():
    scene = Scene.of(Figures(2, "red", "heart", "small"), "left of", Figures(1, "blue", "star"))
    hearts, star = scene.figures
    true = [
        Reading(hearts),
        Reading(Figures(2, "red", None)),
        Reading(Figures(2, None, "heart", "small")),
        Reading(hearts, "left of", star),
        Reading(star, "right of", Figures(2, None, None)),
        Reading(Figures(2, "red", "heart"), "left of", Figures(1, None, "star")),
    ]
    untrue = [
        Reading(Figures(1, "red", "heart")),
        Reading(Figures(2, "blue", None)),
        Reading(Figures(1, "blue", "star", "large")),
        Reading(star, "left of", hearts),
        Reading(hearts, "above", star),
        Reading(hearts, "left of", Figures(2, "blue", "star")),
    ]
    assert [scene.shows(said) for said in true + untrue] == [True] * len(true) + [False] * len(untrue)
    assert not Scene.of(hearts).shows(Reading(hearts, "left of", star))
