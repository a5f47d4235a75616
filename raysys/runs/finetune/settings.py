"""All settings of fine-tuning on a task, in one tree."""

from typing import Any, Literal, NamedTuple

import pydantic

from raysys.data.samples import StoredDataSettings
from raysys.data.task_images import VisualForm
from raysys.data.task_records import TaskName
from raysys.errors import UserError
from raysys.settings import Settings, from_mapping
from raysys.shards.languages import normalise_language
from raysys.storage import StorageSettings
from raysys.training.settings import RaySettings, RunSettings, TrainingSettings


class Published(NamedTuple):
    """What the paper's Table 6 says of a task."""

    learning_rate: float
    global_batch: int
    epochs: int
    max_tokens: int


TABLE_6: dict[TaskName, Published] = {
    "xvnli": Published(4e-5, 128, 10, 80),
    "xgqa": Published(4e-5, 256, 5, 40),
    "marvl": Published(4e-5, 64, 40, 80),
    "itr": Published(1e-5, 64, 10, 80),
    "mmt": Published(5e-6, 256, 5, 50),
}
"""Hyperparameters of the tasks; what the settings do not say is as here."""


def training_of(task: TaskName) -> dict[str, Any]:
    """What Table 6 says of the training of a task, as settings."""
    published = TABLE_6[task]
    return {name: getattr(published, name) for name in ("learning_rate", "global_batch", "epochs")}


