"""Parallel texts in both forms: numbered by counts alone, read in place, and every text once."""

import json

import numpy as np
import pytest

from raysys.data.bad import BadDataError, BadSamplePolicy
from raysys.data.pairs import Pairs, parallel_counts, texts_in_place
from raysys.errors import UserError
from raysys.shards.layout import Layout
from raysys.shards.manifest import Manifest
from raysys.shards.sample import Sample, SampleError
from raysys.shards.writer import write_shards
from raysys.storage import Storage

LANGUAGES = ("de", "en", "fr")
SKIP = BadSamplePolicy("skip", 1.0)


def numbered(languages: str, count: int, sample: int) -> dict[str, list[str]]:
    return {language: [f"{language} {sample}.{place}" for place in range(count)] for language in languages.split()}


CAPTIONS = [numbered("en de", 1, 0), numbered("en", 3, 1), numbered("fr cs", 2, 2), numbered("de en fr", 2, 3), numbered("fr en", 3, 4)]
CAPTIONS[4]["en"].pop()
"""One place; one language; one in use; two places in three languages; a third place in French alone."""
PLACES = [(0, 0), (3, 0), (3, 1), (4, 0), (4, 1)]


def write(folder, fields: list[dict], shards: int = 1) -> str:
    write_shards((Sample("p", f"p{n:02}", None, metadata=own) for n, own in enumerate(fields)), str(folder), shards, Storage())
    return str(folder)


def load(*folders: str, languages=LANGUAGES, **options) -> Pairs:
    return Pairs.load(folders, languages, Storage(), lambda line: None, **options)


def said(pairs: Pairs, ids) -> list[dict[str, str] | str]:
    return [found.reason if isinstance(found, SampleError) else found.texts for found in pairs.try_read(np.array(ids))]


def expected(sample: int, place: int, languages=LANGUAGES) -> dict[str, str]:
    own = CAPTIONS[sample]
    return {language: own[language][place] for language in languages if len(own.get(language, ())) > place}


def test_captions_without_a_picture(tmp_path):
    pairs = load(write(tmp_path, [{"captions": own} for own in CAPTIONS]))
    assert len(pairs) == 5
    assert said(pairs, range(5)) == [expected(*place) for place in PLACES]
    assert (pairs.total, pairs.left_out, pairs.bad) == (5, 2, [])
    assert [pairs.locate(number) for number in range(5)] == [(f"{tmp_path}/000000.tar", f"p{sample:02}") for sample, _ in PLACES]
    order = np.random.default_rng(0).integers(0, 5, 20)
    assert said(pairs, order) == [expected(*PLACES[number]) for number in order]
    assert pairs.try_read(np.array([2]))[0].where == "000000.tar: sample 'p03'"
    assert said(pairs, []) == []
    for number in (-1, 5):
        with pytest.raises(IndexError, match="there are 5"):
            pairs.try_read(np.array([0, number]))


def test_many_texts_in_one_sample(tmp_path):
    """As the recipe for WikiMatrix writes them."""
    fields = [{"texts": own, "scores": [1.1], "alignment": "strict"} for own in CAPTIONS]
    pairs = load(write(tmp_path, [*fields, {"texts": {}}, {"texts": {"en": ["", "b"], "de": ["x", "y"]}}]))
    assert len(pairs) == 6
    assert said(pairs, range(6)) == [*(expected(*place) for place in PLACES), {"de": "y", "en": "b"}]
    assert (pairs.total, pairs.left_out) == (7, 3)
    assert pairs.manifests[0].captions() == {"en": 0, "de": 0, "fr": 0, "cs": 0}


def test_several_data_sets_one_after_another_in_any_shards(tmp_path):
    one = write(tmp_path / "one", [{"captions": own} for own in CAPTIONS], 2)
    two = write(tmp_path / "two", [{"captions": numbered("fr de", 1, 9)}, {"captions": numbered("fr ja", 1, 9)}])
    pairs = load(two, one)
    assert said(pairs, [0]) == [numbered_text("de fr", 9)]
    keys = [pairs.locate(number)[1] for number in range(1, 6)]
    assert sorted(keys) == ["p00", "p03", "p03", "p04", "p04"]
    assert {tuple(sorted(texts.items())) for texts in said(pairs, range(1, 6))} == {
        tuple(sorted(expected(*place).items())) for place in PLACES
    }
    assert (pairs.total, pairs.left_out) == (7, 3)
    found = sorted(pairs.all_texts())
    assert found == sorted(item for texts in said(pairs, range(6)) for item in texts.items())
    assert 0 < len(list(pairs.all_texts(most=2))) < len(found)


def numbered_text(languages: str, sample: int) -> dict[str, str]:
    return {language: texts[0] for language, texts in numbered(languages, 1, sample).items()}


