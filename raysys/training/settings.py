"""How long, how fast and on what to train."""

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
    workers: pydantic.PositiveInt = 2
    """Training processes."""
    cpus_per_worker: pydantic.PositiveInt = 1
    """CPUs that each worker is given."""
    gpu: bool = False
    """Give each worker a GPU."""
    zero_stage: Literal[0, 1, 2, 3] = 1
    """DeepSpeed ZeRO: partition nothing, optimizer state, and gradients, and weights."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Of weights and activations; losses are always computed in float32."""
    learning_rate: pydantic.PositiveFloat = 1e-4
    """Peak learning rate of AdamW."""
    learning_rate_factors: dict[str, pydantic.NonNegativeFloat] = pydantic.Field(default_factory=dict)
    """Parts of the system that learn faster or slower: the beginning of their parameters' names → factor of the learning rate."""
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
    max_failures: pydantic.NonNegativeInt = 2
    """How often a failed worker group is started again."""

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
