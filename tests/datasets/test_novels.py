"""Novels: the readers on small inputs, then the promises of the card on the real thing."""

import gettext
import io
import itertools
import struct
import zlib
from collections import Counter

import pytest

from raysys.errors import UserError
from raysys.shards.sample import Sample
from tests.datasets.cache import CACHE
from tests.datasets.recipes import recipe_module

recipe = recipe_module("novels.recipe")
austen, sword, wesnoth = (recipe_module(f"novels.{name}") for name in ("austen", "sword", "wesnoth"))
pieces = recipe_module("common.pieces")


def texts(passages) -> list[str]:
    return [passage.text for passage in passages]


def test_dashes_of_print():
    line = 'Sorrow came--a gentle sorrow.--Miss Taylor--"Ah!"--Mr. Weston said.'
    assert austen.tidy(line) == 'Sorrow came—a gentle sorrow. Miss Taylor—"Ah!" Mr. Weston said.'


def test_books_of_a_sword_module():
    osis = (
        '<div sID="gen1" type="front"/>Preface<div eID="gen1" type="front"/>',
        '<div canonical="true" osisID="A" sID="gen2" type="book"/><milestone n="First &amp; last" type="x-usfm-h"/><title>The Book</title>'
        '<div sID="gen3" type="x-p"/><chapter n="1" osisID="A.1" sID="A.1"/><w lemma="x">In</w> <w>the</w> beginning,'
        '<note>a <reference>1</reference></note> &amp; so.<div eID="gen3" type="x-p"/><div sID="gen4" type="x-p"/>“Go.',
        '”<div eID="gen4" type="x-p"/><chapter eID="A.1"/><chapter n="2" osisID="A.2" sID="A.2"/><l sID="l1" level="1"/>One<l eID="l1"/> '
        '<l sID="l2"/>two.<l eID="l2"/><div canonical="true" eID="gen2" osisID="A" type="book"/>A glossary',
    )
    blocks = [zlib.compress(part.encode()) for part in osis]
    offsets = itertools.accumulate((len(block) for block in blocks[:-1]), initial=0)
    table = b"".join(struct.pack("<III", offset, len(block), 0) for offset, block in zip(offsets, blocks, strict=True))
    files = {"ot.bzs": table, "ot.bzz": b"".join(blocks), "nt.bzs": b"", "nt.bzz": b""}
    ((name, passages),) = sword.read_books(files)
    assert name == "First & last"
    assert texts(passages) == ["", "", "In the beginning, & so.", "“Go.”", "", "One two."]


SCENARIO = """
# message= _ "a comment"
    story= _ "Long ago, <i>he</i> said ""no"".
It was so."
    [message]
        speaker=a
        message= _ "context^Where is it?"
        female_message=_ "female^x"
        message=_"female^Where is she?"
    [/message]
    description= _ "Win"
    message= _ "You have $gold|."
    message= _ "Only English."
    message= _ "The end." # no spellcheck
"""


def catalogue(translations: dict[str, str]) -> bytes:
    """A ``.mo`` file, as the manual of GNU gettext describes it."""
    entries = sorted(
        (key.encode(), value.encode()) for key, value in {"": "Content-Type: text/plain; charset=UTF-8\n", **translations}.items()
    )
    begin = 28 + 16 * len(entries)
    tables, data = [b"", b""], b""
    for side in (0, 1):
        for entry in entries:
            tables[side] += struct.pack("<II", len(entry[side]), begin + len(data))
            data += entry[side] + b"\0"
    return struct.pack("<IIIIIII", 0x950412DE, 0, len(entries), 28, 28 + 8 * len(entries), 0, 0) + b"".join(tables) + data


