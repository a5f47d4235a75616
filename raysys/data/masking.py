"""Which tokens of a caption the cloze objective hides, and what stands in their place: single tokens, or whole words."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import regex
from numpy.typing import NDArray
from tokenizers import Tokenizer, pre_tokenizers

from raysys.shards.sentences import UNPARTED

PREDICTED_SHARE = 1 / 6
WORD_SHARE = 0.15
MASKED_SHARE, RANDOM_SHARE = 0.8, 0.1  # of the predicted tokens; the rest are kept as they are
IGNORED = -100
"""Label of a token that is not predicted (what torch's cross-entropy leaves out)."""


def mask_tokens(
    input_ids: NDArray[np.int64],
    special_ids: Collection[int],
    mask_id: int,
    vocabulary_size: int,
    draws: NDArray[np.floating],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hide tokens for the cloze objective (BERT's scheme with Globetrotter's share).

    Each token that is not special is predicted with probability 1/6; of the predicted, 80 % become the mask token, 10 % a random token
    that is not special, 10 % stay. A caption with any such token has at least one predicted: that with the smallest draw.

    Pure function of its arguments. Draw for the whole global batch at the full caption length and hand over the rows of a worker: the
    masks are then the same for any number of workers and any padding.

    Args:
        input_ids: tokens padded to L, int64 [n, L].
        special_ids: tokens never predicted and never drawn: padding, start, end, mask, unknown.
        mask_id: the mask token.
        vocabulary_size: random tokens are below this; ids from it on are never predicted.
        draws: uniform in [0, 1), float [n, ≥ L, 3]: whether predicted, what is done, which random token.

    Returns:
        The tokens to read, int64 [n, L], and the tokens to predict, int64 [n, L], :data:`IGNORED` where none is.

    Raises:
        ValueError: draws of the wrong shape, or a vocabulary of special tokens alone.
    """
    rows, length = input_ids.shape
    if draws.ndim != 3 or len(draws) != rows or draws.shape[1] < length or draws.shape[2] != 3:
        raise ValueError(f"masking {rows} captions of {length} tokens needs draws [{rows}, >={length}, 3], not {list(draws.shape)}")
    special = np.fromiter(special_ids, dtype=np.int64)
    ordinary = np.setdiff1d(np.arange(vocabulary_size), special)
    if not len(ordinary):
        raise ValueError(f"the vocabulary of {vocabulary_size} tokens holds special tokens alone")
    chance, action, choice = np.moveaxis(draws[:, :length], 2, 0)

    predictable = (input_ids < vocabulary_size) & ~np.isin(input_ids, special)
    predicted = predictable & (chance < PREDICTED_SHARE)
    neglected = np.flatnonzero(predictable.any(axis=1) & ~predicted.any(axis=1))
    predicted[neglected, np.where(predictable, chance, np.inf)[neglected].argmin(axis=1)] = True

    return _hidden(input_ids, predicted, action, choice, ordinary, mask_id)


@dataclass(frozen=True)
class WordPieces:
    """What masking whole words needs to know of a vocabulary of V pieces."""

    begins: NDArray[np.bool_]
    """[V], whether a piece begins a word. In scripts without spaces every piece does."""
    ordinary: NDArray[np.bool_]
    """[V], whether a piece is text: not special, no tag of a language, and no space alone."""
    mask_id: int

    @classmethod
    def of(cls, tokenizer: Tokenizer, special_ids: Collection[int], mask_id: int) -> "WordPieces":
        """Ask a tokenizer's own pre-tokenizer which pieces begin a word where they follow a letter.

        Args:
            tokenizer: the core of a fast tokenizer.
            special_ids: pieces that are no text, beside those that the tokenizer itself calls special.
            mask_id: the mask token.
        """
        size = tokenizer.get_vocab_size()
        ordinary = np.ones(size, dtype=bool)
        ordinary[[*special_ids, *(number for number, token in tokenizer.get_added_tokens_decoder().items() if token.special)]] = False
        letter = tokenizer.encode("a", add_special_tokens=False).ids
        before = len(tokenizer.decode(letter))
        texts = tokenizer.decode_batch([[*letter, piece] for piece in range(size)])
        ordinary &= np.array([bool(text[before:].strip()) for text in texts])
        begins = [_parted(tokenizer, before, piece, text) for piece, text in enumerate(texts)]
        return cls(np.array(begins), ordinary, mask_id)


_UNPARTED = regex.compile(f"[{UNPARTED}]")
_BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
_UNPARTED_BYTES = frozenset(_BYTES.pre_tokenize_str(chr(code))[0][0][0] for code in range(0x3000, 0xA000, 0x1000))
"""How byte-level vocabularies write the bytes that kana and Han begin with in UTF-8."""
_PART_OF_CHARACTER = "\ufffd"


def _parted(tokenizer: Tokenizer, before: int, piece: int, text: str) -> bool:
    """Whether a new word begins in `text` at place `before`, where `piece` does."""
    if text[before : before + 1] == _PART_OF_CHARACTER:
        return str(tokenizer.id_to_token(piece))[0] in _UNPARTED_BYTES
    if _UNPARTED.match(text, before):
        return True
    words = tokenizer.pre_tokenizer.pre_tokenize_str(text) if tokenizer.pre_tokenizer else []
    return before in {start for _, (start, _) in words}


def mask_words(
    input_ids: NDArray[np.int64], pieces: WordPieces, draws: NDArray[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hide whole words for masked language modelling (RC³, section 3.2: 15 % of the words).

    Each word is predicted with probability 0.15, in all its pieces; of the predicted words, 80 % become mask tokens, 10 % random pieces,
    10 % stay. A text with any word has at least one predicted: that with the smallest draw.

    Pure function of its arguments, and for each text of its own tokens and draws alone: with draws by address, masks are the same for any
    number of workers and any padding.

    Args:
        input_ids: tokens padded to L, int64 [n, L].
        pieces: of the vocabulary.
        draws: uniform in [0, 1), float [n, ≥ L, 3]: at a word's first piece whether it is predicted and what is done; which random piece.

    Returns:
        The tokens to read, int64 [n, L], and the tokens to predict, int64 [n, L], :data:`IGNORED` where none is.

    Raises:
        ValueError: draws of the wrong shape, or a vocabulary of special tokens alone.
    """
    rows, length = input_ids.shape
    if draws.ndim != 3 or len(draws) != rows or draws.shape[1] < length or draws.shape[2] != 3:
        raise ValueError(f"masking {rows} texts of {length} tokens needs draws [{rows}, >={length}, 3], not {list(draws.shape)}")
    ordinary = np.flatnonzero(pieces.ordinary)
    if not len(ordinary):
        raise ValueError(f"the vocabulary of {len(pieces.ordinary)} tokens holds special tokens alone")
    if not length:
        return input_ids.copy(), np.full_like(input_ids, IGNORED)
    chance, action, choice = np.moveaxis(draws[:, :length], 2, 0)
    text = pieces.ordinary[input_ids]
    after_text = np.pad(text, ((0, 0), (1, 0)))[:, :-1]
    first = text & (pieces.begins[input_ids] | ~after_text)
    predicted = first & (chance < WORD_SHARE)
    neglected = np.flatnonzero(first.any(axis=1) & ~predicted.any(axis=1))
    predicted[neglected, np.where(first, chance, np.inf)[neglected].argmin(axis=1)] = True
    # Of every piece, where its word begins; what stands before the first word is no text, and stays.
    begin = np.maximum.accumulate(np.where(first, np.arange(length), 0), axis=1)
    predicted = text & np.take_along_axis(predicted, begin, axis=1)
    return _hidden(input_ids, predicted, np.take_along_axis(action, begin, axis=1), choice, ordinary, pieces.mask_id)


def _hidden(
    input_ids: NDArray[np.int64],
    predicted: NDArray[np.bool_],
    action: NDArray[np.floating],
    choice: NDArray[np.floating],
    ordinary: NDArray[np.int64],
    mask_id: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The tokens to read and to predict; random tokens are of `ordinary`."""
    masked = predicted & (action < MASKED_SHARE)
    replaced = predicted & ~masked & (action < MASKED_SHARE + RANDOM_SHARE)
    random_ids = ordinary[(choice.astype(np.float64) * len(ordinary)).astype(np.int64)]
    read = np.where(masked, mask_id, np.where(replaced, random_ids, input_ids))
    return read, np.where(predicted, input_ids, IGNORED)
