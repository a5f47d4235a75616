"""SkipThought (Kiros et al. 2015): a sentence's vector is what helps to write the sentences before and after it.

Networks of every system that reads sentences word by word: the encoder, the decoders of a sentence's neighbours, and the decoder of another
caption of the same image (Cap2Cap of Kiela et al. 2018, Learning Visually Grounded Sentence Representations). Ids are those of
:mod:`raysys.data.word_tokenizer`.
"""

from collections.abc import Sequence
from typing import Literal

import pydantic
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from raysys.data.encoding import TextForm
from raysys.models.recompute import recompute_in_backward
from raysys.models.recurrent import GRU, LSTM, Packed, pack
from raysys.models.text import mean_of_tokens
from raysys.models.word_loss import WordLoss
from raysys.settings import Settings

Sentences = tuple[Tensor, Tensor]
"""Ids int64 [n, L] and mask [n, L], 1 at tokens and 0 at padding, which follows them; a row of padding alone is no sentence."""


class SkipThoughtSettings(Settings):
    """A sentence encoder, and decoders of the sentences around it (sizes of the paper by default)."""

    encoder: Literal["gru", "transformer"] = "gru"
    """Network that reads a sentence: GRU, its last state is the vector; or transformer, the mean over the tokens is."""
    word_size: pydantic.PositiveInt = 620
    """Size of the word vectors, which encoder and decoders share."""
    size: pydantic.PositiveInt = 2048
    """Size of a sentence's vector, d_t; with a transformer a multiple of `heads`."""
    vocabulary_size: pydantic.PositiveInt = 20_000
    """Rows of the table of word vectors: at least the size of the tokenizer's vocabulary."""
    max_words: pydantic.PositiveInt = 30
    """Words of the longest sentence; longer ones are cut. Of the text corpus they are left out before (data.max_words)."""
    decoder_size: pydantic.PositiveInt | None = None
    """Size of the decoders' states; by default that of a sentence's vector."""
    layers: pydantic.PositiveInt = 4
    """Layers of a transformer."""
    heads: pydantic.PositiveInt = 8
    """Attention heads of each layer of a transformer."""
    dropout: float = pydantic.Field(0.1, ge=0.0, lt=1.0)
    """Dropout within a transformer."""
    expansion: str | None = None
    """File of word vectors (word2vec's text or binary form, GloVe's), beneath data.folder (or absolute), whose words an exported encoder
    reads too."""

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "SkipThoughtSettings":
        if self.encoder == "transformer" and self.size % self.heads:
            raise ValueError(f"size {self.size} is not a multiple of heads {self.heads}")
        return self

    @property
    def form(self) -> TextForm:
        """How sentences become ids: their words between [CLS] and [SEP]."""
        return TextForm(self.max_words + 2)


class SentenceEncoder(nn.Module):
    """Word ids → one vector per sentence."""

    def __init__(self, settings: SkipThoughtSettings):
        super().__init__()
        self.settings = settings
        self.words = nn.Embedding(settings.vocabulary_size, settings.word_size)
        nn.init.uniform_(self.words.weight, -0.1, 0.1)
        self.reader = _TransformerReader(settings) if settings.encoder == "transformer" else _GruReader(settings)

    def checkpoint_activations(self) -> None:
        """Recompute activations in the backward pass instead of keeping them: of a transformer those of each layer, of a GRU all."""
        network = self.reader if isinstance(self.reader, _TransformerReader) else nn.ModuleList([nn.ModuleList([self.reader.gru])])
        recompute_in_backward(network)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Sentence vectors, float32 [n, size]; zeros for rows of length 0, and padding has no influence.

        Args:
            input_ids: int64 [n, L].
            attention_mask: [n, L], 1 at tokens and 0 at padding, which follows them.
        """
        vectors: Tensor = self.reader(self.words, input_ids, attention_mask)
        return vectors

    def word_vectors(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Mean of the word vectors of each row, float32 [n, word_size]; zeros for rows of length 0."""
        return mean_of_tokens(self.words(input_ids).float(), attention_mask)


