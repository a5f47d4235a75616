"""What a person sees while a run goes on: a bar on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from types import TracebackType
from typing import Any

import ray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@ray.remote(num_cpus=0)
class ProgressBoard:
    """Holds the latest line of metrics; the first worker writes it, the driver reads it."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def put(self, line: dict[str, Any]) -> None:
        """Add a line of metrics."""
        self.lines.append(line)

    def take(self) -> list[dict[str, Any]]:
        """The lines since the last call."""
        lines, self.lines = self.lines, []
        return lines


class ProgressDisplay:
    """Context manager that shows the lines put on a board until the run ends.

    Args:
        board: handle of a :class:`ProgressBoard`.
        total_steps: steps of the run.
        title: how the bar is called.
        started: `time.perf_counter()` when the command was given.
    """

    def __init__(self, board: Any, total_steps: int, title: str, started: float):
        self.board = board
        self.started = started
        self.total_steps = total_steps
        self.title = title
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True, name="progress")

    def __enter__(self) -> "ProgressDisplay":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join(timeout=5)

    def _take(self) -> list[dict[str, Any]]:
        try:
            return ray.get(self.board.take.remote(), timeout=5)
        except Exception:  # the display must never be what ends a run
            return []

    def _show(self) -> None:
        if sys.stdout.isatty():
            self._show_bar()
        else:
            self._show_lines()

    def _show_bar(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, TextColumn("{task.fields[figures]}"), console=Console()) as bar:
            task = bar.add_task(self.title, total=self.total_steps, figures="starting")
            ended = False
            while not ended:
                ended = self._ended.wait(0.5)
                for line in self._take():
                    bar.update(task, completed=line["step"], figures=figures_of(line))

    def _show_lines(self) -> None:
        interval, shown = 5.0, 0.0
        ended = False
        while not ended:
            ended = self._ended.wait(0.5)
            for line in self._take():
                if not shown:
                    print(f"{self.title}: first step after {time.perf_counter() - self.started:.1f} s", flush=True)
                scored = any(name.startswith("eval/") for name in line)
                if scored or time.monotonic() - shown > interval or line["step"] == self.total_steps:
                    print(f"{self.title}: step {line['step']}/{self.total_steps}  {figures_of(line)}", flush=True)
                    shown = time.monotonic()


def figures_of(line: dict[str, Any]) -> str:
    """A line of metrics in a few words."""
    wanted = {
        "train/loss": "loss",
        "train/samples_per_second": "samples/s",
        "data/wait_fraction": "waiting for data",
        "eval/validation_mean_recall": "validation recall",
    }
    return "  ".join(f"{word} {line[name]:.4g}" for name, word in wanted.items() if line.get(name) is not None)
