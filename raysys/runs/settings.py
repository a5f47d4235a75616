"""All settings of a Globetrotter run, in one tree."""

from typing import Any

import pydantic

from raysys.data.samples import DataSettings
from raysys.evaluation.word_scores import WORDS, WordTranslationSettings
from raysys.settings import Settings, from_mapping
from raysys.shards.languages import normalise_language
from raysys.storage import StorageSettings
from raysys.systems.settings import ModelSettings, ObjectiveSettings, SystemName, objective_of
from raysys.training.settings import RaySettings, RunSettings, TrainingSettings


class EvaluationSettings(Settings):
    """What is scored when training has ended."""

    beside: tuple[str, ...] = ()
    """Other runs to show in the score table and report, by name or folder."""
    untrained: bool = True
    """Also score the networks as they were before training."""
    references: tuple[str, ...] = ()
    """Pretrained encoders to score beside: package:multilingual-e5-small, or models of sentence-transformers by folder or hub id."""
    held_out: tuple[str, ...] = ()
    """Languages to leave out of training, that the test splits have: scored apart, as transfer."""
    centred: bool = False
    """Take from every sentence vector the mean of its language's training captions before comparing it."""
    words: WordTranslationSettings = WordTranslationSettings()
    """How the translation of words is scored."""

    @pydantic.field_validator("held_out")
    @classmethod
    def _one_spelling(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(normalise_language(language) for language in languages))


class GlobetrotterSettings(Settings):
    """All settings of a Globetrotter run."""

    run: RunSettings = RunSettings()
    """Where the run is kept."""
    system: SystemName = "globetrotter"
    """What is trained: Globetrotter, or one of the systems that it is compared with. Ablations leave one loss out."""
    data: DataSettings
    """Which data, and how it reaches the training workers."""
    model: ModelSettings = ModelSettings()
    """The networks."""
    objective: ObjectiveSettings = ObjectiveSettings()
    """What is minimised."""
    training: TrainingSettings = TrainingSettings()
    """The training run."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """What is scored when training has ended."""
    storage: StorageSettings = StorageSettings()
    """Object storage."""
    ray: RaySettings = RaySettings()
    """The Ray that is started where none is running."""

    @property
    def uses_images(self) -> bool:
        """Whether the system is trained on images, and not on captions alone."""
        weights = self.objective.weights
        by_weights = bool(weights.transitive or weights.image or weights.image_caption)
        return self.system == "muve" or (self.system != "lample-conneau" and by_weights)

    @property
    def trained(self) -> bool:
        """Whether there is anything to train step by step: all of these systems are."""
        return True

    @property
    def ties_captions_to_images(self) -> bool:
        """Whether captions are trained to find their images, by which checkpoints are chosen on the validation data."""
        return self.system == "muve" or (self.uses_images and bool(self.objective.weights.image_caption))

    def resolved(self) -> "GlobetrotterSettings":
        """With what `system` says put into the other settings: the weights of an ablation, no image vectors where no image is seen.

        Raises:
            UserError: the system cannot be trained with these settings.
        """
        changed: dict[str, Any] = {"objective": objective_of(self.system, self.objective)}
        if not self.model_copy(update=changed).uses_images:
            changed["data"] = self.data.model_copy(update={"cached_views": 0})
            changed["model"] = self.model.model_copy(update={"image_head": "projection"})
            factors = {part: factor for part, factor in self.training.learning_rate_factors.items() if not part.startswith("image")}
            changed["training"] = self.training.model_copy(update={"learning_rate_factors": factors})
        return from_mapping(type(self), self.model_copy(update=changed).model_dump(), f"system {self.system}")

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "GlobetrotterSettings":
        if self.data.cached_views == 1:
            raise ValueError("data.cached_views: two views of an image are compared, so 0 (none cached) or at least 2")
        if self.data.cached_views and not self.model.image.frozen:
            raise ValueError("data.cached_views: vectors can be kept only of a frozen image network; set model.image.frozen to true")
        objective, width = self.objective, self.model.head.size
        if any(size >= width for size in objective.prefixes):
            raise ValueError(f"objective.prefixes: {max(objective.prefixes)} is no prefix of vectors of model.head.size {width}")
        if objective.queue.size and objective.queue.keys == "momentum" and self.training.ema_decay is None:
            raise ValueError("objective.queue.keys: momentum takes the moving average of the weights; set training.ema_decay, such as 0.99")
        weights = self.objective.weights
        if self.data.cached_views and not (self.system == "muve" or weights.transitive or weights.image or weights.image_caption):
            raise ValueError("data.cached_views: no loss with a weight uses images; set data.cached_views to 0")
        if self.model.text.trigram_buckets and self.system in ("muve", "lample-conneau"):
            raise ValueError(f"model.text.trigram_buckets: the system {self.system} reads word pieces alone; set it to 0")
        if self.system == "supervised" and not weights.transitive:
            raise ValueError("objective.weights.transitive: the system supervised learns translations by this loss; give it a weight")
        if WORDS in self.data.tests:
            raise ValueError("data.tests: the translation of words is called words already; give this test split another name")
        if both := set(self.data.languages) & set(self.evaluation.held_out):
            raise ValueError(f"evaluation.held_out: {', '.join(sorted(both))} cannot be held out and be in data.languages")
        if weights.cloze and self.model.text.trigram_buckets:
            raise ValueError(
                "model.text.trigram_buckets: trigrams spell out the words that the cloze loss hides; set objective.weights.cloze to 0"
            )
        if self.model.image_head == "whitened" and not self.data.cached_views:
            raise ValueError("model.image_head: 'whitened' begins from kept image vectors; set data.cached_views to 2 or more")
        return self
