"""Train Globetrotter: languages tied together through images, without parallel text.

    python jobs/globetrotter.py --config jobs/configs/shapes.yaml --training.steps 200

A run of the same name that exists is resumed. `--dry-run` prints the settings, the plan and what it will take, and stops.
"""

import sys
import time

from raysys.errors import run_program


def main() -> None:
    # Here, so that Ctrl-C is answered as everywhere while they are imported.
    import psutil

    from raysys.runs.describe import describe
    from raysys.runs.evaluate import check_evaluation
    from raysys.runs.run import check_paths, open_run
    from raysys.runs.settings import GlobetrotterSettings
    from raysys.settings import dumps, from_command_line

    # When the command was given: imports count.
    started = time.perf_counter() - (time.time() - psutil.Process().create_time())
    arguments = [argument for argument in sys.argv[1:] if argument != "--dry-run"]
    settings = from_command_line(
        GlobetrotterSettings,
        arguments,
        "globetrotter.py",
        "Train Globetrotter; --dry-run prints settings, plan and needs, and stops.",
    )
    check_paths(settings)
    run = open_run(settings)
    check_evaluation(run)
    if "--dry-run" in sys.argv:
        from raysys.runs.estimate_table import estimate_run

        print(dumps(run.settings) + "\n".join([*describe(run), *estimate_run(run)]))
        return

    from raysys.runs.train import train_run

    train_run(run, started)


if __name__ == "__main__":
    run_program(main)