def test_the_fingerprint_tells_contents_order_and_languages(tmp_path):
    one = write(tmp_path / "one", [{"captions": own} for own in CAPTIONS])
    two = write(tmp_path / "two", [{"captions": own} for own in CAPTIONS[::-1]])
    prints = [load(*folders, languages=languages).fingerprint for folders, languages in (
        ((one, two), LANGUAGES), ((two, one), LANGUAGES), ((one,), LANGUAGES), ((one, two), ("de", "en")))]  # fmt: skip
    assert len(set(prints)) == 4
    assert load(one, two).fingerprint == prints[0]


@pytest.mark.parametrize("languages", [("de", "en"), ("en", "fr"), ("cs", "fr"), ("de", "en", "fr", "cs"), ()])
def test_counts_are_those_of_the_second_longest(tmp_path, languages):
    manifest = Manifest.build(Storage(), write(tmp_path, [{"captions": own} for own in CAPTIONS]))
    used = languages or tuple(manifest.languages())
    rows, counts = parallel_counts(manifest, used)
    told = {n: sorted((len(texts) for language, texts in own.items() if language in used), reverse=True) for n, own in enumerate(CAPTIONS)}
    assert dict(zip(rows.tolist(), counts.tolist(), strict=True)) == {n: sizes[1] for n, sizes in told.items() if len(sizes) > 1}
    assert load(str(tmp_path), languages=languages).languages == (languages or tuple(sorted(used)))


def test_texts_that_show_nothing_hold_their_place(tmp_path):
    fields = [
        {"captions": {"en": ["a", "", "c"], "de": ["x", "y", "z"]}},
        {"captions": {"en": ["\u2028"], "de": ["x"], "fr": "o"}},
        {"captions": {"en": ["a", " "], "de": ["\u200b", "y"]}},
    ]
    pairs = load(write(tmp_path, fields), policy=SKIP)
    assert len(pairs) == 4
    found = said(pairs, range(4))
    assert found[:3] == [{"de": "x", "en": "a"}, {"de": "z", "en": "c"}, {"de": "x", "fr": "o"}]
    assert found[3] == "in no two languages there is a text 1: texts that show nothing stand among the others"
    assert list(pairs.all_texts()) == [(tag, text) for texts in found[:3] for tag, text in texts.items()]


@pytest.mark.parametrize(
    ("stored", "texts"),
    [
        ({"en": "a ", "de": [" b"]}, {"en": ["a"], "de": ["b"]}),
        ({"zh_CN": ["一", " "], "en": ["one", "two"]}, {"zh-Hans": ["一", ""], "en": ["one", "two"]}),
        ({"en": None, "de": ["", "b"], "fr": ["o"]}, {"de": ["", "b"], "fr": ["o", ""]}),
        ({}, {}),
        ({"en": ["", " "]}, {}),
    ],
)
def test_texts_in_place(stored, texts):
    assert texts_in_place(stored, "x", "raise") == texts


def test_layouts_of_other_tools(tmp_path):
    pairs = load(write(tmp_path, [{"says": {"en": ["a", "b"], "de": ["c", "d"]}}]), layout=Layout(caption_field="says"))
    assert said(pairs, [1, 0]) == [{"de": "d", "en": "b"}, {"de": "c", "en": "a"}]


def test_a_sample_that_is_not_what_was_indexed_is_named_once(tmp_path):
    folder = write(tmp_path, [{"captions": own} for own in CAPTIONS])
    pairs = load(folder, policy=SKIP)
    shard = tmp_path / "000000.tar"
    stored = shard.read_bytes()
    shard.write_bytes(stored.replace(b"de 3.1", b"de 3.x"))
    found = pairs.try_read(np.arange(5))
    assert [isinstance(one, SampleError) for one in found] == [False, True, True, False, False]
    told = pairs.describe_bad(2, found[2])
    assert told[:2] == (str(shard), "p03")
    assert told == pairs.describe_bad(1, found[1])
    assert json.loads(pairs.stored_members(told)["json"])["captions"]["de"][1] == "de 3.x"
    assert len(list(pairs.all_texts())) == 2 + 4
    with pytest.raises(BadDataError, match="'p03'"):
        list(Pairs(pairs.manifests, LANGUAGES, Storage()).all_texts())


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ([{"captions": {"en": ["a"]}}, {"captions": {"de": ["b"]}}], r"in two of the languages de, en, fr; languages there: de, en"),
        ([{"sentences": ["a", "b"], "language": "de"}], r"no sample has texts in two of .*; languages there: de$"),
    ],
)
def test_no_parallel_text(tmp_path, fields, told):
    with pytest.raises(UserError, match=rf"^no parallel text in {tmp_path}: .*{told}"):
        load(write(tmp_path, fields))


def test_a_sample_known_to_be_bad_is_refused_or_left_out(tmp_path):
    folder = write(tmp_path, [{"captions": {"en": ["a"], "de": ["b"]}}, {"captions": {"en": ["a"], "xx-nonsense-tag": ["b"]}}])
    with pytest.raises(UserError, match=r"'p01'.*on_bad_sample to skip"):
        load(folder)
    pairs = load(folder, policy=SKIP)
    assert (len(pairs), pairs.left_out, [bad.key for bad in pairs.bad]) == (1, 1, ["p01"])
