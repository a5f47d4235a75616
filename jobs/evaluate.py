"""Score a run on its test splits, beside chance, the untrained networks and other runs; writes scores.json.

    python jobs/evaluate.py --run runs/shapes
    python jobs/evaluate.py --run runs/shapes --split test-unseen photos=data/photos/test

The run's export is scored; where it has none, its best checkpoint is exported first.
"""

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence

from raysys.errors import UserError, run_program
from raysys.settings import Settings, from_command_line
from raysys.storage import StorageSettings, is_remote


class EvaluateSettings(Settings):
    """Which run to score, and on what."""

    run: str
    """The run: its folder, local or s3://, or its name in `runs`."""
    data: str | None = None
    """Folder, local or s3://, in which the splits lie; by default the run's data.folder."""
    split: tuple[str, ...] = ()
    """Splits to score: names in the run's data.tests, or NAME=FOLDER for others; by default all of data.tests."""
    storage: StorageSettings = StorageSettings()
    """How to reach object storage."""


def choose_splits(wanted: Sequence[str], known: Mapping[str, str]) -> dict[str, str] | None:
    """Splits by name → folder; None where none are asked for. Raises UserError for a name that is not `known`."""
    chosen = {}
    for split in wanted:
        name, given, folder = split.partition("=")
        if not given and name not in known:
            has = f"; the run has {', '.join(known)}" if known else ""
            raise UserError(f"--split {split}: there is no such split in the run's data.tests{has}; give others as NAME=FOLDER")
        if not name or (given and not folder):
            raise UserError(f"--split {split}: expected NAME or NAME=FOLDER")
        # A folder that a person types is meant from where they stand, unless it lies with the run's other data.
        chosen[name] = (os.path.abspath(folder) if os.path.isdir(folder) else folder) if given else known[name]
    return chosen or None


def main() -> None:
    settings = from_command_line(EvaluateSettings, sys.argv[1:], "evaluate.py", "Score a run on its test splits.")

    from raysys.runs.kinds import kind_of
    from raysys.runs.run import load_run, with_data

    run = load_run(settings.run, settings.storage)
    if settings.data is not None:
        run = dataclasses.replace(run, settings=with_data(run.settings, folder=settings.data))
    data = run.settings.data
    tests = choose_splits(settings.split, data.tests)
    if not (tests or data.tests or getattr(run.settings.evaluation, "senteval", "")):
        raise UserError(f"the run {run.folder.uri} has no data.tests: name what to score with --split NAME=FOLDER")
    if not is_remote(data.folder) and not os.path.isdir(data.folder):
        raise UserError(f"the folder {data.folder} of the run's data is not here: say with --data where the splits lie")
    kind = kind_of(run.settings)
    exported = kind.trained(run)
    kind.evaluate(run, exported.tokenizer, exported, tests=tests)
    print(f"scores: {run.folder.path('scores.json')}")


if __name__ == "__main__":
    run_program(main)
