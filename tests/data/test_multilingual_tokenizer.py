"""The tokenizer for mBART-like networks, learned from our text."""

import random
import unicodedata

import pytest

from raysys.data.multilingual_tokenizer import train_multilingual_tokenizer
from raysys.data.tokenizer import load_tokenizer
from raysys.errors import UserError

TEXTS = [*["a dog runs in the park", "ein Hund läuft im Park", "赤い丸と犬", "un chien court dans le parc"] * 8, "two dogs", "zwei Hunde"]
LANGUAGES = ["en", "de", "ja", "fr"]


@pytest.fixture(scope="module")
def tokenizer():
    return train_multilingual_tokenizer(TEXTS, LANGUAGES, 400, 80)


def test_ids_are_in_the_order_of_mbart(tokenizer):
    size = len(tokenizer)
    assert size <= 400
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3]) == ["<s>", "<pad>", "</s>", "<unk>"]
    assert tokenizer.convert_ids_to_tokens(list(range(size - 5, size))) == ["<en>", "<de>", "<ja>", "<fr>", "<mask>"]
    assert (tokenizer.bos_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.mask_token_id) == (0, 1, 2, size - 1)
    assert set(tokenizer.all_special_tokens) == {"<s>", "<pad>", "</s>", "<unk>", "<en>", "<de>", "<ja>", "<fr>", "<mask>"}
    assert tokenizer.model_max_length == 80


def test_a_text_is_begun_and_not_ended(tokenizer):
    assert tokenizer("a dog").tokens() == ["<s>", "Ġa", "Ġdog"]
    assert tokenizer.decode(tokenizer("a dog")["input_ids"], skip_special_tokens=True) == "a dog"


@pytest.mark.parametrize("text", ["🐕 x² — 42", "สุนัขวิ่ง", "ça, où?", "Ωmega"])
def test_nothing_is_unknown(tokenizer, text):
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.unk_token_id not in ids
    assert tokenizer.decode(ids) == unicodedata.normalize("NFKC", text)
    assert tokenizer(unicodedata.normalize("NFD", text), add_special_tokens=False)["input_ids"] == ids


def test_the_order_of_texts_makes_no_difference(tokenizer):
    turned = random.Random(1).sample(TEXTS, len(TEXTS))
    assert train_multilingual_tokenizer(turned, LANGUAGES, 400, 80).backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


def test_saved_and_loaded_beside_a_network_it_gives_the_same(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "mbart"}')
    loaded = load_tokenizer(tmp_path)
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert [loaded(text)["input_ids"] for text in TEXTS] == [tokenizer(text)["input_ids"] for text in TEXTS]
    assert loaded.all_special_tokens == tokenizer.all_special_tokens


def test_what_cannot_be_learned_is_named():
    with pytest.raises(UserError, match="no languages"):
        train_multilingual_tokenizer(TEXTS, [], 400, 80)
    with pytest.raises(UserError, match="a vocabulary of 260 is too small: 263 ids"):
        train_multilingual_tokenizer(TEXTS, ["en", "de"], 260, 80)
    with pytest.raises(UserError, match="no captions"):
        train_multilingual_tokenizer([], ["en"], 400, 80)