class _GruReader(nn.Module):
    """The state after the last token."""

    def __init__(self, settings: SkipThoughtSettings):
        super().__init__()
        self.gru = GRU(settings.word_size, settings.size)

    def forward(self, words: nn.Embedding, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        tokens = pack(attention_mask)
        states = self.gru(words(input_ids[tokens.rows, tokens.places]), tokens.sizes)
        vectors = states.new_zeros(len(input_ids), states.shape[1])
        return vectors.index_copy(0, tokens.longest_first, states.index_select(0, tokens.last()))


class _TransformerReader(nn.Module):
    """The mean over the tokens' vectors after a transformer (`transformers.BertModel`), whose attention computes padding too."""

    def __init__(self, settings: SkipThoughtSettings):
        from transformers import BertConfig, BertModel  # takes seconds, which those who only read settings need not wait

        super().__init__()
        self.project = nn.Linear(settings.word_size, settings.size)
        config = BertConfig(
            vocab_size=1,
            hidden_size=settings.size,
            num_hidden_layers=settings.layers,
            num_attention_heads=settings.heads,
            intermediate_size=4 * settings.size,
            hidden_dropout_prob=settings.dropout,
            attention_probs_dropout_prob=settings.dropout,
            max_position_embeddings=settings.form.max_tokens,
            type_vocab_size=1,
            pad_token_id=None,
        )
        self.bert = BertModel(config, add_pooling_layer=False)
        self.bert.set_input_embeddings(nn.Identity())  # words have a table of their own, of another size

    def forward(self, words: nn.Embedding, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        if not input_ids.shape[1]:
            input_ids, attention_mask = F.pad(input_ids, (0, 1)), F.pad(attention_mask, (0, 1))
        # Attention over nothing is not a number: every row looks at its first place at least, which does not count where it is padding.
        seen = attention_mask.bool()
        seen = torch.cat([torch.ones_like(seen[:, :1]), seen[:, 1:]], dim=1)
        found = self.bert(inputs_embeds=self.project(words(input_ids)), attention_mask=seen.long())
        return mean_of_tokens(found.last_hidden_state.float(), attention_mask)


class NeighbourDecoders(nn.Module):
    """Two GRUs that write the previous and the next sentence, each word given the words before it and the sentence's vector.

    Args:
        settings: sizes.
        words: the encoder's table of word vectors. It stays the encoder's: it is no part of this module's parameters and state.
    """

    def __init__(self, settings: SkipThoughtSettings, words: nn.Embedding):
        super().__init__()
        size = settings.decoder_size or settings.size
        self._shared = (words,)  # in a tuple, where it is not taken for a part
        self.previous = GRU(settings.word_size, size, settings.size)
        self.next = GRU(settings.word_size, size, settings.size)
        self.vocabulary = WordLoss(size, settings.vocabulary_size)

    def forward(self, vectors: Tensor, neighbours: Sequence[Sentences]) -> tuple[Tensor, Tensor]:
        """Negative log-likelihood (nats) of both neighbours together, and the number of tokens that it is the sum of: float32 [n] each.

        A sentence without neighbours has 0 of both.

        Args:
            vectors: the sentences', float [n, size].
            neighbours: the previous and the next sentences, n rows each.
        """
        return _written([self.previous, self.next], self.vocabulary, self._shared[0], vectors, neighbours)


class CaptionDecoder(nn.Module):
    """An LSTM that writes another caption of the same image, each word given the words before it and the caption's vector.

    Args:
        settings: sizes.
        words: the encoder's table of word vectors. It stays the encoder's: it is no part of this module's parameters and state.
    """

    def __init__(self, settings: SkipThoughtSettings, words: nn.Embedding):
        super().__init__()
        size = settings.decoder_size or settings.size
        self._shared = (words,)  # in a tuple, where it is not taken for a part
        self.lstm = LSTM(settings.word_size, size, settings.size)
        self.vocabulary = WordLoss(size, settings.vocabulary_size)

    def forward(self, vectors: Tensor, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Negative log-likelihood (nats) of the other captions, and the number of their tokens: float32 [n] each.

        Args:
            vectors: the captions', float [n, size].
            input_ids: of the other captions, int64 [n, L].
            attention_mask: [n, L], 1 at tokens and 0 at padding, which follows them.
        """
        return _written([self.lstm], self.vocabulary, self._shared[0], vectors, [(input_ids, attention_mask)])


def _written(
    decoders: Sequence[GRU | LSTM], vocabulary: WordLoss, words: nn.Embedding, vectors: Tensor, sentences: Sequence[Sentences]
) -> tuple[Tensor, Tensor]:
    """Negative log-likelihood of the sentences that the decoders write and the number of their tokens, summed over the decoders."""
    # A token is predicted from those before it: the first, [CLS], is only read and the last, [SEP], only written.
    packed: list[Packed] = [pack(mask[:, 1:]) for _, mask in sentences]
    pairs = list(zip(packed, (ids for ids, _ in sentences), strict=True))
    read = words(torch.cat([ids[tokens.rows, tokens.places] for tokens, ids in pairs]))
    states = [
        decoder(inputs, tokens.sizes, vectors[tokens.longest_first].to(inputs.dtype))
        for decoder, tokens, inputs in zip(decoders, packed, read.split([len(tokens.rows) for tokens in packed]), strict=True)
    ]
    # One call for all decoders: the vocabulary's gradient, the largest of all, is made once.
    losses = vocabulary(torch.cat(states), torch.cat([ids[tokens.rows, tokens.places + 1] for tokens, ids in pairs]))
    rows = torch.cat([tokens.rows for tokens in packed])
    total = losses.new_zeros(len(vectors)).index_add(0, rows, losses)
    return total, rows.bincount(minlength=len(vectors)).float()
