"""MUVE for many languages: word vectors of each language, tied together by images (Sigurdsson et al. 2020, as Globetrotter compares it)."""

import torch
from torch import Tensor, nn

from raysys.data.batches import Batch
from raysys.data.encoding import TextForm
from raysys.data.word_vectors import WordVectors
from raysys.models.heads import ProjectionHead, WhitenedHead
from raysys.models.images import ImageBackbone, SimCLRViews
from raysys.models.temperature import LearnedTemperature
from raysys.models.word_vectors import MuveTextEncoder
from raysys.objectives.image_caption import info_nce
from raysys.objectives.similarity import unit_vectors
from raysys.systems.settings import ModelSettings, ObjectiveSettings


def info_nce_by_language(
    images: Tensor, captions: Tensor, temperature: float | Tensor, image_ids: Tensor, languages: Tensor, **blocks: int
) -> Tensor:
    """Mean over the languages of :func:`info_nce` among a language's own pairs, over the global batch.

    Captions and images of other languages are no negatives. Each language weighs the same however many rows it has, as in the
    authors' code, which takes the sum; one with a single row has nothing to be told from and adds 0.

    Args:
        images, captions, temperature, image_ids, blocks: as there.
        languages: int64 [N].

    Returns:
        float scalar.
    """
    order = languages.argsort(stable=True)
    counts = languages.unique(return_counts=True)[1].tolist()
    parts = zip(*(rows[order].split(counts) for rows in (images, captions, image_ids)), strict=True)
    return torch.stack([info_nce(own, theirs, temperature, ids, **blocks) for own, theirs, ids in parts]).mean()


class Muve(nn.Module):
    """Image network, word vectors with an adapter for each language, and heads.

    Of the objective's settings, the temperature of the image–caption loss is used, and no weight: there is no other loss.

    Args:
        model: the networks; `model.muve.rows` is the number of word vectors.
        objective: the temperature.
        languages: how many there are.
    """

    uses_images = True
    reads_languages = True
    neighbour_keys = None
    exchange = None

    def __init__(self, model: ModelSettings, objective: ObjectiveSettings, languages: int):
        super().__init__()
        self.model = model
        self.objective = objective
        # First, so that a seed gives the same image network beside any text network: kept image vectors count on it.
        self.image = ImageBackbone(model.image)
        self.views = SimCLRViews(model.views)
        self.text = MuveTextEncoder(model.muve, languages, model.text.vocabulary_size)
        head = WhitenedHead if model.image_head == "whitened" else ProjectionHead
        self.image_head = head(model.head, self.image.hidden_size)
        self.image_caption_head = nn.Linear(self.text.hidden_size, model.head.size)
        if objective.temperature.learned:
            self.temperatures = nn.ModuleDict({"image_caption": LearnedTemperature(objective.temperature.image_caption)})

    def begin(self, vectors: WordVectors) -> None:
        """Take over the word vectors that were trained on the captions. Raises ValueError where they do not fit the settings."""
        self.text.begin(vectors)

    def checkpoint_activations(self) -> None:
        """Let the image network recompute its activations in the backward pass; the text network keeps few."""
        self.image.checkpoint_activations()

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """This worker's part of what the loss needs; every tensor has one row per sample.

        Returns:
            `view_1`, `image_caption`: unit vectors, float32 [n, d]; `languages`, `image_ids`: int64 [n]; of a learned temperature
            `temperature_image_caption`, float32 [n], the same in every row.
        """
        vectors = {
            "image_ids": batch.image_ids,
            "languages": batch.languages,
            "view_1": self.project_image(self._image_vectors(batch)),
            "image_caption": self.caption_vectors(batch.input_ids, batch.attention_mask, batch.languages),
        }
        if self.objective.temperature.learned:
            vectors["temperature_image_caption"] = self.temperatures["image_caption"](len(batch.ids))
        return vectors

    def _image_vectors(self, batch: Batch) -> Tensor:
        if batch.features is not None:
            return batch.features[:, 0]
        return self.image(self.views(batch.images) if self.training else batch.images)

    def losses(self, vectors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The one term, a scalar, for the global batch's `vectors`."""
        one, other, ids, languages = (vectors[name] for name in ("view_1", "image_caption", "image_ids", "languages"))
        return {"image_caption": info_nce_by_language(one, other, self._temperature(vectors), ids, languages)}

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """The one term there is."""
        return terms["image_caption"]

    def temperature_values(self, vectors: dict[str, Tensor]) -> dict[str, float]:
        """By which temperature :meth:`losses` computes its term from these `vectors`."""
        return {"temperature_image_caption": float(self._temperature(vectors))}

    def _temperature(self, vectors: dict[str, Tensor]) -> float | Tensor:
        if self.objective.temperature.learned:
            return vectors["temperature_image_caption"].mean()
        return self.objective.temperature.image_caption

    @property
    def vector_size(self) -> int:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return self.model.head.size

    @property
    def text_form(self) -> TextForm:
        """How captions become ids: by word pieces alone."""
        return TextForm(self.model.text.max_tokens)

    def caption_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        pooled = self.text(input_ids, attention_mask, languages)
        return unit_vectors(self.image_caption_head(pooled.to(self.image_caption_head.weight.dtype)).float())

    def sentence_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """The same as :meth:`caption_vectors`: there is one space."""
        return self.caption_vectors(input_ids, attention_mask, languages)

    def word_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says; after the language's adapter."""
        return self.text.word_vectors(input_ids, attention_mask, languages)

    def project_image(self, features: Tensor) -> Tensor:
        """z^v: image network's output [n, D] → unit vectors [n, d]."""
        return unit_vectors(self.image_head(features))
