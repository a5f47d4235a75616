"""Write a grounded run's report: one HTML page with scores and curves."""

from raysys import settings as settings_module
from raysys.data.streams import Streams
from raysys.evaluation.report import write_report
from raysys.evaluation.report_data import STRUCTURE_SCORES, ReportData
from raysys.runs.grounded.evaluate import GroundedEvaluation
from raysys.runs.report import REPORT, commands, report_facts
from raysys.runs.run import Run
from raysys.systems.grounded.names import GROUNDED_TITLES
from raysys.training.ledger import Ledger


def report_grounded(run: Run, evaluation: GroundedEvaluation) -> str:
    """Write ``report.html`` into the run's folder and return where it lies."""
    streams, settings = run.samples, run.settings
    assert isinstance(streams, Streams)
    told = [
        *([f"{len(streams.triples):,} triples of sentences"] if streams.triples is not None else []),
        *([f"{len(streams.captions):,} pictures with captions"] if streams.captions is not None else []),
    ]
    data = ReportData(
        title=run.name,
        summary=f"{GROUNDED_TITLES[settings.system]} on {' and '.join(told)}, in {settings.data.language}.",
        facts=report_facts(run, evaluation.scores["step"]),
        results=evaluation.scores["results"],
        this=run.name,
        rival=next(iter(settings.evaluation.beside), "").rsplit("/", 1)[-1],
        explained=STRUCTURE_SCORES,
        metrics=run.folder.metrics(),
        bad_samples=[(f"{line['shard']}: {line['key']}", line["reason"]) for line in Ledger(run.folder, [streams]).lines],
        settings=settings_module.dumps(settings),
        commands=commands(run),
    )
    run.folder.write_text(REPORT, write_report(data))
    return run.folder.path(REPORT)
