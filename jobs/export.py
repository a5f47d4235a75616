"""Export what a run has trained, for raysys and for others: transformers, sentence-transformers, ONNX.

    python jobs/export.py --run runs/shapes --out exported/shapes
    python jobs/export.py --run runs/shapes --out exported/shapes --formats sentence-transformers onnx

`--step` chooses the checkpoint: a number of steps, `best` (by the validation data) or `latest`. Each format is loaded again and compared
with the trained encoder before anything is stored. The model card, `README.md`, shows how each is used.
"""

import sys
from typing import Literal

from raysys.errors import UserError, run_program
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
    formats: tuple[Literal["transformers", "sentence-transformers", "onnx", "all"], ...] = ("transformers",)
    """What to write: folders for transformers (always there), and beside them one for sentence-transformers and one of ONNX graphs."""
    storage: StorageSettings = StorageSettings()
    """How to reach object storage."""


def main() -> None:
    settings = from_command_line(ExportSettings, sys.argv[1:], "export.py", "Export what a run has trained.")

    from raysys.runs.export import FORMATS, export
    from raysys.runs.finetune.export import export_finetuned
    from raysys.runs.finetune.settings import FinetuneSettings
    from raysys.runs.networks import saved_tokenizer
    from raysys.runs.run import load_run

    run = load_run(settings.run, settings.storage)
    run.checkpoint(settings.step)  # says what to do where there is none
    if isinstance(run.settings, FinetuneSettings):
        if set(settings.formats) != {"transformers"}:
            raise UserError(
                f"--formats: a network that was fine-tuned on {run.settings.system} is exported in the format transformers alone"
            )
        export_finetuned(run, saved_tokenizer(run), to=settings.out, which=settings.step)
        return
    formats = FORMATS if "all" in settings.formats else settings.formats
    export(run, saved_tokenizer(run), to=settings.out, which=settings.step, formats=formats)
    print(f'try it: python jobs/embed.py --run {settings.out} --text "a sentence" "another sentence"')


if __name__ == "__main__":
    run_program(main)
