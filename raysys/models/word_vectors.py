"""The text network of MUVE (Sigurdsson et al. 2020, Visual Grounding in Video for Unsupervised Word Translation).

Each language has word vectors and an adapter of its own; all share one dense layer, whose outputs are pooled by their maximum over
the words. Words are pieces of the vocabulary that the languages share. Sizes are those of Globetrotter's comparison.
"""

import pydantic
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from raysys.data.word_vectors import SkipGramSettings, WordVectors
from raysys.settings import Settings


class MuveSettings(Settings):
    """Word vectors of each language, an adapter for each, a shared layer, the maximum over the words."""

    skip_gram: SkipGramSettings = SkipGramSettings()
    """How the word vectors are trained, before anything else, on the training captions of each language."""
    tune_vectors: bool = True
    """Go on training the word vectors together with the network."""
    hidden_size: pydantic.PositiveInt = 512
    """Size of a caption's vector, before the head."""
    rows: pydantic.NonNegativeInt = 0
    """Pairs of a language and a token with a vector; found from the training captions, not to be set."""


class LanguageAdapters(nn.Module):
    """A dense layer for each of M languages, held as one weight.

    With a layer for each language, a batch would leave those of absent languages without a gradient, and workers would call
    different layers, for which an engine that partitions weights would wait for ever.
    """

    def __init__(self, languages: int, size: int):
        super().__init__()
        bound = size**-0.5  # as a dense layer of this size begins
        self.weight = nn.Parameter(torch.empty(languages, size, size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(languages, size).uniform_(-bound, bound))

    def forward(self, words: Tensor, languages: Tensor) -> Tensor:
        """Each word by its language's layer: float [t, size], int64 [t] → [t, size]."""
        weights, biases = self.weight.unbind(), self.bias.unbind()  # once: a gradient per slice would be as large as the whole
        order = languages.argsort(stable=True)
        groups = words[order].split(languages.bincount(minlength=len(weights)).tolist())
        return torch.cat(list(map(F.linear, groups, weights, biases)))[order.argsort()]


class MuveTextEncoder(nn.Module):
    """Token ids and their language → one vector per caption.

    Begins with vectors of zero; :meth:`begin` gives it those of the training captions.

    Args:
        settings: sizes; `rows` is the number of vectors.
        languages: how many there are.
        vocabulary_size: ids of the tokenizer.
    """

    rows: Tensor

    def __init__(self, settings: MuveSettings, languages: int, vocabulary_size: int):
        super().__init__()
        self.settings = settings
        self.hidden_size = settings.hidden_size
        size = settings.skip_gram.size
        # Most tokens occur in few languages: rows for those that do, found by a table; row 0, which stays zero, for all others.
        self.register_buffer("rows", torch.zeros(languages, vocabulary_size, dtype=torch.int32))
        self.vectors = nn.Embedding(1 + settings.rows, size, padding_idx=0)
        nn.init.zeros_(self.vectors.weight)
        self.vectors.requires_grad_(settings.tune_vectors)
        self.adapters = LanguageAdapters(languages, size)
        self.dense = nn.Linear(size, settings.hidden_size)

    def begin(self, found: WordVectors) -> None:
        """Take over the word vectors that were trained on the captions.

        Raises:
            ValueError: they are not as many as, or of another size than, the settings say.
        """
        expected = (self.settings.rows, self.settings.skip_gram.size)
        if found.vectors.shape != expected:
            raise ValueError(f"word vectors of shape {found.vectors.shape}, but the model's settings say {expected}")
        with torch.no_grad():
            self.rows.zero_()
            self.rows[torch.from_numpy(found.languages), torch.from_numpy(found.tokens)] = torch.arange(
                1, 1 + len(found), dtype=torch.int32
            )
            self.vectors.weight[1:] = torch.from_numpy(found.vectors)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """Caption vectors, float32 [n, hidden_size], none of whose entries is negative.

        Tokens without a vector in their language (special ones among them) and padding have no influence; a caption of nothing
        else gives the zero vector.

        Args:
            input_ids: int64 [n, L].
            attention_mask: [n, L], 1 at tokens and 0 at padding.
            languages: int64 [n], each caption's language.
        """
        words, captions = self.adapted(input_ids, attention_mask, languages)
        values = F.relu(self.dense(words)).float()
        # Over the words and zeros: what ReLU leaves is never below.
        nothing = values.new_zeros(len(input_ids), self.hidden_size)
        return nothing.scatter_reduce(0, captions[:, None].expand_as(values), values, "amax")

    def adapted(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> tuple[Tensor, Tensor]:
        """Of all tokens that have a vector: it after the language's adapter, [t, size], and which caption they are in, int64 [t]."""
        rows = torch.where(attention_mask.bool(), self.rows[languages[:, None], input_ids], 0)
        captions, places = rows.nonzero(as_tuple=True)
        return self.adapters(self.vectors(rows[captions, places]), languages[captions]), captions

    def word_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """Mean of the adapted vectors of a word's pieces, float32 [n, size]; zeros where no piece has a vector."""
        pieces, words = self.adapted(input_ids, attention_mask, languages)
        total = torch.zeros(len(input_ids), pieces.shape[1], device=pieces.device).index_add(0, words, pieces.float())
        return total / words.bincount(minlength=len(input_ids)).clamp(min=1)[:, None]
