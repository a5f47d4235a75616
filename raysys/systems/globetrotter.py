"""Globetrotter: languages tied together through images (Surís, Epstein and Vondrick)."""

from typing import Literal

import pydantic
import torch
from torch import Tensor, nn

from raysys.data.batches import Batch
from raysys.models.heads import ClozeHead, ProjectionHead, ProjectionHeadSettings, WhitenedHead
from raysys.models.images import ImageBackbone, ImageModelSettings, SimCLRViews, SimCLRViewsSettings
from raysys.models.temperature import LearnedTemperature
from raysys.models.text import TextEncoder, TextModelSettings
from raysys.objectives.cloze import cloze_loss
from raysys.objectives.image_caption import info_nce
from raysys.objectives.image_contrastive import nt_xent
from raysys.objectives.similarity import unit_vectors
from raysys.objectives.transitive import transitive_loss
from raysys.settings import Settings


class ModelSettings(Settings):
    """The networks."""

    image: ImageModelSettings = ImageModelSettings()
    """Image network."""
    text: TextModelSettings = TextModelSettings()
    """Text network, shared by all languages."""
    views: SimCLRViewsSettings = SimCLRViewsSettings()
    """How the two views of an image are made."""
    head: ProjectionHeadSettings = ProjectionHeadSettings()
    """Heads from the networks' vectors into the spaces of comparison."""
    text_heads: Literal["separate", "shared"] = "separate"
    """A head for comparing captions with captions beside that for comparing them with images (as in the paper), or one for both."""
    image_head: Literal["projection", "whitened"] = "projection"
    """Head of the image network: dense, GELU and norm with random weights, or linear from whitened principal components of the kept
    training vectors (needs data.cached_views)."""


class Weights(Settings):
    """Weight of each loss; 0 leaves it out, with the parts of the network that it alone would train."""

    transitive: pydantic.NonNegativeFloat = 1.0
    """L_t, caption–caption along transitive matches."""
    image: pydantic.NonNegativeFloat = 1.0
    """λ1 of L_v, image–image between two views."""
    image_caption: pydantic.NonNegativeFloat = 1.0
    """λ2 of L_x, image–caption."""
    cloze: pydantic.NonNegativeFloat = 1.0
    """λ3 of L_c, hidden tokens."""


class Temperatures(Settings):
    """Temperature of each contrastive loss; below 0.01 they count as 0.01."""

    learned: bool = False
    """Learn them, each from where it is set here."""
    transitive: pydantic.PositiveFloat = 0.1
    """τ of L_t."""
    image: pydantic.PositiveFloat = 0.1
    """τ of L_v."""
    image_caption: pydantic.PositiveFloat = 0.1
    """τ of L_x."""


class ObjectiveSettings(Settings):
    """What is minimised."""

    weights: Weights = Weights()
    """Weight of each loss."""
    temperature: Temperatures = Temperatures()
    """Temperature of each contrastive loss."""
    margin: float = pydantic.Field(0.4, lt=1.0)
    """m: transitive similarities below it count as 0."""
    transitive: Literal["product", "rescaled"] = "rescaled"
    """How transitive similarity is computed: as printed in the paper, or as in its authors' code."""

    @pydantic.model_validator(mode="after")
    def _trainable(self) -> "ObjectiveSettings":
        if not any(self.weights.model_dump().values()):
            raise ValueError("all weights are 0: there is nothing to minimise")
        return self


