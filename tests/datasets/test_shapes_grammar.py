"""The grammar of the drawn world: hand-checked sentences, and no two concepts with the same caption."""

import itertools
import unicodedata

import pytest

from raysys.shards.languages import normalise_language, script
from tests.datasets.recipes import recipe_module
from tests.datasets.shapes_sentences import SENTENCES

scenes, grammar = recipe_module("shapes.scenes"), recipe_module("shapes.grammar")
Figures, Scene, Variant = scenes.Figures, scenes.Scene, grammar.Variant

HEARTS_AND_STAR = Scene.of(Figures(2, "red", "heart", "small"), "left of", Figures(1, "blue", "star"))
CIRCLE_AND_ARROWS = Scene.of(Figures(1, "orange", "circle"), "below", Figures(3, "blue", "arrow", "large"))
CASES = [
    (HEARTS_AND_STAR, Variant(sizes=True, inverse=False, sentence=False)),
    (HEARTS_AND_STAR, Variant(sizes=True, inverse=True, sentence=False)),
    (CIRCLE_AND_ARROWS, Variant(sizes=True, inverse=False, sentence=True)),
    (CIRCLE_AND_ARROWS, Variant(sizes=True, inverse=True, sentence=True)),
    (Scene.of(Figures(4, "green", "ring", "small")), Variant(sizes=True, inverse=False, sentence=True)),
    (
        Scene.of(Figures(2, "red", "star", "small"), "left of", Figures(4, "yellow", "triangle")),
        Variant(sizes=False, inverse=False, sentence=False),
    ),
    (
        Scene.of(Figures(1, "black", "cross", "large"), "above", Figures(2, "pink", "square")),
        Variant(sizes=True, inverse=False, sentence=True),
    ),
    (
        Scene.of(Figures(1, "purple", "ring", "small"), "right of", Figures(3, "green", "circle")),
        Variant(sizes=True, inverse=True, sentence=False),
    ),
    (
        Scene.of(Figures(2, "yellow", "heart"), "below", Figures(4, "black", "star", "large")),
        Variant(sizes=True, inverse=True, sentence=True),
    ),
    (Scene.of(Figures(1, "orange", "arrow", "large")), Variant(sizes=False, inverse=False, sentence=False)),
]
ALL_FIGURES = [Figures(*facts) for facts in itertools.product(scenes.COUNTS, scenes.COLOURS, scenes.SHAPES, (None, *scenes.SIZES))]


@pytest.mark.parametrize("language", grammar.LANGUAGES)
def test_sentences_written_by_hand(language):
    expected = [line.strip() for line in SENTENCES[language].strip().splitlines()]
    assert [grammar.caption(scene, language, variant) for scene, variant in CASES] == [
        unicodedata.normalize("NFC", line) for line in expected
    ]


