"""All settings of a pre-training run of RC³ or a rival, in one tree."""

from typing import Any, Literal

import pydantic

from raysys.data.samples import StoredDataSettings
from raysys.errors import UserError
from raysys.runs.settings import EvaluationSettings
from raysys.settings import Settings, from_mapping
from raysys.shards.languages import normalise_language
from raysys.storage import StorageSettings
from raysys.systems.rc3.names import Rc3Name, needs_regions, streams_of
from raysys.systems.rc3.settings import Rc3ModelSettings, Rc3ObjectiveSettings, rc3_objective_of
from raysys.training.settings import RaySettings, RunSettings, TrainingSettings

StreamName = Literal["strict", "weak", "parallel"]
STREAMS: tuple[StreamName, ...] = ("strict", "weak", "parallel")
"""D_s, D_w and D_t, in the order in which their samples are numbered."""


class Rc3DataSettings(StoredDataSettings):
    """Which data: pictures whose texts are translations (D_s), pictures whose texts are not (D_w), and parallel texts (D_t)."""

    languages: tuple[str, ...] = ()
    """Languages to use (BCP-47); empty: all that the streams have."""
    strict: tuple[str, ...] = ()
    """Folders of D_s: pictures, each with captions in several languages that are translations of one another."""
    weak: tuple[str, ...] = ()
    """Folders of D_w: pictures, each with texts in several languages that are not parallel."""
    parallel: tuple[str, ...] = ()
    """Folders of D_t: parallel texts without pictures."""
    strict_share: pydantic.PositiveInt = 1
    """Samples of D_s in a batch for every `weak_share` of D_w and `parallel_share` of D_t, in systems that learn from several streams."""
    weak_share: pydantic.PositiveInt = 1
    """Samples of D_w in a batch, see `strict_share`."""
    parallel_share: pydantic.PositiveInt = 1
    """Samples of D_t in a batch, see `strict_share`."""
    strict_visual: Literal["regions", "patches", "combined"] = "regions"
    """What the network sees of the pictures of D_s; those of D_w are always seen as patches."""
    tests: dict[str, str] = pydantic.Field(default_factory=dict)
    """Folders of parallel captions whose translation by sentence vectors is scored, by the name they have in the score table."""
    cached_views: Literal[0] = 0
    """The network sees pictures itself: no vectors of them are kept."""
    decode: Literal["trainer", "cluster"] = "trainer"
    """Where pictures are decoded: in threads of the training workers, or by Ray Data tasks on CPU nodes."""
    decode_threads: pydantic.PositiveInt = 2
    """Decoding threads of each training worker (decode: trainer)."""

    @pydantic.field_validator("languages")
    @classmethod
    def _one_spelling(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(normalise_language(language) for language in languages))

    @property
    def train(self) -> tuple[str, ...]:
        """All folders that are trained on."""
        return (*self.strict, *self.weak, *self.parallel)

    @property
    def captioned(self) -> tuple[str, ...]:
        """Those of them whose captions say which words there are to translate: D_s, which all systems read, so that all are asked alike."""
        return self.strict


class Rc3Settings(Settings):
    """All settings of a pre-training run of RC³ or a rival."""

    run: RunSettings = RunSettings(name="rc3")
    """Where the run is kept."""
    system: Rc3Name = "rc3"
    """What is pre-trained: RC³, an ablation of it, or a rival."""
    data: Rc3DataSettings = Rc3DataSettings()
    """Which data, and how it reaches the training workers."""
    model: Rc3ModelSettings = Rc3ModelSettings()
    """The network."""
    objective: Rc3ObjectiveSettings = Rc3ObjectiveSettings()
    """What is minimised."""
    training: TrainingSettings = TrainingSettings()
    """The training run."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """What is scored when training has ended: the translation of sentences by their vectors (TR)."""
    storage: StorageSettings = StorageSettings()
    """Object storage."""
    ray: RaySettings = RaySettings()
    """The Ray that is started where none is running."""

    @property
    def trained(self) -> bool:
        """Whether there is anything to train step by step."""
        return True

    def resolved(self) -> "Rc3Settings":
        """With what `system` says put into the other settings: weights of losses that it has not are 0, streams that it does not read
        are left out.

        Raises:
            UserError: the system cannot be trained with these settings.
        """
        read = streams_of(self.system)
        for name in read:
            if not getattr(self.data, name):
                raise UserError(f"data.{name}: the system {self.system} learns from this stream; name a folder")
        if needs_regions(self.system) and self.data.strict_visual == "patches":
            raise UserError(f"data.strict_visual: the system {self.system} learns from regions; set it to regions or combined")
        changed: dict[str, Any] = {
            "objective": rc3_objective_of(self.system, self.objective),
            "data": self.data.model_copy(update={name: () for name in STREAMS if name not in read}),
        }
        return from_mapping(type(self), self.model_copy(update=changed).model_dump(), f"system {self.system}")

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "Rc3Settings":
        network, size = self.model.network, self.data.image.size
        if size % network.patch:
            raise ValueError(
                f"data.image.size: pictures of {size} pixels cannot be cut into patches of {network.patch} (model.network.patch)"
            )
        if self.evaluation.held_out:
            raise ValueError("evaluation.held_out: the network has a tag for each of its languages, and none for others; leave it empty")
        return self
