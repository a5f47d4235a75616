"""Write the report of a run of fine-tuning."""

import shlex

from raysys import settings as settings_module
from raysys.evaluation.report import write_report
from raysys.evaluation.report_data import ReportData
from raysys.runs.finetune.evaluate import FinetuneEvaluation
from raysys.runs.finetune.run import described_data
from raysys.runs.report import REPORT
from raysys.runs.run import Run, SavedRun
from raysys.systems.rc3.tasks import TASK_TITLES
from raysys.training.ledger import Ledger

_TASK_SCORES = (
    "Accuracy is the share of right answers, beside that of the one answer that is right most often. Recall@1 ranks all images for every "
    "text and all texts for every image by how well they match; ties count with the expected value of a random order. BLEU is "
    "sacreBLEU's, as a share of 1, beside that of the sentences left as they are. Languages other than that of training are zero-shot."
)


def report_finetune(run: Run, evaluation: FinetuneEvaluation) -> str:
    """Write ``report.html`` into the run's folder and return where it lies."""
    settings, training = run.settings, run.settings.training
    tests = evaluation.scores["results"][run.name]
    facts = [
        ("Task", TASK_TITLES[settings.system]),
        ("Base", settings.base),
        ("Images", settings.visual),
        ("Steps", f"{run.total_steps}, exported {evaluation.scores['step']}"),
        ("Global batch", str(training.global_batch)),
        ("Learning rate", f"{training.learning_rate:g}"),
        ("Workers", f"{training.workers}, ZeRO {training.zero_stage}, {training.precision}"),
        ("Seed", str(training.seed)),
    ]
    data = ReportData(
        title=run.name,
        summary=f"{described_data(run)[:1].upper()}{described_data(run)[1:]}.",
        facts=facts,
        results=evaluation.scores["results"],
        this=run.name,
        rival=next(iter(settings.evaluation.beside), "").rsplit("/", 1)[-1],
        explained=_TASK_SCORES,
        split_notes={name: note for name, found in tests.items() if (note := _note(found))},
        metrics=run.folder.metrics(),
        bad_samples=[(f"{line['shard']}: {line['key']}", line["reason"]) for line in Ledger(run.folder, [run.samples]).lines],
        settings=settings_module.dumps(settings),
        commands=commands(run),
    )
    run.folder.write_text(REPORT, write_report(data))
    return run.folder.path(REPORT)


def _note(found: dict) -> str:
    """What has to be said of a test's scores."""
    if unseen := found.get("unseen_answers"):
        return f"{unseen} answers are none of training's, and count as wrong"
    return found.get("signature", "")


def commands(run: SavedRun) -> list[tuple[str, str]]:
    """(what it does, command line) of what a person may do with the run."""
    place = shlex.quote(run.folder.uri)
    return [
        ("Train it again, or go on", f"python jobs/finetune.py {run.settings.system} --config {place}/settings.yaml"),
        ("Score it again", f"python jobs/evaluate.py --run {place}"),
    ]


def next_steps(run: SavedRun) -> list[str]:
    """What a person may run next, one command a line."""
    return [f"  {command}" for _, command in commands(run)[1:]]
