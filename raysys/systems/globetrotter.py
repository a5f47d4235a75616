"""Globetrotter: languages tied together through images (Surís, Epstein and Vondrick)."""

from typing import Literal

import torch
from torch import Tensor, nn

from raysys.data.batches import Batch, stack_texts
from raysys.data.encoding import TextForm
from raysys.models.bias import LearnedBias
from raysys.models.heads import ClozeHead, ProjectionHead, WhitenedHead
from raysys.models.images import ImageBackbone, SimCLRViews
from raysys.models.queue import NeighbourQueue
from raysys.models.temperature import LearnedTemperature
from raysys.models.text import TextEncoder, mean_of_tokens
from raysys.objectives.cloze import cloze_loss
from raysys.objectives.image_caption import info_nce, pairwise_sigmoid
from raysys.objectives.image_contrastive import nt_xent
from raysys.objectives.prefixes import mean_over_prefixes
from raysys.objectives.similarity import unit_vectors
from raysys.objectives.transitive import transitive_loss
from raysys.systems.settings import ModelSettings, ObjectiveSettings


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
        if objective.contrast == "sigmoid":
            self.biases = nn.ModuleDict({name: LearnedBias(objective.bias) for name in self.contrastive if name != "image"})
        self.queue = NeighbourQueue(objective.queue.size, model.head.size) if weights.transitive and objective.queue.size else None
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
        if self.objective.contrast == "sigmoid":
            vectors |= {f"bias_{name}": learned(len(batch.ids)) for name, learned in self.biases.items()}
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
        return self._vectors_of(*self._read(batch))

    def _read(self, batch: Batch, *others: tuple[Tensor, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
        """What the cloze loss needs, and the sentence vectors [n, h] of the captions, followed by those of `others` (ids and mask).

        One pass over all texts: several passes would need several sets of hooks in ZeRO 3.
        """
        rows, cloze, mask = len(batch.ids), bool(self.objective.weights.cloze), batch.attention_mask
        hidden = [(batch.masked_ids, mask)] if cloze else []
        pooled, tokens = self.text(*stack_texts([(batch.input_ids, mask), *others, *hidden]), tokens=cloze)
        if not cloze:
            return {}, pooled
        assert tokens is not None
        sums, counts = self.cloze_head(tokens[-rows:, : batch.labels.shape[1]], batch.labels, self.text.word_embeddings)
        return {"cloze_sum": sums, "cloze_count": counts}, pooled[:-rows]

    def _vectors_of(self, vectors: dict[str, Tensor], pooled: Tensor) -> dict[str, Tensor]:
        if self.uses_images:
            vectors["image_caption"] = self.project_image_caption(pooled)
        if self.objective.weights.transitive:
            vectors["caption"] = self.project_caption(pooled)
        return vectors

    def losses(self, vectors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The terms of the objective, each a scalar and not yet weighted, for the global batch's `vectors`."""
        weights, image_ids = self.objective.weights, vectors["image_ids"]
        temperature = {name: self._temperature(name, vectors) for name in self.contrastive}
        terms = {}
        if weights.transitive:
            terms["transitive"] = self.caption_loss(vectors, temperature["transitive"])
        if weights.image:
            terms["image"] = mean_over_prefixes(
                lambda first, second: nt_xent(first, second, temperature["image"], image_ids),
                self.objective.prefixes,
                vectors["view_1"],
                vectors["view_2"],
            )
        if weights.image_caption:
            terms["image_caption"] = self.image_caption_loss(vectors, temperature["image_caption"])
        if weights.cloze:
            terms["cloze"] = cloze_loss(vectors["cloze_sum"], vectors["cloze_count"])
        return terms

    def caption_loss(self, vectors: dict[str, Tensor], temperature: float | Tensor) -> Tensor:
        """L_t of the global batch's `vectors`; images and captions whole judge how alike captions of any size should be."""

        def loss(captions: Tensor) -> Tensor:
            return transitive_loss(
                captions,
                vectors["view_1"],
                vectors["image_caption"],
                temperature,
                vectors["image_ids"],
                self.objective.margin,
                self.objective.transitive,
                bias=self._bias("transitive", vectors),
                hardness=self.objective.hardness,
                neighbours=self.queue.neighbours() if self.queue else None,
            )

        return mean_over_prefixes(loss, self.objective.prefixes, vectors["caption"])

    def image_caption_loss(self, vectors: dict[str, Tensor], temperature: float | Tensor) -> Tensor:
        """L_x of the global batch's `vectors`."""
        ids, bias, hardness = vectors["image_ids"], self._bias("image_caption", vectors), self.objective.hardness

        def loss(images: Tensor, captions: Tensor) -> Tensor:
            if bias is None:
                return info_nce(images, captions, temperature, ids, hardness=hardness)
            return pairwise_sigmoid(images, captions, temperature, bias, ids, hardness=hardness)

        return mean_over_prefixes(loss, self.objective.prefixes, vectors["view_1"], vectors["image_caption"])

    @property
    def neighbour_keys(self) -> Literal["momentum", "recent"] | None:
        """Whose vectors of a step's samples :meth:`remember` wants after it: "momentum", "recent", or none."""
        return self.objective.queue.keys if self.queue else None

    def remember(self, vectors: dict[str, Tensor]) -> None:
        """Keep the global batch's `vectors`, as :meth:`forward` gives them, as neighbours of later ones."""
        assert self.queue is not None
        self.queue.push(vectors["caption"], vectors["view_1"], vectors["image_caption"], vectors["image_ids"])

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

    def _bias(self, loss: str, vectors: dict[str, Tensor]) -> Tensor | None:
        return vectors[f"bias_{loss}"].mean() if self.objective.contrast == "sigmoid" else None

    reads_languages = False
    exchange = None

    @property
    def vector_size(self) -> int:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return self.model.head.size if self.uses_images or self.has_caption_head else self.text.hidden_size

    @property
    def text_form(self) -> TextForm:
        """How captions become ids."""
        return self.model.text.form

    def sentence_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return self.project_caption(self.text(input_ids, attention_mask, tokens=False)[0])

    def caption_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return self.project_image_caption(self.text(input_ids, attention_mask, tokens=False)[0])

    def word_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return mean_of_tokens(self.text.word_embeddings(input_ids).float(), attention_mask)

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
