"""All settings of a run of the grounded systems, in one tree."""

from typing import Any, Literal

import pydantic

from raysys.data.samples import StoredDataSettings
from raysys.errors import UserError
from raysys.settings import Settings, from_mapping
from raysys.shards.languages import normalise_language
from raysys.storage import StorageSettings
from raysys.systems.grounded.names import GroundedName, parts_of
from raysys.systems.grounded.settings import GroundedModelSettings, GroundedObjectiveSettings, grounded_objective_of
from raysys.training.settings import RaySettings, RunSettings, TrainingSettings

RELATEDNESS, SENTEVAL = "relatedness", "senteval"
"""What the scores of sentences are filed under, beside the test splits."""


class GroundedDataSettings(StoredDataSettings):
    """Which data: ordered sentences, and pictures with captions, both in one language."""

    language: str = "en"
    """Of sentences and captions (BCP-47)."""
    text: tuple[str, ...] = ()
    """Folders of ordered sentences, beneath `folder` (or absolute, or s3://), for the loss on text."""
    captions: tuple[str, ...] = ()
    """Folders of pictures with captions, for the losses that ground sentences."""
    tests: dict[str, str] = pydantic.Field(default_factory=dict)
    """Folders of pictures with captions whose structure is scored, by the name they have in the score table."""
    cached_views: Literal[1] = 1
    """One vector of each picture is computed once and kept: the image network is frozen."""
    text_share: pydantic.PositiveInt = 1
    """Triples of sentences in a batch for every `caption_share` pictures, in systems that learn from both."""
    caption_share: pydantic.PositiveInt = 1
    """Pictures in a batch for every `text_share` triples."""
    max_words: pydantic.PositiveInt = 30
    """Triples with a longer sentence are left out, and counted."""
    bucket: bool = True
    """Put triples of like length into one batch: sorted within a window of steps, whose batches are shuffled."""

    @pydantic.field_validator("language")
    @classmethod
    def _one_spelling(cls, language: str) -> str:
        return normalise_language(language)

    @property
    def languages(self) -> tuple[str]:
        """The one language, as encoders of many languages name theirs."""
        return (self.language,)

    @property
    def train(self) -> tuple[str, ...]:
        """All folders that are trained on."""
        return (*self.text, *self.captions)


class GroundedEvaluationSettings(Settings):
    """What is scored when training has ended."""

    beside: tuple[str, ...] = ()
    """Other runs to show in the score table and report, by name or folder."""
    untrained: bool = False
    """Also score the networks as they were before training."""
    neighbours: pydantic.PositiveInt = 10
    """K of mNNO."""
    senteval: str = ""
    """Folder of data sets in SentEval's layout, beneath data.folder (or absolute); empty: not scored."""
    tasks: tuple[str, ...] = ()
    """Tasks of classification to score; empty: all whose data is there."""
    concreteness: str = ""
    """Folder of concreteness ratings, beneath data.folder (or absolute); empty: no analysis by concreteness."""


class GroundedSettings(Settings):
    """All settings of a run of the grounded systems."""

    run: RunSettings = RunSettings(name="grounded")
    """Where the run is kept."""
    system: GroundedName = "t-cp-g"
    """What is trained: a row of the paper's tables."""
    data: GroundedDataSettings = GroundedDataSettings()
    """Which data, and how it reaches the training workers."""
    model: GroundedModelSettings = GroundedModelSettings()
    """The networks."""
    objective: GroundedObjectiveSettings = GroundedObjectiveSettings()
    """What is minimised."""
    training: TrainingSettings = TrainingSettings()
    """The training run."""
    evaluation: GroundedEvaluationSettings = GroundedEvaluationSettings()
    """What is scored when training has ended."""
    storage: StorageSettings = StorageSettings()
    """Object storage."""
    ray: RaySettings = RaySettings()
    """The Ray that is started where none is running."""

    @property
    def uses_images(self) -> bool:
        """Whether the system learns from captions and their pictures."""
        return parts_of(self.system)["captions"]

    @property
    def uses_text(self) -> bool:
        """Whether the system learns from ordered sentences."""
        return parts_of(self.system)["triples"]

    @property
    def trained(self) -> bool:
        """Whether there is anything to train step by step: SEQ is computed at once from a trained run."""
        return self.system != "seq"

    def resolved(self) -> "GroundedSettings":
        """With what `system` says put into the other settings: weights of losses that it has not are 0, data that it does not read is
        left out.

        Raises:
            UserError: the system cannot be trained with these settings.
        """
        if self.uses_text and not self.data.text:
            raise UserError(f"data.text: the system {self.system} learns from ordered sentences; name a folder, such as novels/train")
        if self.uses_images and not self.data.captions:
            raise UserError(f"data.captions: the system {self.system} learns from captioned pictures; name a folder, such as emoji/train")
        if parts_of(self.system)["base"] and not self.model.base:
            kind = "t" if self.system == "seq" else "t-half"
            raise UserError(f"model.base: the system {self.system} stands on a trained run of the system {kind}; name that run")
        data = {**({} if self.uses_text else {"text": ()}), **({} if self.uses_images else {"captions": ()})}
        changed: dict[str, Any] = {
            "objective": grounded_objective_of(self.system, self.objective),
            "data": self.data.model_copy(update=data),
        }
        return from_mapping(type(self), self.model_copy(update=changed).model_dump(), f"system {self.system}")

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "GroundedSettings":
        if self.data.max_words > self.model.text.max_words:
            raise ValueError(
                f"data.max_words: sentences of {self.data.max_words} words would be cut to model.text.max_words "
                f"{self.model.text.max_words}; make it as large"
            )
        for name in (RELATEDNESS, SENTEVAL):
            if name in self.data.tests:
                raise ValueError(f"data.tests: {name} is what other scores are filed under; give this test split another name")
        return self
