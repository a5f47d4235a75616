"""The metrics as gauges of Ray, for its dashboard and what reads its Prometheus endpoint."""

import re
import threading
from typing import Any

from ray.util.metrics import Gauge

from raysys.training.run_folder import RunFolder

_AGAIN = 5.0  # seconds


class RayGauges:
    """Every metric of a line as a gauge: ``train/loss`` is ``raysys_train_loss`` (Ray exports it as ``ray_raysys_train_loss``), the step
    ``raysys_train_step``. Tags: run and rank. Every worker has its own; needs a running Ray.

    Ray forgets a gauge that is not set for some twenty seconds, and lines may be further apart: a thread sets them again, for as long as
    the process lives.

    Args:
        folder: the run.
        rank: of this worker.
    """

    def __init__(self, folder: RunFolder, rank: int):
        self.tags = {"run": folder.uri.rstrip("/").rpartition("/")[2], "rank": str(rank)}
        self._gauges: dict[str, Gauge] = {}
        self._values: dict[str, float] = {}
        self._changed = threading.Event()
        threading.Thread(target=self._set, daemon=True, name="gauges").start()

    def add(self, line: dict[str, Any]) -> None:
        """Set the gauges to a line of metrics; values that are not numbers are left out."""
        numbers = {name: float(value) for name, value in line.items() if isinstance(value, int | float)}
        self._values |= {"train/step" if name == "step" else name: value for name, value in numbers.items()}
        self._changed.set()

    def _set(self) -> None:
        while True:
            self._changed.wait(_AGAIN)
            self._changed.clear()
            for name, value in list(self._values.items()):
                self._gauge(name).set(value, self.tags)

    def _gauge(self, name: str) -> Gauge:
        if name not in self._gauges:
            called = "raysys_" + re.sub(r"\W", "_", name, flags=re.ASCII).lower()  # as Ray exports it in any case
            self._gauges[name] = Gauge(called, description=f"{name} of metrics.jsonl", tag_keys=("run", "rank"))
        return self._gauges[name]
