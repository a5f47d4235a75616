"""Text to rows of ids by a tokenizer's core, without torch or transformers."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer


@dataclass(frozen=True)
class TextForm:
    """How a text becomes ids."""

    max_tokens: int
    """Most word pieces, [CLS] and [SEP] included; longer texts are cut."""
    trigram_buckets: int = 0
    """Ids behind those of the vocabulary that character trigrams share by their hash; 0: no trigrams."""
    max_trigrams: int = 40
    """Most trigrams of a text."""

    @property
    def longest(self) -> int:
        """Most ids of a text."""
        return self.max_tokens + (self.max_trigrams if self.trigram_buckets else 0)


class EmptyTextError(ValueError):
    """A text without anything visible: it would get the vector of the special tokens, the same for all such texts."""

    def __init__(self, index: int, text: str):
        super().__init__(f"text {index} is empty: {text!r} has no visible character")
        self.index = index


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str], form: TextForm) -> list[tuple[list[int], bool]]:
    """Of each of `texts`: its ids with special tokens, then those of its trigrams; and whether word pieces were cut off.

    Safe in several threads at once: the tokenizer's own state is never changed.

    Raises:
        EmptyTextError: a text has no visible character; names its index.
        ValueError: `form.max_tokens` leaves no room for text.
    """
    room = form.max_tokens - tokenizer.num_special_tokens_to_add(False)
    if room < 1:
        raise ValueError(f"max_tokens {form.max_tokens} leaves no room for text beside the special tokens")
    rows, vocabulary = [], tokenizer.get_vocab_size()
    for index, encoding in enumerate(tokenizer.encode_batch([whole(text) for text in texts], add_special_tokens=False)):
        if not len(encoding):
            raise EmptyTextError(index, texts[index])
        too_long = len(encoding) > room
        if too_long:
            encoding.truncate(room)
        ids = tokenizer.post_process(encoding).ids
        if form.trigram_buckets:
            text = tokenizer.normalizer.normalize_str(whole(texts[index])) if tokenizer.normalizer else texts[index]
            found = trigrams(text)[: form.max_trigrams]
            ids += [vocabulary + zlib.crc32(trigram.encode()) % form.trigram_buckets for trigram in found]
        rows.append((ids, too_long))
    return rows


def trigrams(text: str) -> list[str]:
    """Character trigrams of the words of `text` in lower case, each word with its ends marked: ``<ab>`` gives ``<ab``, ``ab>``.

    As in Bojanowski et al. 2017 (Enriching Word Vectors with Subword Information), with n = 3 alone.
    """
    marked = [f"<{word}>" for word in text.lower().split()]
    return [word[start : start + 3] for word in marked for start in range(len(word) - 2)]


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ids padded to the longest, int64 [n, L], and their mask, int64 [n, L]: 1 at tokens, 0 at padding."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    longest = int(lengths.max(initial=0))
    mask = (np.arange(longest)[None] < lengths[:, None]).astype(np.int64)
    ids = np.full((len(rows), longest), pad_id, dtype=np.int64)
    ids[mask.astype(bool)] = [token for row in rows for token in row]
    return ids, mask


def whole(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates, which no tokenizer takes, as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
