import io
import os
import subprocess
import sys
import zlib

import numpy as np
import pytest

from raysys.data.tokenizer import train_tokenizer
from raysys.data.word_vectors import SkipGramSettings, WordVectors, token_sequences, train_word_vectors
from raysys.errors import UserError

SMALL = SkipGramSettings(size=16, window=2, epochs=20, subsampling=0)
CATS, DOGS = [10, 11], [20, 21]


def corpus(seed: int, sentences: int = 200) -> list[np.ndarray]:
    """Two topics of six words each, 30–35 and 40–45; tokens 10 and 11 occur in the one alone, 20 and 21 in the other."""
    draw = np.random.default_rng(seed)
    topics = [(CATS, np.arange(30, 36)), (DOGS, np.arange(40, 46))]
    chosen = [topics[topic] for topic in draw.integers(0, 2, sentences)]
    return [draw.permutation([draw.choice(animals), *draw.choice(words, 4)]) for animals, words in chosen]


def vector(found: WordVectors, language: int, token: int) -> np.ndarray:
    (row,) = np.flatnonzero((found.languages == language) & (found.tokens == token))
    return found.vectors[row] / np.linalg.norm(found.vectors[row])


def equal(one: WordVectors, other: WordVectors) -> bool:
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(one, other, strict=True))


def test_tokens_that_share_contexts_come_out_close():
    found = train_word_vectors({"en": corpus(0)}, SMALL, seed=0)
    within = [vector(found, 0, a) @ vector(found, 0, b) for a, b in (CATS, DOGS)]
    across = [vector(found, 0, a) @ vector(found, 0, b) for a in CATS for b in DOGS]
    assert min(within) > max(across) + 0.3


def test_there_is_a_row_for_each_pair_of_language_and_token_in_order():
    found = train_word_vectors({"de": [np.array([9, 7, 7])], "en": [], "fr": [np.array([7, 300]), np.array([], np.int32)]}, SMALL, 0)
    assert found.languages.tolist() == [0, 0, 2, 2]
    assert found.tokens.tolist() == [7, 9, 7, 300]
    assert found.vectors.shape == (4, 16)
    assert found.vectors.dtype == np.float32
    assert np.isfinite(found.vectors).all()
    assert (np.abs(found.vectors).max(axis=1) > 0).all()
    assert len(found) == 4


def test_rare_tokens_have_no_vector():
    sequences = {"de": [np.array([9, 7, 7])], "en": [np.array([9, 8])]}
    found = train_word_vectors(sequences, SMALL.model_copy(update={"minimal_count": 2}), 0)
    assert list(zip(found.languages.tolist(), found.tokens.tolist(), strict=True)) == [(0, 7)]


def test_languages_do_not_influence_each_other():
    both = train_word_vectors({"en": corpus(0), "de": corpus(1)}, SMALL, 0)
    alone = train_word_vectors({"de": corpus(1)}, SMALL, 0)
    assert np.array_equal(both.vectors[both.languages == 1], alone.vectors)
    same = train_word_vectors({"en": corpus(1), "de": corpus(1)}, SMALL, 0)
    english, german = (same.vectors[same.languages == language] for language in (0, 1))
    similarity = (english * german).sum(axis=1) / np.linalg.norm(english, axis=1) / np.linalg.norm(german, axis=1)
    assert similarity.mean() < 0.9, "equal captions in two languages have not been given the same random numbers"


def test_seeds_count():
    one, again, other = (train_word_vectors({"en": corpus(0)}, SMALL, seed) for seed in (1, 1, 2))
    assert equal(one, again)
    assert not np.allclose(one.vectors, other.vectors)


def test_vectors_are_the_same_in_every_process():
    program = "from tests.data.test_word_vectors import *; print(zlib.crc32(train_word_vectors({'en': corpus(0)}, SMALL, 0).dumps()))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1] == f"{zlib.crc32(train_word_vectors({'en': corpus(0)}, SMALL, 0).dumps())}\n"


def test_what_is_saved_is_loaded():
    found = train_word_vectors({"en": corpus(0, 20)}, SMALL, 0)
    assert equal(WordVectors.loads(found.dumps()), found)


def test_no_pickle_is_loaded():
    buffer = io.BytesIO()
    np.savez(buffer, languages=np.array([{}], dtype=object), tokens=np.zeros(1), vectors=np.zeros((1, 2)))
    with pytest.raises(ValueError, match="allow_pickle"):
        WordVectors.loads(buffer.getvalue())


def test_captions_become_sequences_of_their_language():
    captions = [("en", "a red dog"), ("de", "ein roter Hund"), ("en", "a dog [SEP]"), ("en", " ")] * 3
    tokenizer = train_tokenizer((caption for _, caption in captions), 300)
    found = token_sequences(captions, ["de", "en", "fr"], tokenizer, chunk=5)
    assert {language: len(own) for language, own in found.items()} == {"de": 3, "en": 9, "fr": 0}
    assert tokenizer.decode(found["en"][0]) == "a red dog"
    assert found["en"][0].tolist() == tokenizer("a red dog")["input_ids"][1:-1]
    assert tokenizer.decode(found["en"][1]) == "a dog", "special tokens are no words, even where a caption spells them out"
    assert found["en"][2].tolist() == []
    assert list(found) == ["de", "en", "fr"]


def test_without_gensim_the_person_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(UserError, match=r"pip install 'raysys\[baselines\]'"):
        train_word_vectors({"en": corpus(0)}, SMALL, 0)
