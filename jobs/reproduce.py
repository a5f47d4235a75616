"""Train, score and compare all systems of a paper: one command for its figures and tables.

    python jobs/reproduce.py globetrotter --data shapes
    python jobs/reproduce.py globetrotter --data real --seeds 0 1 2 --training.epochs 40
    python jobs/reproduce.py globetrotter --data real --page-only --also runs/best-seed-0 runs/best-seed-1

Every system is trained with every seed, each in a process of its own that writes its log beside the run, on the cluster at RAY_ADDRESS or
one local Ray. Finished runs are not trained again, and the same command goes on after an interruption. Settings with a dot are those of
jobs/globetrotter.py and hold for all runs. `--dry-run` says what would be trained, and stops; `--page-only` trains nothing.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from raysys.errors import UserError, run_program

JOBS = Path(__file__).resolve().parent
CONFIGS = JOBS / "configs" / "comparison"
_SAID_OTHERWISE = {
    "--training.seed": "say it with --seeds",
    "--run.storage": "say it with --storage",
    "--run.name": "each run is called <system>-seed-<seed>",
    "--system": "say it with --systems",
    "--config": "say it with --data FILE.yaml",
}


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """(options of this command, settings of the runs): the latter have a dot in their names, and are followed by their values.

    Raises:
        UserError: a setting that each run is given by this command.
    """
    own: list[str] = []
    handed: list[str] = []
    into = own
    for argument in arguments:
        if argument.startswith("--"):
            name = argument.partition("=")[0].replace("_", "-")
            if name in _SAID_OTHERWISE:
                raise UserError(f"{name} is not for all runs: {_SAID_OTHERWISE[name]}")
            into = handed if "." in name else own
        into.append(argument)
    return own, handed


def config_file(data: str) -> Path:
    """The settings file that is meant. Raises UserError where there is none; names those that are there."""
    path = Path(data).absolute() if data.endswith((".yaml", ".yml")) else CONFIGS / f"{data}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in CONFIGS.glob("*.yaml")))
        raise UserError(f"--data: there is no {path}; {CONFIGS} has {known}; or give the path of a settings file that ends with .yaml")
    return path


def globetrotter(arguments: Sequence[str]) -> None:
    """All systems of the Globetrotter paper."""
    # Here, so that Ctrl-C is answered as everywhere while they are imported.
    from raysys.runs.comparison import ComparisonSettings
    from raysys.runs.reproduce_globetrotter import reproduce
    from raysys.settings import from_command_line

    flags = {"--dry-run", "--page-only"}
    own, handed = split_arguments([argument for argument in arguments if argument not in flags])
    options = from_command_line(
        ComparisonSettings,
        own,
        "reproduce.py globetrotter",
        "Train, score and compare all systems; --dry-run says what would be trained, --page-only trains nothing. "
        "Settings with a dot are those of globetrotter.py and hold for all runs.",
    )
    reproduce(
        options,
        config_file(options.data),
        handed,
        JOBS / "globetrotter.py",
        dry_run="--dry-run" in arguments,
        page_only="--page-only" in arguments,
    )


PAPERS = {"globetrotter": globetrotter}


def main() -> None:
    paper, arguments = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if paper in ("-h", "--help"):
        print(__doc__)
        return
    if paper not in PAPERS:
        raise UserError(f"say which paper: python jobs/reproduce.py {' | '.join(PAPERS)} --help" + (f" (got {paper})" if paper else ""))
    PAPERS[paper](arguments)


if __name__ == "__main__":
    run_program(main)
