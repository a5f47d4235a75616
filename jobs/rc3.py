"""Pre-train RC³: one network for texts of many languages and pictures with texts, or one of its rivals.

    python jobs/rc3.py --config jobs/configs/rc3/tiny.yaml --system rc3 --training.steps 200

A run of the same name that exists is resumed. `--dry-run` prints the settings, the plan and what it will take, and stops.
Fine-tune the run on a task with `python jobs/finetune.py`.
"""

from raysys.errors import run_program


def main() -> None:
    # Here, so that Ctrl-C is answered as everywhere while they are imported.
    from raysys.runs.command import train_from_command_line
    from raysys.runs.evaluate import check_evaluation
    from raysys.runs.rc3.run import open_rc3
    from raysys.runs.rc3.settings import Rc3Settings

    train_from_command_line("rc3.py", Rc3Settings, "Pre-train RC³ or one of its rivals", open_rc3, check_evaluation)


if __name__ == "__main__":
    run_program(main)
