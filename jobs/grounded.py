"""Train grounded sentence representations: SkipThought, and what pictures and their captions add to it.

    python jobs/grounded.py --config jobs/configs/grounded/shapes.yaml --system t-cp-g --training.steps 200

A run of the same name that exists is resumed. `--dry-run` prints the settings, the plan and what it will take, and stops.
"""

from raysys.errors import run_program


def main() -> None:
    # Here, so that Ctrl-C is answered as everywhere while they are imported.
    from raysys.runs.command import train_from_command_line
    from raysys.runs.grounded.evaluate import check_grounded
    from raysys.runs.grounded.run import open_grounded
    from raysys.runs.grounded.settings import GroundedSettings

    train_from_command_line("grounded.py", GroundedSettings, "Train a grounded system", open_grounded, check_grounded)


if __name__ == "__main__":
    run_program(main)
