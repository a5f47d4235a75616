"""Where metrics go besides metrics.jsonl: TensorBoard, and on request Weights & Biases and MLflow. The first worker has them."""

import contextlib
import functools
import importlib.util
import os
import queue
import re
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal, Protocol

import yaml

from raysys.errors import UserError
from raysys.storage.identity import redacted
from raysys.training.run_folder import RunFolder
from raysys.training.tensorboard import EventLog

TrackerName = Literal["wandb", "mlflow"]
PROJECT = "raysys"
"""Project (W&B) and experiment (MLflow), unless the environment names others."""
_WAITING = 10_000  # lines
_AT_ONCE = 100  # parameters that MLflow takes in one request


class Tracker(Protocol):
    """Takes lines of metrics, in the order of steps."""

    def add(self, line: dict[str, Any]) -> None:
        """A line of metrics; values that are not numbers are left out."""

    def flush(self) -> None:
        """What was added is to be kept, for a checkpoint is written."""

    def close(self, failed: bool = False) -> None:
        """Training has ended."""


def check_trackers(names: Sequence[TrackerName]) -> None:
    """Raise UserError where a tracker is not installed, or does not know where to write; to be called before anything starts."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise UserError(f"training.trackers: {name} is not installed: pip install 'raysys[trackers]' (on every node)")
    if "mlflow" in names and not os.environ.get("MLFLOW_TRACKING_URI"):
        raise UserError(
            "training.trackers: mlflow writes to the server in MLFLOW_TRACKING_URI, which is not set (such as http://host:5000)"
        )


def open_trackers(folder: RunFolder, names: Sequence[TrackerName], resume_step: int, tell: Callable[[str], Any]) -> "Trackers":
    """TensorBoard and the trackers asked for.

    W&B and MLflow take credentials, addresses and project names from their usual environment variables, which the workers must have. The
    run's settings are their configuration, without the section on storage. A resumed run goes on in the same run there, whose id
    lies in ``trackers/``; one that begins at step 0 is a new one.

    Args:
        folder: the run.
        names: besides TensorBoard.
        resume_step: where training goes on.
        tell: takes a line for people.
    """
    chosen: list[Tracker] = [EventLog(folder, resume_step)]
    for name in names:
        chosen.append(Background(name, lambda kind=_KINDS[name]: kind(folder, resume_step), tell))  # type: ignore[misc]
    return Trackers(chosen, tell)


class Trackers:
    """Context manager of several trackers as one; they are closed at its end. Without any it does nothing.

    A fault of theirs is told once, and never ends training.
    """

    def __init__(self, trackers: Sequence[Tracker] = (), tell: Callable[[str], Any] = print):
        self.trackers = list(trackers)
        self._tell, self._told = tell, False

    def __enter__(self) -> "Trackers":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for tracker in self.trackers:
            self._carefully(functools.partial(tracker.close, failed=error is not None))

    def add(self, line: dict[str, Any]) -> None:
        """See :class:`Tracker`."""
        for tracker in self.trackers:
            tracker.add(line)

    def flush(self) -> None:
        """See :class:`Tracker`."""
        for tracker in self.trackers:
            self._carefully(tracker.flush)

    def _carefully(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as fault:
            if not self._told:
                self._tell(f"metrics could not be written to all places; metrics.jsonl has everything: {fault}")
            self._told = True


class Background:
    """A tracker that is spoken to in a thread, so that a server that is slow or down neither holds up training nor ends it.

    Args:
        name: of the tracker, for people.
        make: opens it; tried again at the next line where that fails.
        tell: takes a line for people, at the first fault alone.
        patience: seconds that :meth:`close` waits for what is under way; a sixth of it where training failed, for others wait for the news.
    """

    def __init__(self, name: str, make: Callable[[], Tracker], tell: Callable[[str], Any], patience: float = 30.0):
        self.name, self._make, self._tell, self._patience = name, make, tell, patience
        self._tracker: Tracker | None = None
        self._waiting: queue.Queue[dict[str, Any] | None] = queue.Queue(_WAITING)
        self._failed = self._told = False
        self._thread = threading.Thread(target=self._work, daemon=True, name=f"tracker-{name}")
        self._thread.start()

    def add(self, line: dict[str, Any]) -> None:
        """See :class:`Tracker`; returns at once."""
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self._warn("it has not taken anything for too long")

    def flush(self) -> None:
        """Nothing to do: lines are sent as they come."""

    def close(self, failed: bool = False) -> None:
        """See :class:`Tracker`; waits for some seconds at most."""
        self._failed = failed
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
        patience = self._patience / 6 if failed else self._patience
        self._thread.join(patience)
        if self._thread.is_alive():
            self._warn(f"it had not taken everything {patience:.0f} s after the end")

    def _work(self) -> None:
        while (line := self._waiting.get()) is not None:
            self._attempt(line)
        if self._tracker:
            try:
                self._tracker.close(self._failed)
            except Exception as error:
                self._warn(error)

    def _attempt(self, line: dict[str, Any]) -> None:
        try:
            self._tracker = self._tracker or self._make()
            self._tracker.add(line)
        except Exception as error:  # of any kind: this is other people's code on a network
            self._warn(error)

    def _warn(self, fault: object) -> None:
        if self._told:
            return
        self._told = True
        reason = redacted(str(fault))[:300]
        self._tell(f"{self.name} does not work: {reason or type(fault).__name__}; training goes on, metrics.jsonl has everything")


class WandbTracker:
    """A run in Weights & Biases, or its files in ``wandb/`` of a local run folder with ``WANDB_MODE=offline``.

    Steps that a resumed run does again are there already: W&B takes steps in rising order only.
    """

    def __init__(self, folder: RunFolder, resume_step: int):
        import wandb

        run_id = _known_id(folder, "wandb", resume_step) or uuid.uuid4().hex[:8]
        _keep_id(folder, "wandb", run_id)
        place = os.environ.get("WANDB_DIR") or (tempfile.mkdtemp(prefix="raysys-wandb-") if folder.is_remote else folder.uri)
        quiet = wandb.Settings(
            console="off",
            silent=True,
            save_code=False,
            disable_git=True,
            x_disable_meta=True,  # a Ray worker's command line is in it, with what other processes of the session are let in by
        )
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=_name(folder),
            id=run_id,
            resume="allow",
            config=_configuration(folder),
            allow_val_change=True,
            dir=place,
            settings=quiet,
        )

    def add(self, line: dict[str, Any]) -> None:
        """See :class:`Tracker`."""
        if line["step"] >= self.run.step:
            self.run.log(_numbers(line), step=line["step"])

    def flush(self) -> None:
        """Nothing to do: W&B sends by itself."""

    def close(self, failed: bool = False) -> None:
        """See :class:`Tracker`."""
        import wandb

        self.run.finish(exit_code=int(failed))
        wandb.teardown(exit_code=int(failed))  # its process writes the last lines after finish() has returned


class MlflowTracker:
    """A run of the MLflow server in ``MLFLOW_TRACKING_URI``. Steps that a resumed run does again are logged again."""

    def __init__(self, folder: RunFolder, resume_step: int):
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self.client = MlflowClient()
        run_id = _known_id(folder, "mlflow", resume_step)
        if run_id:
            self.client.update_run(run_id, status="RUNNING")
        else:
            title = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
            found = self.client.get_experiment_by_name(title)
            experiment = found.experiment_id if found else self.client.create_experiment(title)
            run_id = self.client.create_run(experiment, run_name=_name(folder)).info.run_id
            _keep_id(folder, "mlflow", run_id)
            settings = [Param(_allowed(key), str(value)) for key, value in _flat(_configuration(folder)).items()]
            for start in range(0, len(settings), _AT_ONCE):
                self.client.log_batch(run_id, params=settings[start : start + _AT_ONCE])
        self.run_id = run_id

    def add(self, line: dict[str, Any]) -> None:
        """See :class:`Tracker`; characters that MLflow refuses in names become underscores."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(_allowed(name), float(value), now, line["step"]) for name, value in _numbers(line).items()]
        self.client.log_batch(self.run_id, metrics=metrics)

    def flush(self) -> None:
        """Nothing to do: each line is a request."""

    def close(self, failed: bool = False) -> None:
        """See :class:`Tracker`."""
        self.client.set_terminated(self.run_id, "FAILED" if failed else "FINISHED")


_KINDS: dict[TrackerName, Callable[[RunFolder, int], Tracker]] = {"wandb": WandbTracker, "mlflow": MlflowTracker}


def _name(folder: RunFolder) -> str:
    return folder.uri.rstrip("/").rpartition("/")[2]


def _known_id(folder: RunFolder, tracker: TrackerName, resume_step: int) -> str:
    name = f"trackers/{tracker}"
    return folder.read_text(name).strip() if resume_step and folder.storage.exists(folder.path(name)) else ""


def _keep_id(folder: RunFolder, tracker: TrackerName, run_id: str) -> None:
    folder.write_text(f"trackers/{tracker}", run_id + "\n")


def _configuration(folder: RunFolder) -> dict[str, Any]:
    """The run's settings without where and how storage is reached."""
    values = yaml.safe_load(folder.read_text("settings.yaml")) if folder.exists() else {}
    return {name: value for name, value in values.items() if name != "storage"}


def _numbers(line: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in line.items() if name != "step" and isinstance(value, int | float)}


def _allowed(name: str) -> str:
    return re.sub(r"[^\w\-./ ]", "_", name, flags=re.ASCII)


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat
