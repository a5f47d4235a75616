import random
import unicodedata

import pytest
from transformers import AutoTokenizer

from raysys.data.encoding import EmptyTextError, TextForm, whole
from raysys.data.tokenizer import encode, load_tokenizer
from raysys.data.word_tokenizer import train_word_tokenizer
from raysys.errors import UserError
from raysys.shards.sentences import count_words
from tests.data.test_tokenizer import lines

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def tokenizer():
    return train_word_tokenizer(lines(), 500, 32)


def words(tokenizer, text: str) -> list[str]:
    return tokenizer.convert_ids_to_tokens(encode(tokenizer, [text], TextForm(200)).input_ids[0].tolist())


def parted(text: str) -> list[str]:
    """The words of a text, by a tokenizer that knows all of them."""
    return words(train_word_tokenizer([text, text], 500, 32), text)[1:-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat's 2 dogs, they've £3.50!", ["the", "cat", "'", "s", "2", "dogs", ",", "they", "'", "ve", "£", "3", ".", "50", "!"]),
        ("a–b…  c\n\td", ["a", "–", "b", ".", ".", ".", "c", "d"]),
        ("Ärger ÉCLAIR ёЖИК", ["ärger", "éclair", "ёжик"]),
        ("बिल्ली छोटी", ["बिल्ली", "छोटी"]),
        ("赤い丸", ["赤", "い", "丸"]),
        ("有3只cats", ["有", "3", "只", "cats"]),
        ("สีแดง", ["สี", "แ", "ด", "ง"]),
        ("ｶﾞﾗｽ", ["ガ", "ラ", "ス"]),
        ("고양이 둘", ["고양이", "둘"]),
        ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
        ("a\u00adb\u200bc", ["abc"]),
        ("🐈🐕 x²", ["🐈", "🐕", "x", "2"]),
    ],
)
def test_words(text, expected):
    assert parted(text) == [unicodedata.normalize("NFC", word) for word in expected]


@pytest.mark.parametrize(
    "text", [*lines(2), "They've £3.50! x² 🐈 \ud800", "İstanbul ﬁn Ｋｒｅｉｓ", "ﷺ ㍿ ½", "ཀྲ་ཤིས ရုပ် ខ្មែរ", "e\u0301 \u0301"]
)
def test_as_many_words_as_the_shards_count(text):
    assert len(parted(text)) == count_words(whole(text))


def test_special_ids_then_the_most_frequent_words():
    texts = ["B b c", "b a a", "a A d", "c once"]
    tokenizer = train_word_tokenizer(texts, 8, 32)
    assert tokenizer.convert_ids_to_tokens(range(8)) == [*SPECIALS, "a", "b", "c"]
    assert words(tokenizer, "B d a once") == ["[CLS]", "b", "[UNK]", "a", "[UNK]", "[SEP]"]
    assert tokenizer.convert_ids_to_tokens(range(len(train_word_tokenizer(texts, 99, 32)))) == [*SPECIALS, "a", "b", "c"]
    random.Random(1).shuffle(texts)
    assert train_word_tokenizer(texts, 8, 32).backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


@pytest.mark.parametrize("text", lines(1))
def test_what_looks_the_same_is_the_same(tokenizer, text):
    ids = encode(tokenizer, [text], TextForm(32)).input_ids
    for variant in (unicodedata.normalize("NFD", text), f"\ufeff {text.upper()}\u200f", text.replace(" ", "\u00a0\t")):
        assert encode(tokenizer, [variant], TextForm(32)).input_ids.equal(ids), variant


def test_saved_and_loaded_it_is_the_same(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    texts = [*lines(20), "unknown words 123, half a surrogate \ud800"]
    expected = encode(tokenizer, texts, TextForm(32))
    for loaded in (load_tokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)):
        found = encode(loaded, texts, TextForm(32))
        assert found.input_ids.equal(expected.input_ids)
        assert loaded.model_max_length == 32
        assert loaded("der rote Kreis")["input_ids"] == encode(tokenizer, ["der rote Kreis"], TextForm(32)).input_ids[0].tolist()
        assert loaded.all_special_ids == tokenizer.all_special_ids


def test_long_texts_are_cut_and_empty_ones_named(tokenizer):
    tokens = encode(tokenizer, ["kreis " * 40, "kreis"], TextForm(7))
    assert tokens.truncated == 1
    assert tokens.attention_mask.sum(dim=1).tolist() == [7, 3]
    assert tokens.input_ids[0, -1] == 3
    with pytest.raises(EmptyTextError, match="text 1 is empty"):
        encode(tokenizer, ["Kreis", " \u200b\x07"], TextForm(7))


def test_what_cannot_be_trained_is_said():
    with pytest.raises(UserError, match="no captions"):
        train_word_tokenizer([], 500, 32)
    with pytest.raises(UserError, match="vocabulary of 5 is too small"):
        train_word_tokenizer(["a a"], 5, 32)
    with pytest.raises(UserError, match="no word occurs twice"):
        train_word_tokenizer(["a b", "c"], 500, 32)
