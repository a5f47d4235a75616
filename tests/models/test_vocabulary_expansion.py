"""Vocabulary expansion: least squares in closed form, what becomes of ids and vectors, and a round trip over files."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from raysys.data.encoding import TextForm
from raysys.data.tokenizer import encode, load_tokenizer
from raysys.data.vector_files import VectorFile
from raysys.data.word_tokenizer import train_word_tokenizer
from raysys.errors import UserError
from raysys.models.skip_thought import SentenceEncoder, SkipThoughtSettings
from raysys.models.vocabulary_expansion import expand, expand_encoder, linear_map

KNOWN = [f"{letter}{other}" for letter in "abcdef" for other in "xyz"]
NEW = ["zebra", "okapi", "gnu"]
LARGE, SMALL = 5, 4
RANDOM = np.random.default_rng(0)
MAP = RANDOM.normal(size=(LARGE, SMALL))


@pytest.fixture
def tokenizer():
    return train_word_tokenizer([" ".join(KNOWN)] * 2, 100, 32)


def vectors_of(words: list[str]) -> VectorFile:
    return VectorFile(words, np.random.default_rng(len(words)).normal(size=(len(words), LARGE)).astype(np.float32))


def trained(tokenizer, large: VectorFile, noise: float = 0.0, more: int = 0) -> np.ndarray:
    """Vectors that are the linear map of the large ones where there are such, with noise."""
    table = RANDOM.normal(size=(len(tokenizer) + more, SMALL))
    for word, vector in zip(large.words, large.vectors, strict=True):
        if word in tokenizer.get_vocab():
            table[tokenizer.get_vocab()[word]] = vector @ MAP + noise * RANDOM.normal(size=SMALL)
    return table


@pytest.mark.parametrize("words", [LARGE, 12, 400])
def test_the_map_is_the_least_squares_one(words):
    large, small = RANDOM.normal(size=(words, LARGE)), RANDOM.normal(size=(words, SMALL))
    found = linear_map(large, small)
    np.testing.assert_allclose(found, np.linalg.lstsq(large, small, rcond=None)[0], atol=1e-9)
    np.testing.assert_allclose(large.T @ (large @ found - small), 0, atol=1e-9, err_msg="the normal equations")
    np.testing.assert_allclose(linear_map(large.astype(np.float32), (large @ MAP).astype(np.float32)), MAP, atol=1e-4)


def test_too_few_words_are_refused():
    with pytest.raises(UserError, match="only 4 words have a trained vector and one in the file, but vectors of size 5 need 5"):
        linear_map(RANDOM.normal(size=(4, 5)), RANDOM.normal(size=(4, 2)))


def test_an_exact_map_is_recovered_for_new_words(tokenizer):
    large = vectors_of([*NEW, *KNOWN])
    table = trained(tokenizer, large, more=3)
    expanded, matrix = expand(tokenizer, table, large)
    assert matrix.dtype == np.float32
    assert len(matrix) == len(expanded) == len(tokenizer) + len(NEW), "rows behind the vocabulary are dropped"
    np.testing.assert_array_equal(matrix[: len(tokenizer)], table[: len(tokenizer)].astype(np.float32))
    np.testing.assert_allclose(matrix[len(tokenizer) :], large.vectors[: len(NEW)] @ MAP, atol=1e-5)
    assert expanded.convert_tokens_to_ids(NEW) == list(range(len(tokenizer), len(expanded)))
    assert expanded.convert_tokens_to_ids(KNOWN) == tokenizer.convert_tokens_to_ids(KNOWN)
    assert expanded.all_special_ids == tokenizer.all_special_ids
    assert tokenizer.convert_tokens_to_ids("zebra") == tokenizer.unk_token_id, "the tokenizer that was given is as before"


def test_with_noise_new_words_are_where_the_normal_equations_put_them(tokenizer):
    large = vectors_of([*KNOWN, *NEW])
    table = trained(tokenizer, large, noise=0.5)
    x, y = large.vectors[: len(KNOWN)].astype(np.float64), table[tokenizer.convert_tokens_to_ids(KNOWN)]
    _, matrix = expand(tokenizer, table, large)
    expected = large.vectors[len(KNOWN) :] @ np.linalg.solve(x.T @ x, x.T @ y)
    np.testing.assert_allclose(matrix[len(tokenizer) :], expected, rtol=1e-4, atol=1e-5)


def test_words_that_the_tokenizer_never_gives_are_left_out(tokenizer):
    words = [*KNOWN, "Zebra", "zebra", "New_York", "don't", "[SEP]", "[UNK]", "..", "\u200b", "2", "！"]
    large = vectors_of(words)
    expanded, matrix = expand(tokenizer, trained(tokenizer, large), large)
    added = expanded.convert_ids_to_tokens(range(len(tokenizer), len(expanded)))
    assert added == ["zebra", "2", "!"]
    np.testing.assert_allclose(matrix[len(tokenizer)], large.vectors[words.index("Zebra")] @ MAP, atol=1e-4)
    assert len(matrix) == len(expanded)


def test_an_expanded_encoder_is_saved_and_loaded_as_the_trained_one(tokenizer, tmp_path):
    torch.manual_seed(0)
    settings = SkipThoughtSettings(word_size=SMALL, size=6, vocabulary_size=len(tokenizer) + 2)
    encoder = SentenceEncoder(settings)
    texts = ["ax by okapi", "cz ZEBRA unheard-of"]

    def vectors(encoder: SentenceEncoder, tokenizer, texts: list[str]) -> torch.Tensor:
        with torch.inference_mode():
            tokens = encode(tokenizer, texts, TextForm(32))
            return encoder(tokens.input_ids, tokens.attention_mask)

    before = vectors(encoder, tokenizer, texts)
    larger, expanded = expand_encoder(encoder, tokenizer, vectors_of([*KNOWN, *NEW]))
    assert larger.settings.vocabulary_size == len(expanded) == larger.words.num_embeddings
    assert larger.words.weight.requires_grad
    found = vectors(larger, expanded, texts)
    assert (found - before).abs().amax(dim=1).min() > 1e-5, "new words are read"
    assert vectors(larger, expanded, ["ax by", "nothing known"]).equal(vectors(encoder, tokenizer, ["ax by", "nothing known"]))
    assert vectors(encoder, tokenizer, texts).equal(before), "the trained encoder is as before"

    expanded.save_pretrained(tmp_path)
    save_file(larger.state_dict(), tmp_path / "encoder.safetensors")
    (tmp_path / "settings.json").write_text(larger.settings.model_dump_json())
    loaded = SentenceEncoder(SkipThoughtSettings.model_validate_json((tmp_path / "settings.json").read_text()))
    loaded.load_state_dict(load_file(tmp_path / "encoder.safetensors"))
    assert vectors(loaded, load_tokenizer(tmp_path), texts).equal(found)
