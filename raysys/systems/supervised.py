"""The upper bound: Globetrotter's network, told which captions are translations of each other (Globetrotter, §5.1)."""

import torch
from torch import Tensor

from raysys.data.batches import Batch
from raysys.objectives.translation import translation_loss
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ModelSettings, ObjectiveSettings


class Supervised(Globetrotter):
    """Globetrotter with α = 1 for true translations and 0 otherwise, in place of the transitive similarity.

    Each caption of the batch meets a translation of its own, where it has one, and whatever else in the batch says the same.
    """

    def __init__(self, model: ModelSettings, objective: ObjectiveSettings):
        # Options of the transitive loss are not those of this one.
        super().__init__(model, ObjectiveSettings(weights=objective.weights, temperature=objective.temperature))

    def _text_vectors(self, batch: Batch) -> dict[str, Tensor]:
        if batch.translation_ids is None or batch.translation_mask is None or batch.translated is None or batch.concepts is None:
            raise ValueError("the supervised system needs batches with translations")
        found, pooled = self._read(batch, (batch.translation_ids, batch.translation_mask))
        captions, translations = pooled.split(len(batch.ids))
        vectors = self._vectors_of(found, captions)
        vectors["translation"] = self.project_caption(translations)
        vectors["translated"] = batch.translated.long()
        return vectors | {"concepts": batch.concepts}

    def caption_loss(self, vectors: dict[str, Tensor], temperature: float | Tensor) -> Tensor:
        """L_t with α known, of the global batch's `vectors`."""
        translated = vectors["translated"].bool()
        captions = torch.cat([vectors["caption"], vectors["translation"][translated]])
        return translation_loss(captions, temperature, torch.cat([vectors["concepts"], vectors["concepts"][translated]]))