class Globetrotter(nn.Module):
    """Image network, text network and heads.

    ``forward(batch)`` gives this worker's vectors, ``losses(vectors)`` the named terms, computed from the vectors of the
    whole global batch.
    """

    def __init__(self, model: ModelSettings, objective: ObjectiveSettings):
        super().__init__()
        self.model = model
        self.objective = objective
        weights = objective.weights
        self.uses_images = bool(weights.transitive or weights.image or weights.image_caption)
        if self.uses_images:
            # First, so that a seed gives the same image network beside any text network: kept image vectors count on it.
            untrained = not (weights.image or weights.image_caption)
            self.image = ImageBackbone(model.image.model_copy(update={"frozen": model.image.frozen or untrained}))
        self.text = TextEncoder(model.text)
        size = self.text.hidden_size
        if self.uses_images:
            self.views = SimCLRViews(model.views)
            head = WhitenedHead if model.image_head == "whitened" else ProjectionHead
            self.image_head = head(model.head, self.image.hidden_size)
            self.image_caption_head = ProjectionHead(model.head, size)
        if self.has_caption_head:
            self.caption_head = ProjectionHead(model.head, size)
        if weights.cloze:
            self.cloze_head = ClozeHead(model.text)
        self.contrastive = [name for name, weight in weights if weight and name != "cloze"]
        if objective.temperature.learned:
            starts = {name: getattr(objective.temperature, name) for name in self.contrastive}
            self.temperatures = nn.ModuleDict({name: LearnedTemperature(start) for name, start in starts.items()})
        self._freeze_untrained()

    def _freeze_untrained(self) -> None:
        """Freeze what is there for comparison alone and no loss would train (α is constant).

        Every trained parameter then has a gradient in every batch, as engines that partition weights need it, and nothing
        decays weights that nothing trains.
        """
        weights = self.objective.weights
        by_captions = bool(weights.transitive and not self.has_caption_head)
        trained_by = {
            "text": weights.transitive or weights.image_caption or weights.cloze,
            "image_head": weights.image or weights.image_caption,
            "image_caption_head": weights.image_caption or by_captions,
        }
        for part, weight in trained_by.items():
            if hasattr(self, part) and not weight:
                getattr(self, part).requires_grad_(False)

    def checkpoint_activations(self) -> None:
        """Let the networks recompute their activations in the backward pass: less memory, more time, the same gradients."""
        self.text.checkpoint_activations()
        if self.uses_images:
            self.image.checkpoint_activations()

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """This worker's part of what the losses need; every tensor has one row per sample.

        Returns:
            `view_1`, `view_2`, `caption`, `image_caption`: unit vectors, float32 [n, d]; `cloze_sum`, `cloze_count`: float32
            [n]; `image_ids`: int64 [n]; of learned temperatures `temperature_transitive` and so on, float32 [n], the same in
            every row. What no loss needs is absent.
        """
        vectors = {"image_ids": batch.image_ids}
        if self.uses_images:
            first, second = self._image_vectors(batch)
            vectors |= {"view_1": self.project_image(first), "view_2": self.project_image(second)}
        vectors |= self._text_vectors(batch)
        if self.objective.temperature.learned:
            # A temperature leaves as every other value does, so that its gradient finds its way back as theirs does.
            vectors |= {f"temperature_{name}": learned(len(batch.ids)) for name, learned in self.temperatures.items()}
        return vectors

    def _image_vectors(self, batch: Batch) -> tuple[Tensor, Tensor]:
        if batch.features is not None:
            return batch.features[:, 0], batch.features[:, 1]
        if not self.training:
            plain = self.image(batch.images)
            return plain, plain
        views = torch.cat([self.views(batch.images), self.views(batch.images)])
        first, second = self.image(views).chunk(2)
        return first, second

    def _text_vectors(self, batch: Batch) -> dict[str, Tensor]:
        weights = self.objective.weights
        if weights.cloze:
            # One pass over the captions and their masked copies: two passes would need two sets of hooks in ZeRO 3.
            pooled, tokens = self.text(torch.cat([batch.input_ids, batch.masked_ids]), torch.cat([batch.attention_mask] * 2))
            rows = len(batch.ids)
            pooled, masked_tokens = pooled[:rows], tokens[rows:]
            sums, counts = self.cloze_head(masked_tokens, batch.labels, self.text.word_embeddings)
            vectors = {"cloze_sum": sums, "cloze_count": counts}
        else:
            pooled, _ = self.text(batch.input_ids, batch.attention_mask, tokens=False)
            vectors = {}
        if self.uses_images:
            vectors["image_caption"] = self.project_image_caption(pooled)
        if weights.transitive:
            vectors["caption"] = self.project_caption(pooled)
        return vectors

    def losses(self, vectors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The terms of the objective, each a scalar and not yet weighted, for the global batch's `vectors`."""
        weights, image_ids = self.objective.weights, vectors["image_ids"]
        temperature = {name: self._temperature(name, vectors) for name in self.contrastive}
        terms = {}
        if weights.transitive:
            terms["transitive"] = transitive_loss(
                vectors["caption"],
                vectors["view_1"],
                vectors["image_caption"],
                temperature["transitive"],
                image_ids,
                self.objective.margin,
                self.objective.transitive,
            )
        if weights.image:
            terms["image"] = nt_xent(vectors["view_1"], vectors["view_2"], temperature["image"], image_ids)
        if weights.image_caption:
            terms["image_caption"] = info_nce(vectors["view_1"], vectors["image_caption"], temperature["image_caption"], image_ids)
        if weights.cloze:
            terms["cloze"] = cloze_loss(vectors["cloze_sum"], vectors["cloze_count"])
        return terms

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """L = L_t + λ1 L_v + λ2 L_x + λ3 L_c."""
        return torch.stack([getattr(self.objective.weights, name) * term for name, term in terms.items()]).sum()

    def temperature_values(self, vectors: dict[str, Tensor]) -> dict[str, float]:
        """By which temperatures :meth:`losses` computes its terms from these `vectors`."""
        return {f"temperature_{name}": float(self._temperature(name, vectors)) for name in self.contrastive}

    def _temperature(self, loss: str, vectors: dict[str, Tensor]) -> float | Tensor:
        if self.objective.temperature.learned:
            return vectors[f"temperature_{loss}"].mean()
        return getattr(self.objective.temperature, loss)

    @property
    def has_caption_head(self) -> bool:
        """Whether there is a head of its own for caption–caption similarity; without L_t nothing would train it."""
        return bool(self.objective.weights.transitive) and self.model.text_heads == "separate"

    def project_caption(self, pooled: Tensor) -> Tensor:
        """Text network's output [n, h] → unit vectors [n, d] in which captions are compared with captions.

        Without a head of their own, captions are compared as they are with images; without images, by the text network's own
        vectors.
        """
        if self.has_caption_head:
            return unit_vectors(self.caption_head(pooled))
        return self.project_image_caption(pooled) if self.uses_images else unit_vectors(pooled)

    def project_image_caption(self, pooled: Tensor) -> Tensor:
        """Text network's output [n, h] → unit vectors [n, d] in which captions are compared with images."""
        return unit_vectors(self.image_caption_head(pooled))

    def project_image(self, features: Tensor) -> Tensor:
        """z^v: image network's output [n, D] → unit vectors [n, d]."""
        return unit_vectors(self.image_head(features))