class FinetuneDataSettings(StoredDataSettings):
    """Which records, and where their images lie."""

    train: tuple[str, ...] = ()
    """Folders of records to train on, beneath `folder` (or absolute, or s3://)."""
    validation: tuple[str, ...] = ()
    """Folders of records that choose the best checkpoint."""
    tests: dict[str, str] = pydantic.Field(default_factory=dict)
    """Folders of records to score, by name: the language; of mmt a name of one's own, followed by source and target language where they are
    not those of training (2016/en-fr)."""
    images: tuple[str, ...] = ()
    """Folders whose samples hold the images of the records, by key: pictures, regions (.rois.npz), or both; where two have a key, the first
    counts. Images that lie in the samples of the records themselves need none."""
    test_images: dict[str, tuple[str, ...]] = pydantic.Field(default_factory=dict)
    """Folders of images of single tests, in place of `images`: MaRVL numbers the images of each language anew."""
    source: str = "en"
    """Language of the texts that are trained on (BCP-47)."""
    target: str | None = None
    """Of mmt, the language to translate into."""
    max_tokens: int | None = pydantic.Field(None, ge=3)
    """Longest text in pieces, [BOS] and [LAN] included; none: as the paper's Table 6 has it, or what the base's network reads if that is
    less. Pictures are prepared as the base's were, whatever `image` says."""
    cached_views: Literal[0] = 0
    """The network is trained with the task, so that no vectors can be kept."""
    window_steps: pydantic.PositiveInt = 4
    """Steps that one reading task fetches and whose samples are mixed; their decoded images are in memory together."""

    @pydantic.field_validator("source", "target")
    @classmethod
    def _one_spelling(cls, language: str | None) -> str | None:
        return normalise_language(language) if language else None

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages that are trained on."""
        return (self.source, *([self.target] if self.target else []))

    def pair_of(self, test: str) -> tuple[str, str | None]:
        """Source and target language of a test of translation: what its name ends with, or those of training.

        Raises:
            UserError: its name ends with something that is no pair of languages.
        """
        _, slash, pair = test.rpartition("/")
        if not slash:
            return self.source, self.target
        try:
            for place in (place for place, sign in enumerate(pair) if sign == "-"):  # zh-Hans-en
                if pair[place + 1 : place + 2].islower():
                    return normalise_language(pair[:place]), normalise_language(pair[place + 1 :])
        except ValueError as error:
            raise UserError(f"data.tests.{test}: {error}") from None
        raise UserError(f"data.tests.{test}: {pair!r} is no pair of languages; end the name with one such as en-de, or give it no slash")


class FinetuneModelSettings(Settings):
    """What is put on the pre-trained network."""

    near: pydantic.PositiveInt = 1
    """Of itr, so many rows before and after a row, in a random order of the batch, give their texts for its image to be told apart from;
    a row costs 1 + 2 · near passes of the encoder."""


class FinetuneEvaluationSettings(Settings):
    """What is scored when training has ended."""

    beside: tuple[str, ...] = ()
    """Other runs to show in the score table and report, by name or folder."""
    beams: pydantic.PositiveInt = 4
    """Beams of the search for translations."""
    batch_size: pydantic.PositiveInt = 32
    """Records, or pairs of image and text, in a forward pass."""


class FinetuneSettings(Settings):
    """All settings of fine-tuning on a task."""

    run: RunSettings = RunSettings(name="finetuned")
    """Where the run is kept."""
    system: TaskName
    """The task."""
    base: str = ""
    """The finished pre-training run that it begins with: its folder, or its name beside this run."""
    visual: VisualForm = "patches"
    """What the network sees of images: pixels, regions of a detector, or both."""
    data: FinetuneDataSettings = FinetuneDataSettings()
    """Which records, and how they reach the training workers."""
    model: FinetuneModelSettings = FinetuneModelSettings()
    """What is put on the network."""
    training: TrainingSettings = TrainingSettings()
    """The training run; by default as the paper's Table 6 has it for the task."""
    evaluation: FinetuneEvaluationSettings = FinetuneEvaluationSettings()
    """What is scored when training has ended."""
    storage: StorageSettings = StorageSettings()
    """Object storage."""
    ray: RaySettings = RaySettings()
    """The Ray that is started where none is running."""

    @property
    def trained(self) -> bool:
        """Whether there is anything to train step by step."""
        return True

    @property
    def max_tokens(self) -> int:
        """Longest text in pieces."""
        return self.data.max_tokens or TABLE_6[self.system].max_tokens

    def resolved(self) -> "FinetuneSettings":
        """With what the task does not read left out.

        Raises:
            UserError: the task cannot be trained with these settings.
        """
        if not self.base:
            raise UserError("base: name the finished pre-training run to begin with, such as --base runs/rc3; python jobs/rc3.py makes one")
        if not self.data.train:
            raise UserError(f"data.train: name a folder of records of the task {self.system}, such as {self.system}-train-en")
        if self.system == "mmt" and not self.data.target:
            raise UserError("data.target: name the language to translate into, such as --data.target de")
        if unknown := sorted(set(self.data.test_images) - set(self.data.tests)):
            raise UserError(f"data.test_images: there is no test {', '.join(unknown)}; tests are {', '.join(self.data.tests) or 'none'}")
        target = self.data.target if self.system == "mmt" else None
        data = self.data.model_copy(update={"target": target})
        return from_mapping(FinetuneSettings, self.model_copy(update={"data": data}).model_dump(), f"task {self.system}")

    @pydantic.model_validator(mode="before")
    @classmethod
    def _as_published(cls, values: Any) -> Any:
        """Put Table 6 under what is said of training."""
        if isinstance(values, dict) and isinstance(values.get("training", {}), dict):
            task = values.get("system", cls.model_fields["system"].default)
            if task in TABLE_6:
                return values | {"training": training_of(task) | values.get("training", {})}
        return values


def settings_class(task: TaskName) -> type[FinetuneSettings]:
    """FinetuneSettings whose defaults are those of a task, for the command line."""

    class Finetune(FinetuneSettings):
        run: RunSettings = RunSettings(name=task)
        """Where the run is kept."""
        system: TaskName = task
        """The task."""
        training: TrainingSettings = TrainingSettings(**training_of(task))
        """The training run; by default as the paper's Table 6 has it for the task."""

    return Finetune
