"""What a word is, vocabularies, and dictionaries as ground truth."""

import pytest

from raysys.errors import UserError
from raysys.evaluation.lexicon import Vocabulary, from_dictionaries, read_dictionaries, single_word, split_words, vocabulary
from raysys.storage import Storage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ein roter Apfel, 2 Äpfel!", ["ein", "roter", "apfel", "äpfel"]),
        ("l'arbre porte-clés", ["l", "arbre", "porte", "clés"]),
        ("A\u0308pfel", ["äpfel"]),  # decomposed
        ("ﬁsh ｆｉｓｈ", ["fish", "fish"]),  # a ligature, full width
        ("हिन्दी में", ["हिन्दी", "में"]),  # vowel signs and viramas stay in their word
        ("一只猫，两只狗", ["一只猫", "两只狗"]),  # no spaces: whole runs
        ("りんごとﾘﾝｺﾞ", ["りんごとリンゴ"]),
        ("מִלָּה", ["מִלָּה"]),
        ("soft\u00adware ze\u200bro", ["software", "zero"]),  # invisible marks
        ("❤\ufe0f\u0301 42 — …", []),
        ("half\ud83d", ["half"]),
        ("", []),
    ],
)
def test_split_words(text, expected):
    assert split_words(text) == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [(" Hund ", "hund"), ("Farb…", None), ("ice cream", None), ("abu-abu", None), ("कुत्ता", "कुत्ता"), ("3d", None), ("", None), ("!", None)],
)
def test_single_word(text, word):
    assert single_word(text) == word


def test_vocabulary_is_most_frequent_first_and_bounded():
    captions = ["a dog and a cat", "A dog", "the bird"]
    assert vocabulary(captions) == Vocabulary(("a", "dog", "and", "bird", "cat", "the"), 0)
    assert vocabulary(captions, 3) == Vocabulary(("a", "dog", "and"), 3)
    assert vocabulary([]) == Vocabulary((), 0)


def write(folder, **files: str) -> str:
    for name, text in files.items():
        (folder / f"{name.replace('_', '-')}.tsv").write_text(text, encoding="utf-8")
    return str(folder)


VOCABULARIES = {
    "en": Vocabulary(("dog", "cat", "bank")),
    "de": Vocabulary(("hund", "katze", "kater", "bank")),
    "fr": Vocabulary(("chien", "chat", "banc", "rive")),
}


def test_dictionaries_are_read_in_both_directions(tmp_path):
    folder = write(tmp_path, en_de="Cat\tKater\ncat\tkatze\ndog\thund\ndog\twuffi\nice cream\teis\nbank\tbank\n", fr_en="chien\tdog\n")
    found = read_dictionaries(folder, ["en", "de", "fr"], Storage())
    assert found == {
        ("en", "de"): {("cat", "kater"), ("cat", "katze"), ("dog", "hund"), ("dog", "wuffi"), ("bank", "bank")},
        ("fr", "en"): {("chien", "dog")},
    }
    truth = from_dictionaries(VOCABULARIES, found)
    assert truth.right == {
        ("en", "de"): {"bank": {"bank"}, "cat": {"kater", "katze"}, "dog": {"hund"}},
        ("de", "en"): {"bank": {"bank"}, "kater": {"cat"}, "katze": {"cat"}, "hund": {"dog"}},
        ("en", "fr"): {"dog": {"chien"}},
        ("fr", "en"): {"chien": {"dog"}},
    }
    assert truth.counts == {
        "en-de": {"entries": 5, "pairs": 4, "missing": 1, "through": 0},
        "en-fr": {"entries": 1, "pairs": 1, "missing": 0, "through": 0},
    }


def test_a_third_language_joins_two_only_if_asked():
    dictionaries = {
        ("en", "de"): frozenset([("dog", "hund"), ("shore", "ufer"), ("bank", "bank")]),
        ("en", "fr"): frozenset([("dog", "chien"), ("bank", "banc"), ("bank", "rive")]),
    }
    assert ("de", "fr") not in from_dictionaries(VOCABULARIES, dictionaries).right
    joined = from_dictionaries(VOCABULARIES, dictionaries, through="en")
    assert joined.right["de", "fr"] == {"hund": {"chien"}, "bank": {"banc", "rive"}}
    assert joined.right["fr", "de"] == {"chien": {"hund"}, "banc": {"bank"}, "rive": {"bank"}}
    assert joined.counts["de-fr"] == {"entries": 3, "pairs": 3, "missing": 0, "through": 1}
    assert joined.counts["en-de"]["through"] == 0
    direct = dictionaries | {("de", "fr"): frozenset([("katze", "chat")])}
    assert from_dictionaries(VOCABULARIES, direct, through="en").right["de", "fr"] == {"katze": {"chat"}}


def test_the_third_language_need_not_be_among_the_vocabularies():
    dictionaries = {("en", "de"): frozenset([("dog", "hund")]), ("en", "fr"): frozenset([("dog", "chien")])}
    two = {language: VOCABULARIES[language] for language in ("de", "fr")}
    assert from_dictionaries(two, dictionaries, through="en").right["de", "fr"] == {"hund": {"chien"}}


def test_names_of_files_are_language_tags(tmp_path):
    (tmp_path / "en-zh-Hans.tsv").write_text("dog\t狗\n", encoding="utf-8")
    assert read_dictionaries(str(tmp_path), ["zh-Hans", "en"], Storage()) == {("en", "zh-Hans"): {("dog", "狗")}}


@pytest.mark.parametrize(
    ("text", "said"),
    [("cat\tkatze\ndog hund\n", r"en-de\.tsv, line 2: a word, a tab and its translation"), ("a\tb\tc\n", "line 1")],
)
def test_a_line_that_is_no_entry(tmp_path, text, said):
    with pytest.raises(UserError, match=said):
        read_dictionaries(write(tmp_path, en_de=text), ["en", "de"], Storage())


def test_no_dictionary_for_these_languages(tmp_path):
    with pytest.raises(UserError, match=r"no dictionary between two of hi, ja; there are en-de\.tsv"):
        read_dictionaries(write(tmp_path, en_de="a\tb\n"), ["hi", "ja"], Storage())
    (tmp_path / "en-de.tsv").write_bytes(b"caf\xe9\tcaf\xe9\n")
    with pytest.raises(UserError, match=r"en-de\.tsv is not UTF-8"):
        read_dictionaries(str(tmp_path), ["en", "de"], Storage())
