"""A pretrained tokenizer cut down to the pieces that some texts use (RC³ §3.2)."""

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from raysys.data.encoding import whole
from raysys.data.multilingual_tokenizer import FIRST, MASK, UNK, multilingual_tokenizer
from raysys.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

KEPT = "kept.json"
_AT_ONCE = 1024


@dataclass(frozen=True)
class Reduction:
    """A tokenizer that was cut down, and what of it was kept."""

    tokenizer: "PreTrainedTokenizerFast"
    """Puts ``<s>`` before a text and nothing behind it."""
    kept: list[int]
    """The id that each of its pieces had, increasing: its id `i` was `kept[i]`."""
    cover: float
    """Share of the texts' pieces that were kept, 0 to 1."""
    pieces_before: int
    """Size of the vocabulary that was cut."""
    pieces_after: int
    """Size of what is left."""

    def save(self, folder: str | Path) -> None:
        """Write the tokenizer, and beside it ``kept.json`` for :func:`load_kept`."""
        self.tokenizer.save_pretrained(folder)
        told = {"cover": self.cover, "pieces_before": self.pieces_before, "pieces_after": self.pieces_after, "kept": self.kept}
        (Path(folder) / KEPT).write_text(json.dumps(told) + "\n", encoding="utf-8")


def load_kept(folder: str | Path) -> list[int] | None:
    """`kept` of the reduction in `folder`; None where the tokenizer there is whole."""
    path = Path(folder) / KEPT
    return [int(number) for number in json.loads(path.read_text(encoding="utf-8"))["kept"]] if path.is_file() else None


def reduce_vocabulary(tokenizer: "PreTrainedTokenizerFast", texts: Iterable[str], cover: float) -> Reduction:
    """Keep the most frequent pieces of `texts` until they are `cover` of all pieces in them; special tokens and languages stay always.

    Texts of kept pieces are cut into the same pieces as before. The others are cut into smaller ones, for the characters (Unigram) or
    bytes (byte-level BPE) of all texts stay too, so that no text of `texts` becomes unknown that was not: what is decoded is the same.

    Args:
        tokenizer: with a Unigram model, as mBART's, or BPE.
        texts: all that the network will be trained and tested on.
        cover: 0 to 1; 1 keeps every piece that occurs.

    Raises:
        UserError: no texts, or a tokenizer with another kind of model.
    """
    core = tokenizer.backend_tokenizer
    state = json.loads(core.to_str())
    kind = state["model"]["type"]
    if kind not in ("Unigram", "BPE"):
        raise UserError(f"a vocabulary of the kind {kind} cannot be cut down, only Unigram and BPE; give a tokenizer such as mBART-50's")
    vocabulary = core.get_vocab()
    if missing := [token for token in (*FIRST, MASK) if token not in vocabulary]:
        raise UserError(f"the tokenizer lacks the special tokens {' '.join(missing)}; give one such as mBART-50's")
    special: set[int] = {vocabulary[token] for token in (*FIRST, MASK)} | {token["id"] for token in state["added_tokens"]}
    unknown = vocabulary[UNK]
    counts = _counts(core, texts)
    counts[sorted(special - {unknown})] = 0
    total = int(counts.sum())
    if not total:
        raise UserError("there are no texts to cut the vocabulary down to")
    counts[unknown] = 0

    order = np.argsort(-counts, kind="stable")
    needed = int(np.searchsorted(np.cumsum(counts[order]), cover * total)) + 1
    frequent = {int(piece) for piece in order[:needed] if counts[piece]}
    if kind == "Unigram":
        kept = sorted(special | _closed_unigram(state["model"], frequent, np.flatnonzero(counts).tolist()))
    else:
        kept = sorted(special | _closed_bpe(state["model"], frequent))

    new = {old: number for number, old in enumerate(kept)}
    cut = _cut_unigram if kind == "Unigram" else _cut_bpe
    state["model"] |= cut(state["model"], new)
    state["added_tokens"] = [token | {"id": new[token["id"]]} for token in state["added_tokens"]]
    state["post_processor"] = None
    reduced = multilingual_tokenizer(Tokenizer.from_str(json.dumps(state)), tokenizer.model_max_length)
    return Reduction(reduced, kept, float(counts[kept].sum() / total), core.get_vocab_size(), len(kept))


def _counts(core: Tokenizer, texts: Iterable[str]) -> np.ndarray:
    """How often each piece occurs in the texts: int64 [V]."""
    size = core.get_vocab_size()
    counts = np.zeros(size, dtype=np.int64)
    waiting = iter(texts)
    while batch := [whole(text) for text in itertools.islice(waiting, _AT_ONCE)]:
        ids = [encoding.ids for encoding in core.encode_batch_fast(batch, add_special_tokens=False)]
        counts += np.bincount(np.fromiter(itertools.chain.from_iterable(ids), dtype=np.int64), minlength=size)
    return counts


def _closed_unigram(model: dict[str, Any], frequent: set[int], used: Sequence[int]) -> set[int]:
    """`frequent` and what it takes that texts of these pieces are cut as before, and that no text of `used` pieces becomes unknown.

    A Unigram model chooses the cut with the highest sum of scores, so pieces that are not there cannot change a choice that was made
    among those that are. Unknown characters score by the lowest score in the vocabulary, hence the piece that has it.
    """
    pieces = [piece for piece, _ in model["vocab"]]
    single = {piece: number for number, piece in enumerate(pieces) if len(piece) == 1}
    kept = frequent | {min(range(len(pieces)), key=lambda number: model["vocab"][number][1])}
    for number in used:
        letters = set(pieces[number])
        # A piece with a letter that is none itself cannot be cut smaller.
        kept |= {single[letter] for letter in letters} if letters <= single.keys() else {number}
    return kept


def _cut_unigram(model: dict[str, Any], new: dict[int, int]) -> dict[str, Any]:
    vocabulary = model["vocab"]
    return {"vocab": [vocabulary[old] for old in new if old < len(vocabulary)], "unk_id": new[model["unk_id"]]}


def _closed_bpe(model: dict[str, Any], frequent: set[int]) -> set[int]:
    """`frequent`, all pieces that they are merged from, and single letters (bytes).

    A text of these pieces is cut as before: of the merges that made its pieces none is missing, and others are not applied in it.
    """
    vocabulary = model["vocab"]
    sources: dict[int, list[int]] = {}
    for left, right in model["merges"]:
        sources.setdefault(vocabulary[left + right], []).extend((vocabulary[left], vocabulary[right]))
    kept, waiting = set(frequent), list(frequent)
    while waiting:
        new = set(sources.get(waiting.pop(), ())) - kept
        kept |= new
        waiting.extend(new)
    return kept | {number for piece, number in vocabulary.items() if len(piece) == 1}


def _cut_bpe(model: dict[str, Any], new: dict[int, int]) -> dict[str, Any]:
    vocabulary = {piece: new[old] for piece, old in model["vocab"].items() if old in new}
    merges = [(left, right) for left, right in model["merges"] if {left, right, left + right} <= vocabulary.keys()]
    return {"vocab": vocabulary, "merges": merges}
