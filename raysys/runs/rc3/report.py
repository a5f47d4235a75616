"""Write the report of a pre-training run: one HTML page with scores, curves and examples."""

from raysys import settings as settings_module
from raysys.data.streams import Rc3Streams
from raysys.evaluation.examples import translation_examples
from raysys.evaluation.report import write_report
from raysys.evaluation.report_data import ReportData
from raysys.runs.evaluate import Evaluation
from raysys.runs.report import REPORT, commands, report_facts
from raysys.runs.run import Run
from raysys.systems.rc3.names import RC3_TITLES
from raysys.training.ledger import Ledger


def report_rc3(run: Run, evaluation: Evaluation) -> str:
    """Write ``report.html`` into the run's folder and return where it lies."""
    streams, settings = run.samples, run.settings
    assert isinstance(streams, Rc3Streams)
    told = [
        f"{len(part):,} {what}"
        for part, what in zip(
            streams.kinds, ("pictures with translations", "pictures with loosely related texts", "parallel texts"), strict=True
        )
        if part is not None
    ]
    data = ReportData(
        title=run.name,
        summary=f"{RC3_TITLES[settings.system]} on {', '.join(told)}, in {len(streams.languages)} languages.",
        facts=report_facts(run, evaluation.scores["step"]),
        results=evaluation.scores["results"],
        this=run.name,
        rival=next(iter(settings.evaluation.beside), "").rsplit("/", 1)[-1],
        metrics=run.folder.metrics(),
        translations={name: translation_examples(evaluation.encoded[name], items) for name, items in evaluation.items.items()},
        bad_samples=[(f"{line['shard']}: {line['key']}", line["reason"]) for line in Ledger(run.folder, [streams]).lines],
        settings=settings_module.dumps(settings),
        commands=commands(run),
    )
    run.folder.write_text(REPORT, write_report(data))
    return run.folder.path(REPORT)