@pytest.mark.parametrize(
    ("language", "figures", "case", "expected"),
    [
        ("de", Figures(1, "purple", "heart", "small"), "dative", "einem kleinen violetten Herzen"),
        ("de", Figures(1, "yellow", "square", "large"), "accusative", "ein großes gelbes Quadrat"),
        ("de", Figures(1, "pink", "ring"), "accusative", "einen rosafarbenen Ring"),
        ("fr", Figures(3, "orange", "cross", "small"), "de", "de trois petites croix orange"),
        ("fr", Figures(1, "purple", "arrow", "large"), "nominative", "une grande flèche violette"),
        ("ru", Figures(1, "blue", "heart", "large"), "genitive", "большого синего сердца"),
        ("ru", Figures(1, "blue", "star", "small"), "instrumental", "маленькой синей звездой"),
        ("ru", Figures(2, "blue", "ring", "large"), "instrumental", "двумя большими синими кольцами"),
        ("ru", Figures(3, "green", "arrow"), "genitive", "трёх зелёных стрелок"),
        ("ru", Figures(4, "blue", "star", "small"), "nominative", "четыре маленькие синие звезды"),
        ("ru", Figures(1, "blue", "ring"), "nominative", "синее кольцо"),
        ("cs", Figures(2, "blue", "ring"), "nominative", "dva modré prstence"),
        ("cs", Figures(4, "green", "heart", "large"), "nominative", "čtyři velká zelená srdce"),
        ("cs", Figures(3, "yellow", "arrow"), "genitive", "tří žlutých šipek"),
        ("cs", Figures(1, "black", "heart"), "instrumental", "černým srdcem"),
        ("cs", Figures(1, "pink", "arrow", "small"), "instrumental", "malou růžovou šipkou"),
        ("tr", Figures(1, "black", "cross"), "genitive", "siyah bir haçın"),
        ("tr", Figures(2, "purple", "ring"), "genitive", "iki mor halkanın"),
        ("hi", Figures(1, "yellow", "ring", "large"), "oblique", "एक बड़े पीले छल्ले"),
        ("hi", Figures(3, "green", "ring"), "oblique", "तीन हरे छल्लों"),
        ("el", Figures(1, "black", "ring", "small"), "accusative", "έναν μικρό μαύρο δακτύλιο"),
        ("el", Figures(4, "yellow", "cross", "large"), "accusative", "τέσσερις μεγάλους κίτρινους σταυρούς"),
        ("el", Figures(3, "red", "arrow", "small"), "nominative", "τρία μικρά κόκκινα βέλη"),
        ("fi", Figures(1, "purple", "ring"), "genitive", "violetin renkaan"),
        ("fi", Figures(3, "green", "heart", "large"), "genitive", "kolmen ison vihreän sydämen"),
        ("it", Figures(4, "yellow", "arrow", "small"), "nominative", "quattro piccole frecce gialle"),
        ("es", Figures(2, "purple", "cross"), "nominative", "dos cruces moradas"),
    ],
)
def test_inflection(language, figures, case, expected):
    assert grammar.LANGUAGES[language].noun_phrase(figures, case) == unicodedata.normalize("NFC", expected)


def test_languages_and_scripts():
    assert list(grammar.LANGUAGES) == [normalise_language(tag) for tag in grammar.LANGUAGES]
    assert len(grammar.LANGUAGES) >= 12
    assert len({script(tag) for tag in grammar.LANGUAGES}) >= 5


@pytest.mark.parametrize("language", grammar.LANGUAGES)
def test_every_noun_phrase_is_unique_in_each_case(language):
    speech = grammar.LANGUAGES[language]
    for case in {"nominative", speech.sentence_case, *speech.anchor_case.values()}:
        phrases = {speech.noun_phrase(figures, case) for figures in ALL_FIGURES}
        assert len(phrases) == len(ALL_FIGURES)


@pytest.mark.parametrize("language", grammar.LANGUAGES)
def test_a_caption_tells_its_concept(language):
    figures = [Figures(*facts) for facts in itertools.product((1, 2, 3), ("red", "blue", "pink"), ("star", "ring"), (None, "large"))]
    concepts: dict[str, str] = {}
    for first, second in itertools.permutations(figures, 2):
        for scene in (Scene.of(first, relation, second) for relation in ("left of", "above")):
            for variant in grammar.variants(scene):
                text = grammar.caption(scene, language, variant)
                assert concepts.setdefault(text, scene.concept) == scene.concept
                assert text == unicodedata.normalize("NFC", " ".join(text.split()))


def test_variants_of_a_scene_differ():
    for scene, _ in CASES:
        choices = list(grammar.variants(scene))
        assert len(choices) >= 2
        for language in grammar.LANGUAGES:
            assert len({grammar.caption(scene, language, variant) for variant in choices}) == len(choices)


def test_an_inverse_relation_is_the_same_scene():
    star, ring = Figures(1, "red", "star"), Figures(2, "blue", "ring", "large")
    assert Scene.of(star, "left of", ring) == Scene.of(ring, "right of", star)
    assert Scene.of(star, "above", ring) == Scene.of(ring, "below", star)
    mirrored, smaller = Scene.of(star, "right of", ring), Scene.of(star, "left of", Figures(2, "blue", "ring", "small"))
    scene = Scene.of(star, "left of", ring)
    assert scene.group == mirrored.group == smaller.group
    assert scene.concept == smaller.concept != mirrored.concept
