"""The text transformer: token ids → one vector per sentence, and one per token for the cloze task."""

from typing import Literal

import pydantic
import torch
from torch import Tensor, nn

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
    pooling: Literal["mean", "cls"] = "mean"
    """Sentence vector: mean over the tokens, or the vector at [CLS]."""

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "TextModelSettings":
        if self.hidden_size % self.heads:
            raise ValueError(f"hidden_size {self.hidden_size} is not a multiple of heads {self.heads}")
        if self.layers == 0 and self.pooling == "cls":
            raise ValueError("pooling 'cls' needs at least one layer: without attention [CLS] knows nothing of the sentence")
        return self


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
            vocab_size=settings.vocabulary_size,
            hidden_size=settings.hidden_size,
            num_hidden_layers=settings.layers,
            num_attention_heads=settings.heads,
            intermediate_size=settings.intermediate_size,
            hidden_dropout_prob=settings.dropout,
            attention_probs_dropout_prob=settings.dropout,
            max_position_embeddings=settings.max_tokens,
            type_vocab_size=1,
            pad_token_id=0,
        )
        self.bert = BertModel(config, add_pooling_layer=False)

    @property
    def word_embeddings(self) -> nn.Embedding:
        """The embedding table [vocabulary_size, hidden_size], which the cloze head's decoder shares."""
        return self.bert.embeddings.word_embeddings

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Sentence vectors [n, h] and token vectors [n, L, h], both float32.

        Args:
            input_ids: int64 [n, L], L ≤ max_tokens.
            attention_mask: [n, L], 1 at tokens and 0 at padding. Padding has no influence on the sentence vector; a row
                of padding alone gives the zero vector when pooling is "mean".
        """
        if input_ids.shape[1] > self.settings.max_tokens:
            raise ValueError(f"{input_ids.shape[1]} tokens in a row, but max_tokens is {self.settings.max_tokens}")
        tokens = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state.float()
        if self.settings.pooling == "cls":
            return tokens[:, 0], tokens
        return mean_of_tokens(tokens, attention_mask), tokens


def mean_of_tokens(tokens: Tensor, attention_mask: Tensor) -> Tensor:
    """Mean of `tokens` [n, L, h] where `attention_mask` [n, L] is not 0: [n, h]; zeros where it is 0 everywhere."""
    present = attention_mask.bool().unsqueeze(-1)
    # where, not a product: whatever attention yields in a row of padding (NaN included) must not leak
    total = torch.where(present, tokens, tokens.new_zeros(())).sum(dim=1)
    return total / present.sum(dim=1).clamp(min=1)
