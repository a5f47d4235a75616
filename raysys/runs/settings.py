"""All settings of a Globetrotter run, in one tree."""

import pydantic

from raysys.data.samples import DataSettings
from raysys.settings import Settings
from raysys.storage import StorageSettings
from raysys.systems.globetrotter import ModelSettings, ObjectiveSettings
from raysys.training.settings import RaySettings, RunSettings, TrainingSettings


class EvaluationSettings(Settings):
    """What is scored when training has ended."""

    beside: tuple[str, ...] = ()
    """Other runs to show in the score table and report, by name or folder."""
    untrained: bool = True
    """Also score the networks as they were before training."""


class GlobetrotterSettings(Settings):
    """All settings of a Globetrotter run."""

    run: RunSettings = RunSettings()
    """Where the run is kept."""
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

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "GlobetrotterSettings":
        if self.data.cached_views == 1:
            raise ValueError("data.cached_views: two views of an image are compared, so 0 (none cached) or at least 2")
        if self.data.cached_views and not self.model.image.frozen:
            raise ValueError("data.cached_views: vectors can be kept only of a frozen image network; set model.image.frozen to true")
        weights = self.objective.weights
        if self.data.cached_views and not (weights.transitive or weights.image or weights.image_caption):
            raise ValueError("data.cached_views: no loss with a weight uses images; set data.cached_views to 0")
        if weights.cloze and self.model.text.trigram_buckets:
            raise ValueError(
                "model.text.trigram_buckets: trigrams spell out the words that the cloze loss hides; set objective.weights.cloze to 0"
            )
        if self.model.image_head == "whitened" and not self.data.cached_views:
            raise ValueError("model.image_head: 'whitened' begins from kept image vectors; set data.cached_views to 2 or more")
        return self
