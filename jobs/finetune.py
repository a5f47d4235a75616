"""Fine-tune a pre-trained network on one of five tasks, and score it in every language: xvnli, xgqa, marvl, itr, mmt.

    python jobs/finetune.py xvnli --base runs/rc3 --config jobs/configs/rc3/finetune-tiny.yaml --run.name xvnli-rc3
    python jobs/finetune.py mmt --base runs/rc3 --data.target de --data.train mmt-train --visual combined

What is not said of training is as the paper's Table 6 has it for the task. A run of the same name that exists is resumed.
`--dry-run` prints the settings, the plan and what it will take, and stops.
"""

import sys

from raysys.errors import UserError, run_program


def main() -> None:
    # Here, so that Ctrl-C is answered as everywhere while they are imported.
    from raysys.runs.command import train_from_command_line
    from raysys.runs.finetune.evaluate import check_finetune
    from raysys.runs.finetune.run import open_finetune
    from raysys.runs.finetune.settings import TABLE_6, settings_class

    task, arguments = next(iter(sys.argv[1:]), ""), sys.argv[2:]
    if task not in TABLE_6:
        given = f"{task!r} is none" if task else "no task was given"
        raise UserError(f"finetune.py: {given}; the first argument is one of {', '.join(TABLE_6)}, and --help comes after it")
    train_from_command_line(
        f"finetune.py {task}", settings_class(task), f"Fine-tune a pre-trained network on {task}", open_finetune, check_finetune, arguments
    )


if __name__ == "__main__":
    run_program(main)
