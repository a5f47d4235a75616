"""Text of samples: encodings, odd json, captions that show nothing."""

import json
import pickle

import pytest

from raysys.shards.sample import CAUSES, SampleError, clean_caption, parse_captions


def captions(**languages) -> bytes:
    return json.dumps({"captions": languages}).encode()


def test_reads_the_contract():
    data = json.dumps({"captions": {"zh_CN": ["一只猫"], "de": [" Eine  Katze ", ""], "fr": []}, "alignment": "weak", "group": "cat"})
    text = parse_captions(data.encode())
    assert text.captions == {"zh-Hans": ["一只猫"], "de": ["Eine Katze"]}
    assert (text.alignment, text.extra) == ("weak", {"group": "cat"})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings(encoding):
    data = json.dumps({"captions": {"el": ["γάτα"]}}, ensure_ascii=False).encode(encoding)
    assert parse_captions(data).captions == {"el": ["γάτα"]}


def test_languages_that_are_one_are_merged():
    assert parse_captions(captions(de=["a"], de_DE=["b"], deu="c")).captions == {"de": ["a", "b", "c"]}


def test_alignment_is_strict_unless_said():
    assert parse_captions(b"{}").alignment == "strict"


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("  a\t b\n", "a b"),
        ("chat\u00a0!", "chat !"),
        ("猫\u3000犬", "猫 犬"),
        ("e\u0301", "é"),
        ("\u1112\u1161\u11ab", "한"),
        ("\u200fשלום\u200e", "שלום"),
        ("\u2067שלום\u2069 abc", "שלום abc"),
        ("\ufeffa\u200b", "a"),
        ("ก\u200bข", "ก\u200bข"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\u200b\u00a0\u2060", ""),
        ("\u200d", ""),
        ("\ufe0f", ""),
        ("\u034f\u2061", ""),
        ("\x00", ""),
        ("\u180b ", ""),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("", ""),
    ],
)
def test_captions_that_look_the_same_are_equal(raw, clean):
    assert clean_caption(raw) == clean
    assert clean_caption(clean) == clean


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the json member is empty"),
        (b"{", "not valid json"),
        (b"[" * 100_000, "not valid json"),
        (b"\xff{}\xff", "not utf-8 text"),
        (b"[1]", "holds a list"),
        (b"null", "holds null"),
        (b'{"captions": ["a"]}', "'captions' is a list"),
        (b'{"captions": {"de": [1]}}', "a caption in 'de' is a number"),
        (b'{"captions": {"de": {"a": 1}}}', "a caption in 'de' is an object"),
        (b'{"captions": {"not a language": ["a"]}}', "'not a language' is not a language tag"),
        (b'{"captions": {"de": ["\\ud800"]}}', "half a surrogate pair"),
        (b'{"captions": {}, "alignment": "loose"}', "'alignment' is 'loose'"),
        (b'{"n": ' + b"9" * 5000 + b"}", "not usable json"),
    ],
)
def test_odd_json_is_named(data, reason):
    with pytest.raises(SampleError) as fault:
        parse_captions(data, "0.tar: sample 'a'")
    assert reason in fault.value.reason
    assert str(fault.value).startswith("0.tar: sample 'a', member .json: ")
    assert fault.value.member == "json"
    assert fault.value.cause in CAUSES
    assert (pickle.loads(pickle.dumps(fault.value))).cause == fault.value.cause
    assert str(pickle.loads(pickle.dumps(fault.value))) == str(fault.value)


def test_tags_that_name_no_language_can_be_dropped():
    data = captions(de=["a"], image_alt=["b"], und="c", xx1="d")
    assert parse_captions(data, unknown_languages="drop").captions == {"de": ["a"]}
    with pytest.raises(SampleError, match="'image_alt' is not a language tag"):
        parse_captions(data)