def test_campaigns_in_english_and_in_translation():
    german = {
        'Long ago, <i>he</i> said "no".\nIt was so.': 'Einst sagte <i>er</i> "nein".\nSo war es.',
        "context^Where is it?": "Wo ist es?",
        "You have $gold|.": "Du hast $gold|.",
        "The end.": "Ende.",
    }
    files = {
        "data/campaigns/A/scenarios/02.cfg": b'message= _ "The end."',
        "data/campaigns/A/scenarios/01.cfg": SCENARIO.encode(),
        "data/campaigns/A/_main.cfg": b'message= _ "Nothing."',
        "data/campaigns/A/utils/deaths.cfg": b'message= _ "Argh."',
        "locale/de/LC_MESSAGES/wesnoth-a.mo": catalogue(german),
        "locale/de@latin/LC_MESSAGES/wesnoth-a.mo": b"",
        "locale/pt_BR/LC_MESSAGES/wesnoth-a.mo": catalogue({"The end.": "Fim."}),
    }
    assert gettext.GNUTranslations(io.BytesIO(catalogue(german))).gettext("The end.") == "Ende."
    english = ["", 'Long ago, he said "no".', "It was so.", "Where is it?", "", "Only English.", "The end.", "", "The end."]
    assert texts(wesnoth.read_campaign(files, "en")) == english
    assert texts(wesnoth.read_campaign(files, "de")) == [
        "",
        'Einst sagte er "nein".',
        "So war es.",
        "Wo ist es?",
        "",
        "",
        "Ende.",
        "",
        "Ende.",
    ]
    assert [text for text in texts(wesnoth.read_campaign(files, "pt-BR")) if text] == ["Fim.", "Fim."]
    assert not any(texts(wesnoth.read_campaign(files, "fr")))


def test_pieces_have_three_neighbours_and_keys_in_order():
    passages = [pieces.Passage(0, text) for text in ("One. Two.", "", "He came. She left.\u200b \u200b It rained. " * 100, "", "X. Y. Z.")]
    found = list(recipe.pieces(passages, "en", "en-007", {"work": "x"}))
    assert [sample.key for sample in found] == sorted(sample.key for sample in found)
    assert all(len(sample.metadata["sentences"]) >= 3 for sample in found)
    assert found[0].metadata["sentences"][-2:] == found[1].metadata["sentences"][:2]
    assert {key: found[0].metadata[key] for key in ("language", "work")} == {"language": "en", "work": "x"}


def test_count_is_refused(tmp_path):
    with pytest.raises(UserError, match="size of the data set 'novels' is fixed"):
        next(recipe.samples(tmp_path, seed=0, languages=("en",), count=5))


# ---- the real thing ----


def sizes(samples: list[Sample]) -> Counter[str]:
    """Sentences by work; those that two pieces share count once."""
    found: Counter[str] = Counter()
    for before, sample in itertools.pairwise([None, *samples]):
        sentences = sample.metadata["sentences"]
        shared = before is not None and before.metadata["sentences"][-2:] == sentences[:2]
        found[sample.metadata["work"]] += len(sentences) - 2 * shared
    return found


def test_novels_lose_neither_beginning_nor_end():
    files = recipe._files(recipe.AUSTEN, CACHE, austen.FOLDER, (austen.INDEX, austen.DATA))
    _, passages = next(itertools.islice(austen.read_novels(files), 1, None))
    samples = list(recipe.pieces(passages, "en", "x", {"work": "Pride and Prejudice"}))
    assert samples[0].metadata["sentences"][0].startswith("It is a truth universally acknowledged, that a single man in possession")
    assert samples[-1].metadata["sentences"][-1].endswith("had been the means of uniting them.")
    assert 5_800 < sizes(samples).total() < 6_000
    chapters = {sample.metadata["sentences"][0] for sample in samples}
    assert '"My dear Mr. Bennet," said his lady to him one day, "have you heard that Netherfield Park is let at last?"' not in chapters


def test_a_tale_in_german():
    package = next(package for package, title in recipe.CAMPAIGNS.items() if title == "Heir to the Throne")
    text = wesnoth.read_campaign(recipe._files(package, CACHE, wesnoth.FOLDER, (".cfg", ".mo")), "de")
    samples = list(recipe.pieces(text, "de", "x", {"work": "Heir to the Throne"}))
    sentences = [sentence for sample in samples for sentence in sample.metadata["sentences"]]
    assert sizes(samples).total() == 2_046
    assert not any("$" in sentence or "<" in sentence for sentence in sentences)
    assert "Konrad, Delfador und Kalenz wählten den Weg durch die Wildnis von Wesnoth nach Osten." in sentences


@pytest.mark.slow
def test_counts_of_the_card():
    samples = list(recipe.samples(CACHE, seed=0, languages=("en", "de")))
    assert len({sample.key for sample in samples}) == len(samples)
    english, german = (sizes([sample for sample in samples if sample.metadata["language"] == language]) for language in ("en", "de"))
    novels, tales = (sum(english[title] for title in titles.values()) for titles in (austen.TITLES, recipe.CAMPAIGNS))
    assert (novels, english.total() - novels - tales, tales, german.total()) == (32_743, 49_594, 18_916, 19_263)
    assert len(english) == 103
    assert set(german) == set(recipe.CAMPAIGNS.values())
