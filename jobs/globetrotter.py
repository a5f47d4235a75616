"""Train Globetrotter: languages tied together through images, without parallel text.

    python jobs/globetrotter.py --config jobs/configs/shapes.yaml --training.steps 200

A run of the same name that exists is resumed. `--dry-run` prints the settings, the plan and what it will take, and stops.
"""

from raysys.errors import run_program


def main() -> None:
    # Here, so that Ctrl-C is answered as everywhere while they are imported.
    from raysys.runs.command import train_from_command_line
    from raysys.runs.evaluate import check_evaluation
    from raysys.runs.run import open_run
    from raysys.runs.settings import GlobetrotterSettings

    train_from_command_line("globetrotter.py", GlobetrotterSettings, "Train Globetrotter", open_run, check_evaluation)


if __name__ == "__main__":
    run_program(main)
