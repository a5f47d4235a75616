"""What is known of a run before it is started: in words, and by running its networks on noise. Needs no Ray."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raysys.runs import describe, noise
from raysys.runs.finetune.build import starting_task
from raysys.runs.finetune.noise import random_task_batch
from raysys.runs.finetune.run import describe_finetune
from raysys.runs.finetune.settings import FinetuneSettings
from raysys.runs.grounded.base import GroundedStart
from raysys.runs.grounded.networks import build_grounded
from raysys.runs.grounded.noise import random_grounded_batch
from raysys.runs.grounded.run import describe_grounded
from raysys.runs.grounded.settings import GroundedSettings
from raysys.runs.networks import build_system, has_tokenizer, saved_start, saved_tokenizer, starting_system
from raysys.runs.rc3.networks import build_rc3
from raysys.runs.rc3.noise import random_rc3_batch
from raysys.runs.rc3.run import describe_rc3
from raysys.runs.rc3.settings import Rc3Settings
from raysys.runs.run import AnyRunSettings, SavedRun
from raysys.runs.settings import GlobetrotterSettings


@dataclass(frozen=True)
class Outlook:
    """How a run of one paper's systems is looked at before it is started."""

    describe: Callable[..., list[str]]
    """Run → lines for people."""
    longest: Callable[..., int]
    """Run → ids of the longest text that its settings allow."""
    starting: Callable[..., Any]
    """Run → its networks as they begin; where it has no tokenizer yet, with the largest vocabulary that its settings allow."""
    noise: Callable[..., Any]
    """Run, networks, samples, generator → a batch of noise in the shape of the run's, its texts as long as the settings allow."""


def started(run: SavedRun) -> Any:
    """The networks of a run that has a tokenizer already, as they were before training; None of one that has none."""
    return starting_system(run, saved_tokenizer(run)) if has_tokenizer(run) else None


_MASK = 4
"""Stands for the mask token of a tokenizer that has not been trained yet."""
_OUTLOOKS: dict[type[AnyRunSettings], Outlook] = {
    GlobetrotterSettings: Outlook(
        describe.describe,
        lambda run: run.settings.model.text.form.longest,
        lambda run: started(run) or build_system(run.settings, run.settings.model, saved_start(run)),
        noise.random_batch,
    ),
    GroundedSettings: Outlook(
        describe_grounded,
        lambda run: run.settings.model.text.form.longest,
        lambda run: started(run) or build_grounded(run.settings, run.settings.model.text.vocabulary_size, GroundedStart()),
        random_grounded_batch,
    ),
    Rc3Settings: Outlook(
        describe_rc3,
        lambda run: run.settings.model.network.max_tokens,
        lambda run: started(run) or build_rc3(run.settings, run.settings.model.network.vocabulary_size, _MASK, None),
        random_rc3_batch,
    ),
    FinetuneSettings: Outlook(describe_finetune, lambda run: run.settings.max_tokens, starting_task, random_task_batch),
}


def outlook_of(settings: AnyRunSettings) -> Outlook:
    """Of a run's settings."""
    return _OUTLOOKS[type(settings)]
