"""The text transformer: token ids → one vector per sentence, and one per token for the cloze task."""

from typing import Literal

import pydantic
import torch
from torch import Tensor, nn

from raysys.data.encoding import TextForm
from raysys.models.recompute import recompute_in_backward
from raysys.settings import Settings


class TextModelSettings(Settings):
    """A transformer encoder over word pieces shared by all languages (Globetrotter's sizes by default)."""

    hidden_size: pydantic.PositiveInt = 512
    """Size of the token vectors; a multiple of `heads`."""
    layers: pydantic.NonNegativeInt = 4
    """Transformer layers; 0 gives a bag of word pieces (normalised embeddings, averaged)."""
    heads: pydantic.PositiveInt = 4
    """Attention heads per layer."""
    intermediate_size: pydantic.PositiveInt = 1024
    """Size of the feed-forward layer."""
    dropout: float = pydantic.Field(0.1, ge=0.0, lt=1.0)
    """Dropout of embeddings, attention and feed-forward layers."""
    max_tokens: int = pydantic.Field(50, ge=3)
    """Longest caption in word pieces, [CLS] and [SEP] included; longer ones are cut."""
    vocabulary_size: pydantic.PositiveInt = 30_000
    """Rows of the embedding table: at least the size of the tokenizer's vocabulary."""
    trigram_buckets: pydantic.NonNegativeInt = 0
    """Further rows, which character trigrams share by their hash (layers: 0); words that were never seen are read by them. 0: none."""
    max_trigrams: pydantic.PositiveInt = 40
    """Most trigrams of a caption."""
    pooling: Literal["mean", "cls"] = "mean"
    """Sentence vector: mean over the tokens, or the vector at [CLS]."""

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "TextModelSettings":
        if self.hidden_size % self.heads:
            raise ValueError(f"hidden_size {self.hidden_size} is not a multiple of heads {self.heads}")
        if self.layers == 0 and self.pooling == "cls":
            raise ValueError("pooling 'cls' needs at least one layer: without attention [CLS] knows nothing of the sentence")
        if self.layers and self.trigram_buckets:
            raise ValueError("trigram_buckets needs layers 0: attention would take trigrams for words that follow the sentence")
        return self

    @property
    def form(self) -> TextForm:
        """How captions become ids for this model."""
        return TextForm(self.max_tokens, self.trigram_buckets, self.max_trigrams)


class TextEncoder(nn.Module):
    """`transformers.BertModel` with pooling.

    `self.bert` is a plain `BertModel` without its pooling layer, so that `encoder.bert.save_pretrained(folder)` gives a
    folder that loads with transformers alone.
    """

    def __init__(self, settings: TextModelSettings):
        from transformers import BertConfig, BertModel  # takes seconds, which those who only read settings need not wait

        super().__init__()
        self.settings = settings
        self.hidden_size = settings.hidden_size
        config = BertConfig(
            vocab_size=settings.vocabulary_size + settings.trigram_buckets,
            hidden_size=settings.hidden_size,
            num_hidden_layers=settings.layers,
            num_attention_heads=settings.heads,
            intermediate_size=settings.intermediate_size,
            hidden_dropout_prob=settings.dropout,
            attention_probs_dropout_prob=settings.dropout,
            max_position_embeddings=settings.form.longest,
            type_vocab_size=1,
            pad_token_id=0,
        )
        self.bert = BertModel(config, add_pooling_layer=False)

    @property
    def word_embeddings(self) -> nn.Embedding:
        """The embedding table [vocabulary_size, hidden_size], which the cloze head's decoder shares."""
        return self.bert.embeddings.word_embeddings

    def checkpoint_activations(self) -> None:
        """Recompute the layers' activations in the backward pass instead of keeping them."""
        recompute_in_backward(self.bert)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, tokens: bool = True) -> tuple[Tensor, Tensor | None]:
        """Sentence vectors [n, h] and token vectors [n, L, h] (None if `tokens` are not wanted), both float32.

        Args:
            input_ids: int64 [n, L], L at most `max_tokens` and, with trigrams, `max_trigrams` more.
            attention_mask: [n, L], 1 at tokens and 0 at padding. Padding has no influence on the sentence vector; a row
                of padding alone gives the zero vector when pooling is "mean".
        """
        if input_ids.shape[1] > self.settings.form.longest:
            raise ValueError(f"{input_ids.shape[1]} tokens in a row, but at most {self.settings.form.longest} are allowed")
        if not self.settings.layers and not tokens:
            return self._bag(input_ids, attention_mask), None
        vectors = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state.float()
        pooled = vectors[:, 0] if self.settings.pooling == "cls" else mean_of_tokens(vectors, attention_mask)
        return pooled, vectors if tokens else None

    def _bag(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The mean of the tokens' vectors without computing any for padding, which is most of a batch of short captions."""
        rows, places = attention_mask.nonzero(as_tuple=True)
        vectors = self.bert.embeddings(input_ids=input_ids[rows, places][None], position_ids=places[None])[0].float()
        total = vectors.new_zeros(len(input_ids), self.hidden_size).index_add(0, rows, vectors)
        return total / attention_mask.bool().sum(dim=1, keepdim=True).clamp(min=1)


def mean_of_tokens(tokens: Tensor, attention_mask: Tensor) -> Tensor:
    """Mean of `tokens` [n, L, h] where `attention_mask` [n, L] is not 0: [n, h]; zeros where it is 0 everywhere."""
    present = attention_mask.bool().unsqueeze(-1)
    # where, not a product: whatever attention yields in a row of padding (NaN included) must not leak
    total = torch.where(present, tokens, tokens.new_zeros(())).sum(dim=1)
    return total / present.sum(dim=1).clamp(min=1)
