"""What a training worker is told: picklable, and without an engine."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
import torch.distributed
from torch import Tensor

from raysys.data.images import ImagePreprocessorSettings
from raysys.data.plan import Plan
from raysys.data.shares import ShareBuilder
from raysys.training.checkpoints import Checkpoints
from raysys.training.ledger import Ledger
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings


class System(Protocol):
    """What can be trained: a torch module with these methods."""

    neighbour_keys: Literal["momentum", "recent"] | None
    """Whose vectors of a step's samples it wants to be shown after the step, by ``remember(vectors)`` with the rows of the global batch:
    those of the moving average of the weights, or those that its losses were computed from; None: none, and it needs no such method."""

    exchange: Callable[[Any, Callable[[Tensor], Tensor], int], Any] | None
    """``exchange(batch, gather, first)``, where a row is computed with parts of other rows: this worker's batch with those parts.
    ``gather(rows)`` gives all workers' rows of a tensor, of which this worker's begin at number `first`. Called by every rank for each
    batch that losses are computed over, before that is divided into micro-batches. None: rows need nothing of one another."""

    def __call__(self, batch: Any) -> dict[str, Tensor]:
        """This worker's part of what the losses need, tensors with a row per sample, from :class:`raysys.data.batches.Rows` of the kind
        that the job's builder makes."""

    def losses(self, vectors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Named scalar terms from the global batch's rows."""

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """The scalar that is minimised."""

    def temperature_values(self, vectors: dict[str, Tensor]) -> dict[str, float]:
        """By which temperatures the terms were computed, by name, for people."""

    def checkpoint_activations(self) -> None:
        """From now on compute activations again in the backward pass instead of keeping them."""


@dataclass(frozen=True)
class Validation:
    """How checkpoints are scored while training goes on."""

    builder: ShareBuilder
    """Makes batches of the validation samples."""
    score: Callable[[dict[str, np.ndarray]], dict[str, float]]
    """All validation samples' vectors → metrics."""
    metric: str
    """The metric by which the best checkpoint is chosen; greater is better."""


@dataclass(frozen=True)
class TrainingJob:
    """All that a worker needs to know; picklable."""

    settings: TrainingSettings
    build: Callable[[], Any]
    """Makes the system, drawing its weights from torch's global generator."""
    plan: Plan
    builder: ShareBuilder
    """Reads the training data."""
    total_steps: int
    folder: RunFolder
    image: ImagePreprocessorSettings
    decode_threads: int
    validation: Validation | None = None

    @property
    def checkpoints(self) -> Checkpoints:
        """The run's checkpoints."""
        return Checkpoints(self.folder, self.settings.keep_checkpoints)

    @property
    def ledger(self) -> Ledger:
        """What is known of bad samples, as the run folder has it."""
        return Ledger(self.folder, [self.builder.samples, *([self.validation.builder.samples] if self.validation else [])])


@dataclass(frozen=True)
class Place:
    """Which of how many workers this is, and its device."""

    rank: int
    workers: int
    device: torch.device

    def barrier(self) -> None:
        """Wait for all workers."""
        if self.workers > 1:
            torch.distributed.barrier()
