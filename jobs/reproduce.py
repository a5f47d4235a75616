"""Train, score and compare all systems of a paper: one command for its figures and tables.

    python jobs/reproduce.py globetrotter --data shapes
    python jobs/reproduce.py globetrotter --data real --seeds 0 1 2 --training.epochs 40
    python jobs/reproduce.py globetrotter --data real --page-only --also runs/best-seed-0 runs/best-seed-1
    python jobs/reproduce.py grounded --data real
    python jobs/reproduce.py grounded --data shapes --systems t cm cp-id cp-g --seeds 0 --training.steps 100
    python jobs/reproduce.py rc3 --size tiny
    python jobs/reproduce.py rc3 --size tiny --systems rc3 rc3-no-kl --tasks xvnli mmt --seeds 0 --finetune.training.steps 100

Every system is trained with every seed, each in a process of its own that writes its log beside the run, on the cluster at RAY_ADDRESS or
one local Ray. Runs that others stand on come first. Finished runs are not trained again, and the same command goes on after an
interruption. Settings with a dot are those of jobs/globetrotter.py, jobs/grounded.py or jobs/rc3.py and hold for all runs; those of
jobs/finetune.py begin with `--finetune.`. `--dry-run` says what would be trained, and stops; `--page-only` trains nothing.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from raysys.errors import UserError, run_program

if TYPE_CHECKING:
    from raysys.runs.compare.entries import ComparisonSettings

Options = TypeVar("Options", bound="ComparisonSettings")

JOBS = Path(__file__).resolve().parent
CONFIGS = {"globetrotter": JOBS / "configs" / "comparison", "grounded": JOBS / "configs" / "grounded", "rc3": JOBS / "configs" / "rc3"}
_SAID_OTHERWISE = {
    "--training.seed": "say it with --seeds",
    "--run.storage": "say it with --storage",
    "--run.name": "each run is called <system>-seed-<seed>",
    "--system": "say it with --systems",
    "--model.base": "each run stands on the one of T with its seed",
    "--config": "give the path of a settings file instead of its name",
    "--finetune.base": "each run begins with the network of its seed",
    "--finetune.training.seed": "say it with --seeds",
    "--finetune.run.storage": "say it with --storage",
    "--finetune.run.name": "each run is called <row>-<task>-seed-<seed>",
    "--finetune.system": "say it with --tasks",
    "--finetune.visual": "the rows of the paper's tables say it",
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


def config_file(paper: str, name: str, option: str = "--data", begins: str = "") -> Path:
    """The settings file that is meant. Raises UserError where there is none; names those that are there.

    Args:
        paper: whose.
        name: the file's, without `begins` and .yaml, or a path that ends with .yaml.
        option: that says so.
        begins: what the names of such files in the folder begin with.
    """
    folder = CONFIGS[paper]
    path = Path(name).absolute() if name.endswith((".yaml", ".yml")) else folder / f"{begins}{name}.yaml"
    if not path.is_file():
        there = sorted(file.stem.removeprefix(begins) for file in folder.glob(f"{begins}*.yaml"))
        known = ", ".join(one for one in there if "-" not in one)
        raise UserError(f"{option}: there is no {path}; {folder} has {known}; or give the path of a settings file that ends with .yaml")
    return path


def options_of(paper: str, arguments: Sequence[str], cls: type[Options]) -> tuple[Options, list[str], dict[str, Any]]:
    """(options of this command, settings of the runs, what the flags say)."""
    # Here, so that Ctrl-C is answered as everywhere while they are imported.
    from raysys.settings import from_command_line

    flags = {"--dry-run": "dry_run", "--page-only": "page_only"}
    own, handed = split_arguments([argument for argument in arguments if argument not in flags])
    options = from_command_line(
        cls,
        own,
        f"reproduce.py {paper}",
        "Train, score and compare all systems; --dry-run says what would be trained, --page-only trains nothing. "
        f"Settings with a dot are those of {paper}.py and hold for all runs.",
    )
    return options, handed, {name: flag in arguments for flag, name in flags.items()}


def globetrotter(arguments: Sequence[str]) -> None:
    """All systems of the Globetrotter paper."""
    from raysys.runs.compare.globetrotter import GlobetrotterComparisonSettings, reproduce

    options, handed, flags = options_of("globetrotter", arguments, GlobetrotterComparisonSettings)
    reproduce(options, config_file("globetrotter", options.data), handed, JOBS / "globetrotter.py", **flags)


def grounded(arguments: Sequence[str]) -> None:
    """All systems of the paper on grounded sentence representations."""
    from raysys.runs.compare.grounded import GroundedComparisonSettings, reproduce

    options, handed, flags = options_of("grounded", arguments, GroundedComparisonSettings)
    reproduce(options, config_file("grounded", options.data), handed, JOBS / "grounded.py", **flags)


def rc3(arguments: Sequence[str]) -> None:
    """The networks of the RC³ paper, pre-trained and fine-tuned on its tasks."""
    from raysys.runs.compare.rc3 import Rc3ComparisonSettings, Rc3Files, reproduce

    options, handed, flags = options_of("rc3", arguments, Rc3ComparisonSettings)
    pretrain = config_file("rc3", options.size, "--size")
    tasks = options.data or ("real" if pretrain.stem == "large" else "shapes")
    files = Rc3Files(
        pretrain=pretrain,
        finetune=config_file("rc3", str(pretrain.with_name(f"finetune-{pretrain.name}")), "--size"),
        tasks=config_file("rc3", tasks, begins="tasks-"),
        pretrain_job=JOBS / "rc3.py",
        finetune_job=JOBS / "finetune.py",
    )
    reproduce(options, files, handed, **flags)


PAPERS = {"globetrotter": globetrotter, "grounded": grounded, "rc3": rc3}


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
