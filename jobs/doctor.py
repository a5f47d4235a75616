"""Check cluster and storage before a run, from every node: one line per check; exit code 1 if any failed.

    python jobs/doctor.py --config jobs/configs/shapes.yaml --training.workers 4     settings as of the program that trains
    python jobs/doctor.py --config jobs/configs/rc3/tiny.yaml --system rc3           a system that is none of Globetrotter's is named
    python jobs/doctor.py s3://bucket/shards …                                       folders of shards alone: list and read

With RAY_ADDRESS (or under `ray job submit`) that cluster is checked, else a Ray that is started here.
"""

import itertools
import re
import sys
from pathlib import Path

from raysys.errors import DONE, FAILED, run_program
from raysys.runs.doctor.checks import read_constraints
from raysys.runs.doctor.examine import Patient, examine
from raysys.runs.doctor.findings import Finding
from raysys.runs.run import AnyRunSettings, check_paths, settings_class_of
from raysys.settings import Settings, from_command_line
from raysys.storage import Storage, StorageSettings, is_remote, join
from raysys.training.settings import RaySettings, TrainingSettings

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


class DoctorSettings(Settings):
    """What else to know where only folders are given."""

    training: TrainingSettings = TrainingSettings()
    """The training run that is to fit."""
    storage: StorageSettings = StorageSettings()
    """Object storage."""
    ray: RaySettings = RaySettings()
    """The Ray that is started where none is running."""


def patient(arguments: list[str]) -> Patient:
    """What the command line asks to examine."""
    tested = read_constraints(CONSTRAINTS.read_text()) if CONSTRAINTS.exists() else {}
    about = "Check cluster and storage before a run; folders of shards may stand in place of --config."
    if arguments and not arguments[0].startswith("-"):
        options = next((number for number, argument in enumerate(arguments) if argument.startswith("-")), len(arguments))
        few = from_command_line(DoctorSettings, arguments[options:], "doctor.py", about)
        folders = tuple(folder if "://" in folder else str(Path(folder).absolute()) for folder in arguments[:options])
        return Patient(folders, None, Storage(few.storage), few.training, few.ray, tested)
    settings: AnyRunSettings = from_command_line(settings_class_of(named_system(arguments)), arguments, "doctor.py", about)
    check_paths(settings)
    data, runs = settings.data, settings.run.storage
    more = [name for group in ("validation", "images") for name in getattr(data, group, ())]
    folders = tuple(dict.fromkeys(data.locate(name) for name in (*data.train, *more, *data.tests.values())))
    # Rights in a bucket may hold for the run's own folder only; on disk it is not made before there is a run.
    runs = join(runs, settings.run.name) if is_remote(runs) else str(Path(runs.removeprefix("file://")).absolute())
    return Patient(folders, runs, Storage(settings.storage), settings.training, settings.ray, tested)


def named_system(arguments: list[str]) -> str:
    """The system that a command line names itself or in its settings file; empty where neither does."""
    options = dict(itertools.pairwise(arguments))
    if "--system" in options:
        return options["--system"]
    try:
        named = re.search(r"^system: *(\S+)", Path(options.get("--config", "")).read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, ValueError):  # reading the settings will say so
        return ""
    return named[1] if named else ""


def main() -> int:
    levels = []

    def show(finding: Finding) -> None:
        levels.append(finding.level)
        print(finding, flush=True)

    good = examine(patient(sys.argv[1:]), show)
    print(f"{len(levels)} checks: {levels.count('failed')} failed, {levels.count('warning')} warnings")
    return DONE if good else FAILED


if __name__ == "__main__":
    run_program(main)
