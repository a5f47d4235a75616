"""What a person sees while a run goes on: a bar on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

import ray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from raysys.training.watchdog import Standstill

SILENCE = 60.0
"""Seconds without a word from the workers after which a person is told."""


class News(NamedTuple):
    """What is new on a board."""

    lines: list[dict[str, Any]]
    """Of metrics."""
    texts: list[str]
    """For people."""
    silent: float
    """Seconds since the last word from any worker."""


@ray.remote(num_cpus=0)
class ProgressBoard:
    """Where workers put what the driver is to know: metrics, texts for people, signs of life, and who stood still."""

    def __init__(self) -> None:
        self._lines: list[dict[str, Any]] = []
        self._texts: list[str] = []
        self._still: list[Standstill] = []
        self._heard = time.monotonic()

    def begin(self) -> None:
        """A worker group has begun; what is known of the one before it counts no more."""
        self._still = []
        self.beat()

    def beat(self) -> None:
        """A sign of life."""
        self._heard = time.monotonic()

    def put(self, line: dict[str, Any]) -> None:
        """Add a line of metrics."""
        self._lines.append(line)
        self.beat()

    def tell(self, text: str) -> None:
        """Add a text for people."""
        self._texts.append(text)
        self.beat()

    def stands_still(self, note: Standstill) -> None:
        """Note that a worker stands still, and tell of it."""
        self._still.append(note)
        self.tell(str(note))

    def still(self) -> list[Standstill]:
        """The workers of the last group that stood still."""
        return self._still

    def take(self) -> News:
        """What came since the last call."""
        news = News(self._lines, self._texts, time.monotonic() - self._heard)
        self._lines, self._texts = [], []
        return news


class ProgressDisplay:
    """Context manager that shows what is put on a board until the run ends.

    Args:
        board: handle of a :class:`ProgressBoard`.
        total_steps: steps of the run.
        title: how the bar is called.
        started: `time.perf_counter()` when the command was given.
        explain_silence: called when no worker has said a word for :data:`SILENCE` seconds, and then after each doubling of that time; what
            may be the reason, for people.
        silence: instead of :data:`SILENCE`.
    """

    def __init__(
        self,
        board: Any,
        total_steps: int,
        title: str,
        started: float,
        explain_silence: Callable[[], str] = lambda: "",
        silence: float = SILENCE,
    ):
        self.board = board
        self.started = started
        self.total_steps = total_steps
        self.title = title
        self._explain_silence = explain_silence
        self._silence = silence
        self._tell_silence_at = silence
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True, name="progress")

    def __enter__(self) -> "ProgressDisplay":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join(timeout=5)

    def _take(self) -> News:
        try:
            news = ray.get(self.board.take.remote(), timeout=5)
            return news._replace(texts=news.texts + self._silence_told(news.silent))
        except Exception:  # the display must never be what ends a run
            return News([], [], 0.0)

    def _silence_told(self, silent: float) -> list[str]:
        if silent < self._silence:
            self._tell_silence_at = self._silence
        if silent < self._tell_silence_at:
            return []
        self._tell_silence_at = 2 * silent
        return [f"no word from the training workers for {silent:.0f} s: {self._explain_silence()}"]

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
                news = self._take()
                for text in news.texts:
                    bar.console.print(f"{self.title}: {text}", markup=False, highlight=False, soft_wrap=True)
                for line in news.lines:
                    bar.update(task, completed=line["step"], figures=figures_of(line))

    def _show_lines(self) -> None:
        interval, shown = 5.0, 0.0
        ended = False
        while not ended:
            ended = self._ended.wait(0.5)
            news = self._take()
            for text in news.texts:
                print(f"{self.title}: {text}", flush=True)
            for line in news.lines:
                if not shown:
                    print(f"{self.title}: first step after {time.perf_counter() - self.started:.1f} s", flush=True)
                scored = any(name.startswith("eval/") for name in line)
                if scored or time.monotonic() - shown > interval or line["step"] == self.total_steps:
                    print(f"{self.title}: step {line['step']}/{self.total_steps}  {figures_of(line)}", flush=True)
                    shown = time.monotonic()


def explain_silence(workers: int, each: dict[str, float]) -> str:
    """Why workers may be silent, for people: what they need and what Ray has free.

    Args:
        workers: that are to be started.
        each: what one of them needs, such as ``{"CPU": 1, "GPU": 1}``.
    """
    free, whole = ray.available_resources(), ray.cluster_resources()
    needed = ", ".join(f"{workers * amount:g} {name}" for name, amount in each.items())
    found = ", ".join(f"{free.get(name, 0):g} of {whole.get(name, 0):g} {name}" for name in each)
    return (
        f"{workers} workers together need {needed}; free in Ray now: {found}. They are starting, or wait for what other jobs hold or "
        "lost nodes had, and begin as soon as there is room; Ctrl-C stops the run, and the same command goes on with it later"
    )


def figures_of(line: dict[str, Any]) -> str:
    """A line of metrics in a few words."""
    wanted = {
        "train/loss": "loss",
        "train/samples_per_second": "samples/s",
        "data/wait_fraction": "waiting for data",
        "eval/validation_mean_recall": "validation recall",
    }
    return "  ".join(f"{word} {line[name]:.4g}" for name, word in wanted.items() if line.get(name) is not None)
