"""What the runs of one paper's systems do differently from those of another's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raysys.runs import build, describe, evaluate, report
from raysys.runs.grounded.build import get_tokenizer, make_job
from raysys.runs.grounded.evaluate import evaluate_grounded
from raysys.runs.grounded.report import report_grounded
from raysys.runs.grounded.run import describe_grounded
from raysys.runs.grounded.settings import GroundedSettings
from raysys.runs.run import AnyRunSettings


@dataclass(frozen=True)
class Kind:
    """The steps from data to report that depend on which paper's system a run trains."""

    describe: Callable[..., list[str]]
    """Run → lines for people."""
    get_tokenizer: Callable[..., Any]
    """Run → its tokenizer, made and saved now where it has none."""
    make_job: Callable[..., Any]
    """Run, tokenizer, log → what the workers are told."""
    evaluate: Callable[..., Any]
    """Run, tokenizer, encoder, log, tests → what was found; writes ``scores.json``."""
    report: Callable[..., str]
    """Run and what was found → where the report lies."""


_GLOBETROTTER = Kind(describe.describe, build.get_tokenizer, build.make_job, evaluate.evaluate_run, report.report_run)
_GROUNDED = Kind(describe_grounded, get_tokenizer, make_job, evaluate_grounded, report_grounded)


def kind_of(settings: AnyRunSettings) -> Kind:
    """Of a run's settings."""
    return _GROUNDED if isinstance(settings, GroundedSettings) else _GLOBETROTTER
