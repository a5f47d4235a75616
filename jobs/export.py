"""Export what a run has trained as a folder that loads with transformers alone.

    python jobs/export.py --run runs/shapes --out exported/shapes

`--step` chooses the checkpoint: a number of steps, `best` (by the validation data) or `latest`.
"""

import sys
from typing import Literal

from raysys.errors import run_program
from raysys.settings import Settings, from_command_line
from raysys.storage import StorageSettings


class ExportSettings(Settings):
    """What to export and where to put it."""

    run: str
    """The run: its folder, local or s3://, or its name in `runs`."""
    out: str
    """Folder to write, local or s3://."""
    step: int | Literal["best", "latest"] = "best"
    """Which checkpoint: after so many steps, the best one or the latest."""
    storage: StorageSettings = StorageSettings()
    """How to reach object storage."""


def main() -> None:
    settings = from_command_line(ExportSettings, sys.argv[1:], "export.py", "Export what a run has trained.")

    from raysys.runs.export import export
    from raysys.runs.networks import saved_tokenizer
    from raysys.runs.run import load_run

    run = load_run(settings.run, settings.storage)
    run.checkpoint(settings.step)  # says what to do where there is none
    export(run, saved_tokenizer(run), to=settings.out, which=settings.step)
    print(f'try it: python jobs/embed.py --run {settings.out} --text "a sentence" "another sentence"')


if __name__ == "__main__":
    run_program(main)
