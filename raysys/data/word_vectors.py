"""Word vectors of each language alone: skip-gram with negative sampling over the token ids of its captions."""

import io
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pydantic

from raysys.data.encoding import whole
from raysys.errors import UserError
from raysys.settings import Settings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class SkipGramSettings(Settings):
    """Skip-gram with negative sampling (Mikolov et al. 2013, Distributed Representations of Words and Phrases)."""

    size: pydantic.PositiveInt = 300
    """Size of the word vectors."""
    window: pydantic.PositiveInt = 5
    """Most tokens between a token and one that it is to predict; drawn anew for each token, from 1 to this."""
    negatives: pydantic.PositiveInt = 5
    """Random tokens that each prediction is told from."""
    subsampling: pydantic.NonNegativeFloat = 1e-3
    """Share of a language's tokens above which a token is left out now and then, the more so the more frequent it is; 0: never."""
    epochs: pydantic.PositiveInt = 5
    """Passes over the captions of a language; 5 do for millions of tokens, ten thousand need 30."""
    minimal_count: pydantic.PositiveInt = 1
    """Tokens that are rarer in a language have no vector in it."""


class WordVectors(NamedTuple):
    """One vector for each pair of a language and a token that occurs in it, R pairs."""

    languages: np.ndarray
    """int64 [R], index into the run's languages, ascending"""
    tokens: np.ndarray
    """int64 [R], token ids, ascending within a language"""
    vectors: np.ndarray
    """float32 [R, size]"""

    def __len__(self) -> int:
        return len(self.tokens)

    def dumps(self) -> bytes:
        """An ``.npz`` file that :meth:`loads` reads."""
        buffer = io.BytesIO()
        np.savez(buffer, **self._asdict())
        return buffer.getvalue()

    @classmethod
    def loads(cls, data: bytes) -> "WordVectors":
        """What :meth:`dumps` wrote."""
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return cls(*(arrays[name] for name in cls._fields))


def token_sequences(
    captions: Iterable[tuple[str, str]], languages: Sequence[str], tokenizer: "PreTrainedTokenizerFast", chunk: int = 4096
) -> dict[str, list[np.ndarray]]:
    """Captions as token ids without special tokens, int32 [L] each, by language.

    Args:
        captions: pairs of a language and a caption in it.
        languages: all there are, in the run's order, which is that of the result.
        tokenizer: the run's.
        chunk: captions that are tokenised at a time.
    """
    sequences: dict[str, list[np.ndarray]] = {language: [] for language in languages}
    special, rest = set(tokenizer.all_special_ids), iter(captions)
    while some := list(itertools.islice(rest, chunk)):
        found = tokenizer.backend_tokenizer.encode_batch([whole(caption) for _, caption in some], add_special_tokens=False)
        for (language, _), encoding in zip(some, found, strict=True):
            sequences[language].append(np.array([token for token in encoding.ids if token not in special], dtype=np.int32))
    return sequences


def train_word_vectors(sequences: Mapping[str, Sequence[np.ndarray]], settings: SkipGramSettings, seed: int) -> WordVectors:
    """Skip-gram vectors of the tokens of each language, from its own sequences alone.

    The same sequences and seed give the same vectors, whatever other languages there are. A language without a token that occurs
    `minimal_count` times has none.

    Args:
        sequences: token ids, int [L] each, by language in the run's order.
        settings: of the training.
        seed: of all random numbers.

    Raises:
        UserError: gensim is not installed.
    """
    trained = [_train(_Texts(own), settings, zlib.crc32(f"{seed} {language}".encode())) for language, own in sequences.items()]
    languages = np.repeat(np.arange(len(trained)), [len(tokens) for tokens, _ in trained])
    tokens, vectors = (np.concatenate(parts) for parts in zip(*trained, strict=True))
    return WordVectors(languages, tokens, vectors)


class _Texts:
    """Sequences of token ids as gensim reads them, as often as it likes: lists of words."""

    def __init__(self, sequences: Sequence[np.ndarray]):
        self.sequences = sequences

    def __iter__(self) -> Iterator[list[str]]:
        return (list(map(str, sequence.tolist())) for sequence in self.sequences)


def _train(texts: _Texts, settings: SkipGramSettings, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Token ids, int64 [R] ascending, and their vectors, float32 [R, size]."""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise UserError("word vectors need gensim, which is not installed: pip install 'raysys[baselines]'") from None

    # One thread: the order in which several would change the vectors is left to chance.
    network = Word2Vec(
        vector_size=settings.size,
        window=settings.window,
        negative=settings.negatives,
        sample=settings.subsampling,
        epochs=settings.epochs,
        min_count=settings.minimal_count,
        sg=1,
        workers=1,
        seed=seed,
    )
    network.build_vocab(texts)
    if len(network.wv):
        network.train(texts, total_examples=network.corpus_count, epochs=network.epochs)
    tokens = np.array(network.wv.index_to_key, dtype=np.int64)
    order = tokens.argsort()
    return tokens[order], network.wv.vectors[order].reshape(len(tokens), settings.size)
