"""How long, how fast and on what to train."""

import re
from typing import Literal

import pydantic

from raysys.settings import Settings


class TrainingSettings(Settings):
    """The training run."""

    epochs: pydantic.PositiveFloat = 200
    """Passes over the data; used where `steps` is not given."""
    steps: pydantic.PositiveInt | None = None
    """Optimizer steps; overrides `epochs`."""
    global_batch: pydantic.PositiveInt = 440
    """Samples per step over all workers; every contrastive loss is over all of them."""
    seed: int = 0
    """Of weights, order, captions, masks, augmentation and dropout."""
    micro_batch: pydantic.PositiveInt | None = None
    """Most samples of one forward pass: the global batch is divided into micro-batches, the same ones for any number of workers. The memory
    of activations depends on it alone, at the cost of a second forward pass. None: one per worker (of the most there may be)."""
    accumulation: Literal["exact", "plain"] = "exact"
    """With several micro-batches per worker: 'exact' compares every sample with the whole global batch, 'plain' with those of the other
    workers' micro-batches alone."""
    activation_checkpointing: bool = False
    """Compute activations again in the backward pass instead of keeping them."""
    workers: int | str = 2
    """Training processes; a range such as 2..8 lets the run go on with fewer when a node is lost, and with more when one joins."""
    resize_seconds: pydantic.NonNegativeFloat = 60.0
    """How often, at most, a running group of a range looks for room for more workers. It looks at checkpoints, and begins again with more
    workers right after one, so that no step is done twice."""
    cpus_per_worker: pydantic.PositiveInt = 1
    """CPUs that each worker is given."""
    gpu: bool = False
    """Give each worker a GPU."""
    zero_stage: Literal[0, 1, 2, 3] = 1
    """DeepSpeed ZeRO: partition nothing, optimizer state, and gradients, and weights."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Of activations, and in bf16 of the weights they come from; losses and the optimizer's weights are always float32."""
    learning_rate: pydantic.PositiveFloat = 1e-4
    """Peak learning rate of AdamW."""
    learning_rate_factors: dict[str, pydantic.NonNegativeFloat] = pydantic.Field(default_factory=dict)
    """Parts of the system that learn faster or slower: the beginning of their parameters' names → factor of the learning rate."""
    layer_decay: float = pydantic.Field(1.0, gt=0.0, le=1.0)
    """Learning rate of each layer as a share of that of the next; the last of a network has the full one, and its embeddings the least."""
    weight_decay: pydantic.NonNegativeFloat = 0.01
    """Of matrices; biases and norms have none."""
    warmup_steps: pydantic.NonNegativeInt = 0
    """Steps over which the learning rate rises from 0."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Learning rate after the warm-up."""
    clip_norm: pydantic.NonNegativeFloat = 1.0
    """Greatest norm of the gradient; 0: not clipped."""
    checkpoint_every: pydantic.PositiveInt = 500
    """Steps between checkpoints, which are also scored on the validation data."""
    keep_checkpoints: pydantic.PositiveInt = 2
    """Latest checkpoints that are kept, besides the best one."""
    log_every: pydantic.PositiveInt = 10
    """Steps between lines of metrics.jsonl."""
    ema_decay: float | None = pydantic.Field(None, gt=0.0, lt=1.0)
    """Keep a moving average of the weights, which is then what is validated and exported; of this share per step, of less in the first
    steps. Statistics of batch normalisation are not averaged."""
    on_nonfinite: Literal["stop", "skip"] = "stop"
    """A loss or gradient that is not finite ends the run, or leaves the step out, up to `max_skipped_steps`."""
    max_skipped_steps: pydantic.NonNegativeInt = 10
    """Steps of a run that may be left out; one more ends it."""
    max_failures: pydantic.NonNegativeInt = 2
    """How often a failed worker group is started again. Lost nodes do not count, unless two are lost with no checkpoint in between."""
    watchdog_seconds: pydantic.NonNegativeFloat = 600.0
    """A worker without progress for so long (three times as long before its first step) tells where it stands and is ended, which counts as
    a failure; 0: never."""
    profile_steps: pydantic.NonNegativeInt = 0
    """Steps to profile; a Chrome trace is written to `profile/` in the run's folder."""
    profile_from: pydantic.NonNegativeInt = 10
    """Steps of a worker group before the first that is profiled."""
    profile_all_workers: bool = False
    """Profile every worker, not the first alone."""
    trackers: tuple[Literal["wandb", "mlflow"], ...] = ()
    """Where metrics go besides metrics.jsonl and TensorBoard (pip install 'raysys[trackers]'). Addresses and credentials come from the
    workers' environment variables, such as WANDB_API_KEY and MLFLOW_TRACKING_URI."""

    @pydantic.field_validator("workers")
    @classmethod
    def _number_or_range(cls, value: int | str) -> int | str:
        number = re.fullmatch(r"([1-9]\d*)(?:\.\.([1-9]\d*))?", str(value))
        if number is None:
            raise ValueError("neither a number of workers nor a range of them such as 2..8")
        if number[2] is None:
            return int(number[1])
        if int(number[1]) > int(number[2]):
            raise ValueError(f"the range {value} ends before it begins")
        return value

    @pydantic.model_validator(mode="after")
    def _enough_samples(self) -> "TrainingSettings":
        if self.max_workers > self.global_batch:
            raise ValueError(f"workers: {self.max_workers} workers, but a global batch of {self.global_batch} samples: some had none")
        return self

    @property
    def elastic(self) -> bool:
        """Whether the number of workers follows the cluster."""
        return not isinstance(self.workers, int)

    @property
    def min_workers(self) -> int:
        """Workers without which the run does not go on."""
        return self.workers if isinstance(self.workers, int) else int(self.workers.partition("..")[0])

    @property
    def max_workers(self) -> int:
        """Most workers."""
        return self.workers if isinstance(self.workers, int) else int(self.workers.partition("..")[2])

    @property
    def micro_batches(self) -> int:
        """Parts that a global batch is divided into for forward passes: at least one for every worker there may be."""
        return max(self.max_workers, -(-self.global_batch // self.micro_batch) if self.micro_batch else 1)

    def total_steps(self, steps_per_epoch: int) -> int:
        """Steps of the whole run."""
        return self.steps if self.steps is not None else max(1, round(self.epochs * steps_per_epoch))


class RunSettings(Settings):
    """Where the run is kept."""

    name: str = pydantic.Field("globetrotter", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name of the run; a run of that name that exists is resumed."""
    storage: str = "runs"
    """Folder of all runs, local or s3://."""


class RaySettings(Settings):
    """The Ray that is started where none is running (with RAY_ADDRESS or `ray job submit`, that cluster is used)."""

    cpus: pydantic.PositiveInt | None = None
    """Logical CPUs of the local Ray; by default as many as the machine has, or as the workers and the data need."""
    dashboard: bool = True
    """Start Ray's dashboard on the loopback interface."""
