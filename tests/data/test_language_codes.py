"""Languages as tokens, one for each text of a mixed batch."""

import pytest
from transformers import MBart50Tokenizer

from raysys.data.encoding import EmptyTextError, TextForm
from raysys.data.language_codes import MBART50_CODES, encode_with_language, language_ids
from raysys.data.multilingual_tokenizer import train_multilingual_tokenizer
from raysys.errors import UserError
from raysys.shards.languages import normalise_language

TEXTS = ["a dog runs in the park", "ein Hund läuft im Park", "赤い丸と犬"]


@pytest.fixture(scope="module")
def ours():
    return train_multilingual_tokenizer(TEXTS * 5, ["en", "de", "ja", "pt-BR", "zh-Hant"], 400, 80)


def test_codes_are_those_of_mbart_50():
    tokenizer = MBart50Tokenizer()
    assert set(MBART50_CODES.values()) == set(tokenizer.lang_code_to_id)
    assert all(tag == normalise_language(tag) for tag in MBART50_CODES)
    picked = {tag: MBART50_CODES[tag] for tag in ("de", "en", "zh-Hans", "fil", "fa", "he", "ne")}
    assert picked == {"de": "de_DE", "en": "en_XX", "zh-Hans": "zh_CN", "fil": "tl_XX", "fa": "fa_IR", "he": "he_IL", "ne": "ne_NP"}
    found = language_ids(tokenizer, ["zh_CN", "pt-BR", "de"])
    assert found == {"zh_CN": tokenizer.lang_code_to_id["zh_CN"], "pt-BR": tokenizer.lang_code_to_id["pt_XX"], "de": found["de"]}


def test_own_tokens(ours):
    found = language_ids(ours, ["de", "ja", "pt-BR", "zh_TW"])
    assert ours.convert_ids_to_tokens(list(found.values())) == ["<de>", "<ja>", "<pt-BR>", "<zh-Hant>"]


def test_an_unknown_language_is_an_error_that_lists_the_known(ours):
    with pytest.raises(UserError, match=r"no token for the language 'fr'; it has them for: de, en, ja, pt-BR, zh-Hant$"):
        language_ids(ours, ["de", "fr"])
    with pytest.raises(UserError, match=r"no token for the language 'zh-Hant'; it has them for: af, ar, .*, zh-Hans$"):
        language_ids(MBart50Tokenizer(), ["zh-Hant"])


def test_every_text_of_a_mixed_batch_has_its_own_language(ours):
    ids = language_ids(ours, ["en", "de", "ja"])
    rows = encode_with_language(ours.backend_tokenizer, TEXTS, [ids["en"], ids["de"], ids["ja"]], TextForm(80))
    for (row, cut), text, language in zip(rows, TEXTS, ("en", "de", "ja"), strict=True):
        assert row[0] == ours.bos_token_id
        assert row[-1] == ids[language]
        assert not set(row[:-1]) & set(ids.values())
        assert ours.decode(row[1:-1]) == text
        assert not cut
    turned = encode_with_language(ours.backend_tokenizer, TEXTS[::-1], [ids["ja"], ids["de"], ids["en"]], TextForm(80))
    assert turned == rows[::-1]


def test_long_texts_keep_their_language(ours):
    long = TEXTS[0] * 9
    (whole, _), (row, cut) = (encode_with_language(ours.backend_tokenizer, [long], [301], TextForm(size))[0] for size in (200, 6))
    assert row == [*whole[:5], 301]
    assert cut
    assert encode_with_language(ours.backend_tokenizer, ["a"], [301], TextForm(3)) == [([0, whole[1], 301], False)]


def test_texts_that_show_nothing_are_named(ours):
    with pytest.raises(EmptyTextError, match="text 1 is empty"):
        encode_with_language(ours.backend_tokenizer, ["a", " "], [301, 301], TextForm(9))
    with pytest.raises(ValueError, match="no room"):
        encode_with_language(ours.backend_tokenizer, ["a"], [301], TextForm(2))
    with pytest.raises(ValueError, match="shorter"):
        encode_with_language(ours.backend_tokenizer, ["a", "b"], [301], TextForm(9))
