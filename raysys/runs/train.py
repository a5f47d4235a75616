"""Train a run, export and score it, and say what was reached."""

from concurrent.futures import ThreadPoolExecutor

from raysys.runs.kinds import kind_of
from raysys.runs.networks import forget_start
from raysys.runs.outlook import outlook_of
from raysys.runs.run import Log, Run
from raysys.training.job import TrainingJob
from raysys.training.lease import Lease, claimed
from raysys.training.ledger import LEDGER, Ledger
from raysys.training.trainer import fit, start_ray


def train_run(run: Run, started: float, log: Log = print) -> None:
    """Train to the last step (from the latest checkpoint, if there is one), export the best checkpoint, score, report.

    Args:
        run: what to train.
        started: `time.perf_counter()` when the command was given.
        log: takes a line for people.

    Raises:
        UserError: the workers do not fit the cluster, or another command trains the run.
        RunFailed: training failed, and failed again after restarts.
        KeyboardInterrupt: after a line that says how to resume.
    """
    run.folder.check_writable()
    with claimed(run.folder, log) as lease:
        for line in outlook_of(run.settings).describe(run):
            log(line)
        run.folder.save_settings(run.settings)
        if not run.checkpoints.next_step():
            forget_start(run)
            run.folder.storage.delete(run.folder.path(LEDGER))
        try:
            _train_and_score(run, started, lease, log)
        except KeyboardInterrupt:
            log(f"stopped; {run.checkpoints.next_step()} steps are kept: the same command goes on from there")
            raise


def _train_and_score(run: Run, started: float, lease: Lease, log: Log) -> None:
    kind, unfinished = kind_of(run.settings), run.checkpoints.next_step() < run.total_steps
    with ThreadPoolExecutor(1) as background:  # Ray takes seconds to start, the tokenizer to be made
        making = background.submit(kind.get_tokenizer, run)
        if unfinished:
            log("starting Ray and the workers, which takes half a minute")
            start_ray(run.settings.ray, run.settings.training)
        tokenizer = making.result()
    if not run.settings.trained:
        kind.make_job(run, tokenizer, log)  # computes all there is to it
    elif unfinished:
        job = kind.make_job(run, tokenizer, log)
        keep_ledger(job)
        fit(job, run.name, started, lease)
        tell_bad_samples(job.ledger, log)
    exported = kind.export(run, tokenizer, log)
    evaluation = kind.evaluate(run, tokenizer, exported, log)
    log(f"report: {kind.report(run, evaluation)}")
    log("next:")
    for line in kind.next_steps(run):
        log(line)


def keep_ledger(job: TrainingJob) -> None:
    """Write ``ledger.jsonl`` with what indexing found, before training adds to it; an empty one says that nothing was bad so far."""
    ledger = job.ledger
    for samples in ledger.sources:
        for bad in samples.bad:
            ledger.add(bad)
    ledger.flush()


def tell_bad_samples(ledger: Ledger, log: Log) -> None:
    """Say how many samples were bad, and where they are named."""
    if bad := ledger.counted:
        causes = ", ".join(f"{cause} {number}" for cause, number in ledger.causes().items())
        log(f"bad samples: {len(bad)} ({causes}), named in {ledger.folder.path(LEDGER)}")
