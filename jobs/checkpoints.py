"""What checkpoints a run has, whether they are whole, and which may go.

    python jobs/checkpoints.py list   --run runs/shapes            step, date, size, workers, ZeRO stage, score
    python jobs/checkpoints.py verify --run runs/shapes            reads every byte; one line per fault; exit code 1 if there is any
    python jobs/checkpoints.py prune  --run runs/shapes --keep 1   deletes all but the latest ones and the best one

`--run` takes a run's folder, local or s3://, or its name in `runs`.
"""

import argparse
from collections.abc import Callable

from raysys.errors import DONE, FAILED, run_program
from raysys.storage import StorageSettings
from raysys.training.checkpoint_files import CheckpointReader, Damaged
from raysys.training.checkpoint_mark import MARK, Found, best_scored
from raysys.training.checkpoints import Checkpoints


def show(checkpoints: Checkpoints, options: argparse.Namespace) -> int:
    """Print a line for each checkpoint."""
    found = checkpoints.survey()
    if not found:
        print(f"no checkpoints in {checkpoints.folder.checkpoints}")
        return DONE
    usable = [one.mark.state for one in found if one.mark and not one.fault]
    best = best_scored(usable)
    print(f"{'step':>9}  {'complete since (UTC)':20}  {'MB':>9}  {'workers':>7}  {'ZeRO':>4}  {'score':>8}")
    for one in found:
        size = f"{sum(one.files.values()) / 1e6:9.1f}"
        if not one.mark or one.fault:
            print(f"{one.step:9}  {'':20}  {size}  cannot be used: {one.fault}")
            continue
        state, time = one.mark.state, one.mark.time[:19].replace("T", " ")
        score = "" if state.score is None else f"{state.score:.4f}"
        notes = [name for name, which in (("best", best), ("latest", usable[-1])) if state == which]
        print(f"{one.step:9}  {time:20}  {size}  {state.workers:7}  {state.zero_stage:4}  {score:>8}  {', '.join(notes)}".rstrip())
    return DONE


def verify(checkpoints: Checkpoints, options: argparse.Namespace) -> int:
    """Read every checkpoint that says it is complete, and print its faults."""
    found = checkpoints.survey()
    complete = [one for one in found if MARK in one.files]
    number = 0
    for one in complete:
        for fault in _faults(checkpoints, one):
            print(f"{one.uri}: {fault}", flush=True)
            number += 1
    told = f"{number or 'no'} fault{'' if number == 1 else 's'} in {len(complete)} checkpoint{'' if len(complete) == 1 else 's'}"
    print(told + (f", {len(found) - len(complete)} more not complete" if len(found) > len(complete) else ""))
    return FAILED if number else DONE


def _faults(checkpoints: Checkpoints, one: Found) -> list[str]:
    if one.fault or not one.mark:
        return [str(one.fault)]
    try:
        return list(CheckpointReader(checkpoints.folder.storage, one.uri, one.mark).faults())
    except Damaged as damage:
        return [str(damage)]


def prune(checkpoints: Checkpoints, options: argparse.Namespace) -> int:
    """Delete what is neither among the latest nor the best."""
    deleted = checkpoints.prune(options.keep)
    for uri in deleted:
        print(f"deleted {uri}")
    kept = ", ".join(str(state.step) for state in checkpoints.all())
    print(f"{len(deleted) or 'nothing'} deleted; kept: {f'step {kept}' if kept else 'none'}")
    return DONE


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run the chosen action; returns the exit code."""
    parser = argparse.ArgumentParser(prog="jobs/checkpoints.py", description="List, verify or prune the checkpoints of a run.")
    actions = parser.add_subparsers(dest="action", required=True)

    def action(name: str, run: Callable[[Checkpoints, argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        command = actions.add_parser(name, help=text, description=text)
        command.add_argument("--run", required=True, help="the run: its folder, local or s3://, or its name in `runs`")
        command.add_argument("--storage.endpoint", dest="endpoint", help="URL of the S3 endpoint (default: AWS_ENDPOINT_URL)")
        command.add_argument("--storage.region", dest="region", help="S3 region (default: AWS_REGION)")
        command.set_defaults(action=run)
        return command

    action("list", show, "Print a line for each checkpoint.")
    action("verify", verify, "Read every byte and print one line per fault; exit code 1 if there is any.")
    command = action("prune", prune, "Delete all checkpoints but the latest ones and the best one; nothing is asked.")
    command.add_argument("--keep", type=_at_least_one, help="latest checkpoints to keep (default: training.keep_checkpoints of the run)")
    options = parser.parse_args(arguments)

    from raysys.runs.run import load_run

    run = load_run(options.run, StorageSettings(endpoint=options.endpoint, region=options.region))
    return options.action(run.checkpoints, options)


def _at_least_one(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of checkpoints, 1 or more")
    return int(text)


if __name__ == "__main__":
    run_program(main)
