"""What the runs of one paper's systems do differently from those of another's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raysys.runs import build, evaluate, export, report
from raysys.runs.finetune import build as finetune_build
from raysys.runs.finetune import report as finetune_report
from raysys.runs.finetune.evaluate import evaluate_finetuned
from raysys.runs.finetune.export import export_finetuned, finetuned_model
from raysys.runs.finetune.settings import FinetuneSettings
from raysys.runs.grounded import build as grounded_build
from raysys.runs.grounded.evaluate import evaluate_grounded
from raysys.runs.grounded.report import report_grounded
from raysys.runs.grounded.settings import GroundedSettings
from raysys.runs.networks import saved_tokenizer
from raysys.runs.rc3 import build as rc3_build
from raysys.runs.rc3.report import report_rc3
from raysys.runs.rc3.settings import Rc3Settings
from raysys.runs.run import AnyRunSettings
from raysys.runs.settings import GlobetrotterSettings


@dataclass(frozen=True)
class Kind:
    """The steps from data to report that depend on which paper's system a run trains."""

    get_tokenizer: Callable[..., Any]
    """Run → its tokenizer, made and saved now where it has none."""
    make_job: Callable[..., Any]
    """Run, tokenizer, log → what the workers are told."""
    export: Callable[..., Any]
    """Run, tokenizer, log → its best checkpoint as it is used, exported now."""
    trained: Callable[..., Any]
    """Run → its export, which is made now where it has none."""
    evaluate: Callable[..., Any]
    """Run, tokenizer, what was exported, log, tests → what was found; writes ``scores.json``."""
    report: Callable[..., str]
    """Run and what was found → where the report lies."""
    next_steps: Callable[..., list[str]]
    """Run → what a person may run next, one command a line."""


_GLOBETROTTER = Kind(
    get_tokenizer=build.get_tokenizer,
    make_job=build.make_job,
    export=export.export,
    trained=export.trained_encoder,
    evaluate=evaluate.evaluate_run,
    report=report.report_run,
    next_steps=report.next_steps,
)
_GROUNDED = Kind(
    get_tokenizer=grounded_build.get_tokenizer,
    make_job=grounded_build.make_job,
    export=export.export,
    trained=export.trained_encoder,
    evaluate=evaluate_grounded,
    report=report_grounded,
    next_steps=report.next_steps,
)
_RC3 = Kind(
    get_tokenizer=rc3_build.get_tokenizer,
    make_job=rc3_build.make_job,
    export=export.export,
    trained=export.trained_encoder,
    evaluate=evaluate.evaluate_run,
    report=report_rc3,
    next_steps=report.next_steps,
)
_FINETUNE = Kind(
    get_tokenizer=finetune_build.get_tokenizer,
    make_job=finetune_build.make_job,
    export=export_finetuned,
    trained=lambda run: finetuned_model(run, saved_tokenizer(run)),
    evaluate=evaluate_finetuned,
    report=finetune_report.report_finetune,
    next_steps=finetune_report.next_steps,
)
_KINDS: dict[type[AnyRunSettings], Kind] = {
    GlobetrotterSettings: _GLOBETROTTER,
    GroundedSettings: _GROUNDED,
    Rc3Settings: _RC3,
    FinetuneSettings: _FINETUNE,
}


def kind_of(settings: AnyRunSettings) -> Kind:
    """Of a run's settings."""
    return _KINDS[type(settings)]
