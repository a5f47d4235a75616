"""What stands on the encoders: projections into the spaces that are compared, and the cloze head."""

from typing import NamedTuple

import pydantic
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from raysys.data.masking import IGNORED
from raysys.models.text import TextModelSettings
from raysys.settings import Settings


class ProjectionHeadSettings(Settings):
    """Head from an encoder's vector into a space of comparison."""

    size: pydantic.PositiveInt = 128
    """Size of the vectors that are compared."""


class ProjectionHead(nn.Module):
    """Dense layer, GELU, LayerNorm: [n, input_size] → float32 [n, size] (not yet of unit length)."""

    def __init__(self, settings: ProjectionHeadSettings, input_size: int):
        super().__init__()
        self.settings = settings
        self.dense = nn.Linear(input_size, settings.size)
        self.norm = nn.LayerNorm(settings.size)

    def forward(self, vectors: Tensor) -> Tensor:
        # encoders return float32 even where an engine holds the weights in bfloat16
        return self.norm(F.gelu(self.dense(vectors.to(self.dense.weight.dtype)))).float()


class Whitening(NamedTuple):
    """Where a :class:`WhitenedHead` begins."""

    mean: Tensor
    """float32 [input_size], of the vectors."""
    deviation: Tensor
    """float32 [input_size], standard deviation of the vectors."""
    components: Tensor
    """float32 [size, input_size], principal components of the standardised vectors, each scaled to unit variance."""


def whiten(vectors: Tensor, size: int) -> Whitening:
    """Whitened principal components of `vectors`, float [n, input_size], n > size; a constant entry counts for nothing.

    Raises:
        ValueError: fewer vectors than components.
    """
    if len(vectors) <= size or vectors.shape[1] < size:
        raise ValueError(f"{size} principal components need more than {size} vectors of at least {size} entries, not {list(vectors.shape)}")
    values = vectors.double()
    mean, deviation = values.mean(dim=0), values.std(dim=0) + _LEAST_DEVIATION
    standardised = (values - mean) / deviation
    variances, components = torch.linalg.eigh(standardised.T @ standardised / len(values))
    largest = variances.flip(0)[:size].clamp(min=_LEAST_DEVIATION**2)
    return Whitening(mean.float(), deviation.float(), (components.flip(1)[:, :size] / largest.sqrt()).T.contiguous().float())


_LEAST_DEVIATION = 1e-3


class WhitenedHead(nn.Module):
    """Linear head that begins as whitened principal components of the vectors it will see: [n, input_size] → float32 [n, size].

    A pretrained network that stays frozen already finds like pictures. A head with random weights forgets that within an
    epoch and learns the training pictures by heart; one that begins here, and learns slowly, keeps it.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, settings: ProjectionHeadSettings, input_size: int):
        super().__init__()
        self.settings = settings
        self.dense = nn.Linear(input_size, settings.size)
        self.register_buffer("mean", torch.zeros(input_size))
        self.register_buffer("deviation", torch.ones(input_size))

    def begin(self, whitening: Whitening) -> None:
        """Take the weights that :func:`whiten` found."""
        with torch.no_grad():
            self.mean.copy_(whitening.mean)
            self.deviation.copy_(whitening.deviation)
            self.dense.weight.copy_(whitening.components)
            self.dense.bias.zero_()

    def forward(self, vectors: Tensor) -> Tensor:
        standardised = (vectors.float() - self.mean.float()) / self.deviation.float()
        return self.dense(standardised.to(self.dense.weight.dtype)).float()


class ClozeHead(nn.Module):
    """Masked-token prediction as in BERT: dense, GELU, LayerNorm, then a decoder tied to the word embeddings.

    The tie is made at each call, by passing the embedding module: there is one tensor, one owner, and nothing to tie
    again after loading, partitioning or export. The only parameter of size [vocabulary_size] here is the bias.
    """

    def __init__(self, settings: TextModelSettings):
        super().__init__()
        self.settings = settings
        self.dense = nn.Linear(settings.hidden_size, settings.hidden_size)
        self.norm = nn.LayerNorm(settings.hidden_size)
        self.decoder_bias = nn.Parameter(self.norm.weight.new_zeros(settings.vocabulary_size))
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)

    def forward(self, tokens: Tensor, labels: Tensor, embeddings: nn.Embedding) -> tuple[Tensor, Tensor]:
        """Cross-entropy (nats, float32) of the wanted tokens.

        Args:
            tokens: [n, L, h], the encoder's token vectors for the masked input.
            labels: int64 [n, L], the true id where a token is to be predicted, -100 elsewhere.
            embeddings: the encoder's embedding table [vocabulary_size, h].

        Returns:
            Per sample the sum of the losses, float32 [n], and the number of predicted tokens, float32 [n]. Without any
            predicted token the sums are zeros that still reach every parameter, with gradient zero.
        """
        wanted = labels != IGNORED
        row = wanted.nonzero()[:, 0]
        states = self.norm(F.gelu(self.dense(tokens[wanted].to(self.dense.weight.dtype))))
        logits = F.linear(states, embeddings.weight.to(states.dtype), self.decoder_bias.to(states.dtype))
        losses = F.cross_entropy(logits.float(), labels[wanted], reduction="none")
        sums = losses.new_zeros(len(labels)).index_add(0, row, losses)
        return sums, wanted.sum(dim=1).to(sums.dtype)
