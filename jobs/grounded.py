"""Train grounded sentence representations: SkipThought, and what pictures and their captions add to it.

    python jobs/grounded.py --config jobs/configs/grounded/shapes.yaml --system t-cp-g --training.steps 200

A run of the same name that exists is resumed. `--dry-run` prints the settings, the plan and what it will take, and stops.
"""

import sys
import time

from raysys.errors import run_program


def main() -> None:
    # Here, so that Ctrl-C is answered as everywhere while they are imported.
    import psutil

    from raysys.runs.grounded.evaluate import check_grounded
    from raysys.runs.grounded.run import describe_grounded, open_grounded
    from raysys.runs.grounded.settings import GroundedSettings
    from raysys.runs.run import check_paths
    from raysys.settings import dumps, from_command_line

    # When the command was given: imports count.
    started = time.perf_counter() - (time.time() - psutil.Process().create_time())
    arguments = [argument for argument in sys.argv[1:] if argument != "--dry-run"]
    settings = from_command_line(
        GroundedSettings, arguments, "grounded.py", "Train a grounded system; --dry-run prints settings, plan and needs, and stops."
    )
    check_paths(settings)
    run = open_grounded(settings)
    check_grounded(run)
    if "--dry-run" in sys.argv:
        from raysys.runs.estimate_table import estimate_run

        print(dumps(run.settings) + "\n".join([*describe_grounded(run), *(estimate_run(run) if settings.trained else [])]))
        return

    from raysys.runs.train import train_run

    train_run(run, started)


if __name__ == "__main__":
    run_program(main)
