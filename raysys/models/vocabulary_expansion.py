"""Vocabulary expansion (Kiros et al. 2015, Skip-Thought Vectors, §2.2): words that training never saw, read by a linear map.

The map leads from a larger space of word vectors to that of the trained ones, and is fitted on the words that both have.
"""

import copy
import json
from typing import TYPE_CHECKING

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from raysys.data.tokenizer import fast_tokenizer
from raysys.data.vector_files import VectorFile
from raysys.errors import UserError
from raysys.models.skip_thought import SentenceEncoder

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def linear_map(large: np.ndarray, trained: np.ndarray) -> np.ndarray:
    """The matrix W with the least ‖large W − trained‖²: float64 [D, w], in closed form.

    Args:
        large: vectors of k words in the larger space, float [k, D].
        trained: of the same words, float [k, w].

    Raises:
        UserError: fewer words than D, which any map would fit.
    """
    words, size = large.shape
    if words < size:
        raise UserError(f"only {words} words have a trained vector and one in the file, but vectors of size {size} need {size} at least")
    return np.linalg.lstsq(large.astype(np.float64), trained.astype(np.float64), rcond=None)[0]


def expand(tokenizer: "PreTrainedTokenizerFast", words: np.ndarray, large: VectorFile) -> tuple["PreTrainedTokenizerFast", np.ndarray]:
    """A tokenizer that knows the words of `large` too, and the vectors of all its words, float32 [V', w].

    Ids and vectors of the words that were trained stay as they are; new words follow them. Words of `large` that the tokenizer would cut
    into several, or never give, are left out; of those that it takes for one (The, the) the first counts.

    Args:
        tokenizer: of whole words, from :func:`raysys.data.word_tokenizer.train_word_tokenizer`.
        words: the trained vectors, float [V, w]; rows behind the tokenizer's vocabulary are dropped.
        large: word vectors of a larger vocabulary.

    Raises:
        UserError: too few words are shared.
    """
    known = tokenizer.get_vocab()
    rows: dict[str, int] = {}
    for row, word in enumerate(large.words):
        pieces = _pieces(tokenizer.backend_tokenizer, word)
        if len(pieces) == 1:
            rows.setdefault(pieces[0], row)
    special = set(tokenizer.all_special_tokens)
    shared = [word for word in rows if word in known and word not in special]
    new = [word for word in rows if word not in known]
    mapped = linear_map(large.vectors[[rows[word] for word in shared]], words[[known[word] for word in shared]])
    added = large.vectors[[rows[word] for word in new]] @ mapped.astype(np.float32)
    matrix = np.concatenate([words[: len(known)], added]).astype(np.float32)

    state = json.loads(tokenizer.backend_tokenizer.to_str())
    state["model"]["vocab"] |= {word: len(known) + number for number, word in enumerate(new)}
    return fast_tokenizer(Tokenizer.from_str(json.dumps(state)), tokenizer.model_max_length), matrix


def _pieces(tokenizer: Tokenizer, word: str) -> list[str]:
    return [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(word))]


def expand_encoder(
    encoder: SentenceEncoder, tokenizer: "PreTrainedTokenizerFast", large: VectorFile
) -> tuple[SentenceEncoder, "PreTrainedTokenizerFast"]:
    """Encoder and tokenizer with the words of `large` beside those they were trained on; arguments and errors as of :func:`expand`.

    Both are saved and loaded as before: the new encoder's settings say how many words it has. `encoder` itself stays as it is.
    """
    table = encoder.words.weight.detach()
    expanded, matrix = expand(tokenizer, table.float().cpu().numpy(), large)
    larger = copy.deepcopy(encoder)
    larger.settings = encoder.settings.model_copy(update={"vocabulary_size": len(matrix)})
    larger.words = nn.Embedding.from_pretrained(torch.from_numpy(matrix).to(table), freeze=False)
    return larger, expanded
