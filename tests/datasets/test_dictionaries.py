"""FreeDict's dictionaries: the format of dictd on a small one made here, then what the card promises of the real ones."""

import gzip

import pytest

from raysys.errors import UserError
from raysys.evaluation.lexicon import single_word
from tests.datasets.cache import CACHE
from tests.datasets.recipes import recipe_module

dictd = recipe_module("dictionaries.dictd")
recipe = recipe_module("dictionaries.recipe")

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def base64(number: int) -> str:
    return (base64(number // 64) if number >= 64 else "") + DIGITS[number % 64]


def dictionary(entries: list[tuple[str, str]]) -> tuple[bytes, bytes]:
    """(.index, .dict.dz) of (name in the index, text) in dictd's format."""
    text, index = b"", []
    for name, entry in entries:
        index.append(f"{name}\t{base64(len(text))}\t{base64(len(entry.encode()))}\n")
        text += entry.encode()
    return "".join(sorted(index)).encode(), gzip.compress(text)


ENTRIES = [
    ("00databaseinfo", "00-database-info\nfree\n" + "as it is, " * 600),
    ("cat", "cat /kˈat/\n1. Katze, Kater\n2. Mieze (ugs.)\n"),
    ("dog", "dog /dˈɒɡ/ <n>\nHund <masc>, Köter <masc, abw.> [zool.]\n  \"dogs bark\" - Hunde bellen\n Synonym: {hound}\n\n see: {dogs}\n"),
    ("dog", "Dog /dˈɒɡ/ (dogged /x/ <>) <v>\nverfolgen <v, trans>\n"),
    ("colour", "colour /kˈʌlə/\n [Br.] Farb…\n"),
    ("colour", "colour /kˈʌlə/\n [Br. [coll.]] FARBE; Färbung.\n"),
    ("grey", "grey //ɡɹeɪ// //ɡreɪ// <adj>\n\n1. abu, abu-abu\na shade\n 2.\nbetween\n2. grau: gräulich\n"),
    ("ice cream", "ice cream\nEis\n"),
    ("empty", "empty\n"),
]  # fmt: skip


def test_word_pairs_of_a_small_dictionary():
    index, data = dictionary(ENTRIES)
    assert recipe.word_pairs(index, data, "de", "small") == [
        ("cat", "kater"), ("cat", "katze"), ("cat", "mieze"), ("colour", "farbe"), ("colour", "färbung"), ("dog", "hund"), ("dog", "köter"),
        ("dog", "verfolgen"), ("grey", "abu"), ("grey", "grau"), ("grey", "gräulich"),
    ]  # fmt: skip


def test_every_entry_but_those_about_the_dictionary_is_read():
    index, data = dictionary(ENTRIES)
    assert all(len(line.split(b"\t")[1]) > 1 for line in index.splitlines()[1:])  # offsets of several digits
    assert sorted(dictd.read_entries(index, data, "small")) == sorted(text for _, text in ENTRIES[1:])


def test_letters_that_the_hungarian_dictionary_lost():
    index, data = dictionary([("leader", "leader\n1. vezetô\n2. fônök\n")])
    assert recipe.word_pairs(index, data, "hu", "small") == [("leader", "főnök"), ("leader", "vezető")]
    assert recipe.word_pairs(index, data, "fr", "small") == [("leader", "fônök"), ("leader", "vezetô")]


@pytest.mark.parametrize("damage", ["data", "offset", "digit", "columns"])
def test_damaged_dictionaries_are_named(damage):
    index, data = dictionary(ENTRIES)
    if damage == "data":
        data = data[:-20]
    else:
        index += {"offset": b"zoo\t////\tB\n", "digit": b"zoo\t!\tB\n", "columns": b"zoo\n"}[damage]
    with pytest.raises(UserError, match=r"small\.deb is not a dictionary in the format of dictd"):
        list(dictd.read_entries(index, data, "small.deb"))


# ---- the real thing ----

SMALL = {"ru": 1817, "it": 5854, "es": 8608, "fr": 12253}
"""Lines of the smaller ones, as the card has them; the others are read in the same way."""


@pytest.fixture(scope="module")
def real() -> dict[str, list[tuple[str, ...]]]:
    files = recipe.files(CACHE, languages=tuple(SMALL))
    return {name: [tuple(line.split("\t")) for line in content.decode("utf-8").splitlines()] for name, content in files}


def test_counts_of_the_card(real):
    assert {name: len(lines) for name, lines in real.items()} == {f"en-{language}.tsv": lines for language, lines in SMALL.items()}


def test_lines_are_sorted_single_words_each_once(real):
    for lines in real.values():
        assert lines == sorted(set(lines))
        assert all(single_word(word) == word for line in lines[::50] for word in line)
        assert all(len(line) == 2 for line in lines)


def test_some_translations(real):
    assert ("dog", "собака") in real["en-ru.tsv"]
    assert ("apple", "mela") in real["en-it.tsv"]
    assert ("cat", "gato") in real["en-es.tsv"]
    assert ("island", "île") in real["en-fr.tsv"]
