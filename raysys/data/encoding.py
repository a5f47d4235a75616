"""Text to rows of ids by a tokenizer's core, without torch or transformers."""

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer


class EmptyTextError(ValueError):
    """A text without anything visible: it would get the vector of the special tokens, the same for all such texts."""

    def __init__(self, index: int, text: str):
        super().__init__(f"text {index} is empty: {text!r} has no visible character")
        self.index = index


def encode_rows(tokenizer: Tokenizer, texts: Sequence[str], max_length: int) -> tuple[list[list[int]], int]:
    """Ids of `texts` with special tokens, each cut to `max_length` (special tokens kept), and how many were cut.

    Safe in several threads at once: the tokenizer's own state is never changed.

    Raises:
        EmptyTextError: a text has no visible character; names its index.
        ValueError: `max_length` leaves no room for text.
    """
    room = max_length - tokenizer.num_special_tokens_to_add(False)
    if room < 1:
        raise ValueError(f"max_length {max_length} leaves no room for text beside the special tokens")
    rows, truncated = [], 0
    for index, encoding in enumerate(tokenizer.encode_batch([whole(text) for text in texts], add_special_tokens=False)):
        if not len(encoding):
            raise EmptyTextError(index, texts[index])
        if len(encoding) > room:
            encoding.truncate(room)
            truncated += 1
        rows.append(tokenizer.post_process(encoding).ids)
    return rows, truncated


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
