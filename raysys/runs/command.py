"""What the programs that train have in common: settings from the command line, a look ahead, training."""

import sys
import time
from collections.abc import Callable
from typing import Any

import psutil

from raysys.runs.outlook import outlook_of
from raysys.runs.run import Run, check_paths
from raysys.settings import Settings, dumps, from_command_line

DRY_RUN = "--dry-run"


def train_from_command_line(
    program: str,
    settings_class: type[Settings],
    about: str,
    open_run: Callable[[Any], Run],
    check: Callable[[Run], None],
    arguments: list[str] | None = None,
) -> None:
    """Train the run that the command line describes; with ``--dry-run``, print its settings, its plan and what it will take instead.

    Args:
        program: name of the file in `jobs/`.
        settings_class: of the run.
        about: what the program does, for ``--help``.
        open_run: makes the run of its settings; raises UserError for what cannot be trained.
        check: raises UserError for what would stop the scoring of the trained run.
        arguments: of the command line; by default those that this process was given.
    """
    # When the command was given: imports count.
    started = time.perf_counter() - (time.time() - psutil.Process().create_time())
    given = sys.argv[1:] if arguments is None else arguments
    wanted = [argument for argument in given if argument != DRY_RUN]
    settings: Any = from_command_line(settings_class, wanted, program, f"{about}; {DRY_RUN} prints settings, plan and needs, and stops.")
    check_paths(settings)
    run = open_run(settings)
    check(run)
    if DRY_RUN in given:
        from raysys.runs.estimate_table import estimate_run

        needs = estimate_run(run) if run.settings.trained else []
        print(dumps(run.settings) + "\n".join([*outlook_of(run.settings).describe(run), *needs]))
        return

    from raysys.runs.train import train_run

    train_run(run, started)
