"""Write a run's report: one HTML page with scores, curves and examples."""

import shlex
from collections.abc import Mapping
from typing import Any

from raysys import settings as settings_module
from raysys.evaluation.examples import failures, transitive_matches, translation_examples
from raysys.evaluation.report import write_report
from raysys.evaluation.report_data import ReportData
from raysys.evaluation.scores import EncodedItems, Item
from raysys.runs.evaluate import Evaluation
from raysys.runs.run import Run, SavedRun, program_of
from raysys.systems.build import TITLES
from raysys.training.ledger import Ledger

REPORT = "report.html"
"""The file in a run's folder."""
_EXAMPLES_FROM = ("test-unseen", "tuxpaint", "test-seen")  # the hardest first; any other split otherwise


def report_run(run: Run, evaluation: Evaluation) -> str:
    """Write ``report.html`` into the run's folder and return where it lies.

    Args:
        run: what was trained.
        evaluation: of its best checkpoint.
    """
    items, encoded = evaluation.items, evaluation.encoded
    first = next((name for name in _EXAMPLES_FROM if name in items), next(iter(items), None))
    objective = run.settings.objective
    shown = encoded.get(first) if first else None
    data = ReportData(
        title=run.name,
        summary=_summary(run),
        facts=report_facts(run, evaluation.scores["step"]),
        results=evaluation.scores["results"],
        this=run.name,
        rival=next(iter(run.settings.evaluation.beside), "").rsplit("/", 1)[-1],
        metrics=run.folder.metrics(),
        translations={name: translation_examples(encoded[name], items[name]) for name in items},
        matches=_matches(shown, items[first], objective) if first and shown is not None else (),
        margin=objective.margin,
        failures=failures(shown, items[first]) if first and shown is not None else (),
        samples=_samples(run, items),
        bad_samples=[(f"{line['shard']}: {line['key']}", line["reason"]) for line in Ledger(run.folder, [run.samples]).lines],
        settings=settings_module.dumps(run.settings),
        commands=commands(run),
    )
    run.folder.write_text(REPORT, write_report(data))
    return run.folder.path(REPORT)


def _matches(encoded: EncodedItems, items: list[Item], objective: Any) -> Any:
    if encoded.images is None or not objective.weights.transitive:
        return ()
    return transitive_matches(encoded, items, margin=objective.margin, variant=objective.transitive)


def _summary(run: Run) -> str:
    settings = run.settings
    what = "pictures, each with text" if settings.uses_images else "texts, each"
    told = "each was told its translations." if settings.system == "supervised" else "no sentence was ever seen beside its translation."
    off = [name.replace("_", "–") for name, weight in settings.objective.weights.model_dump().items() if not weight]
    left_out = f" Left out: the {', '.join(off)} loss." if off and settings.system == "globetrotter" else ""
    return f"{TITLES[settings.system]} on {len(run.samples):,} {what} in one of {len(run.samples.languages)} languages; {told}{left_out}"


def report_facts(run: Run, step: int) -> list[tuple[str, str]]:
    """How the run was trained, in short label–value pairs."""
    training = run.settings.training
    speeds = [line["train/samples_per_second"] for line in run.folder.metrics() if line.get("train/samples_per_second")]
    facts = [
        ("Steps", f"{run.total_steps}, exported {step}"),
        ("Global batch", str(training.global_batch)),
        ("Workers", f"{training.workers}, ZeRO {training.zero_stage}, {training.precision}"),
        ("Seed", str(training.seed)),
        ("Data", run.samples.fingerprint[:12]),
    ]
    if image := getattr(run.settings.model, "image", None):
        facts.insert(-1, ("Image network", image.backbone + (", frozen" if image.frozen else "")))
    if speeds:
        facts.insert(3, ("Speed", f"{sorted(speeds)[len(speeds) // 2]:.0f} samples/s"))
    return facts


def _samples(run: Run, items: Mapping[str, list[Item]]) -> dict[str, dict[str, int]]:
    counts = {"train": run.samples.counts()}
    if run.validation is not None:
        counts["validation"] = run.validation.counts()
    for name, split in items.items():
        counts[name] = {language: sum(language in item.captions for item in split) for language in run.samples.languages}
    return counts


def commands(run: SavedRun) -> list[tuple[str, str]]:
    """(what it does, command line) of what a person may do with the run."""
    place = shlex.quote(run.folder.uri)
    return [
        ("Train it again, or go on", f"python jobs/{program_of(run.settings)} --config {place}/settings.yaml"),
        ("Score it again", f"python jobs/evaluate.py --run {place}"),
        ("Compare sentences", f'python jobs/embed.py --run {place} --text "a red apple" "ein roter Apfel"'),
        ("Export for transformers", f"python jobs/export.py --run {place} --out encoder"),
    ]


def next_steps(run: SavedRun) -> list[str]:
    """What a person may run next, one command a line."""
    return [f"  {command}" for _, command in commands(run)[1:]]
