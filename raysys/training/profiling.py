"""A profile of a few steps on request, as a Chrome trace."""

import gzip
import os
import shutil
import tempfile
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from raysys.errors import UserError
from raysys.storage import StorageError
from raysys.training.phases import Phases
from raysys.training.run_folder import RunFolder

PROFILE = "profile"
"""Folder beneath the run's."""
_LARGE = 16 * 2**20  # bytes, from which a trace is compressed; Perfetto and Chrome read both


class StepProfiler:
    """Context manager around the training loop that profiles `steps` steps, after `skip` steps of this worker group.

    The trace has the operators with the shapes of what they take, the kernels of a GPU, and the phases. Profiled steps are slower, so
    their times are no measurement.

    Args:
        folder: the run; the trace is ``profile/rank-00000.json`` in it, ``.json.gz`` where it is large.
        rank: of this worker.
        steps: how many; 0: none.
        skip: steps before, in which caches and the allocator settle.
        phases: are named in the trace.
        tell: takes a line for people.
    """

    def __init__(self, folder: RunFolder, rank: int, steps: int, skip: int, phases: Phases, tell: Callable[[str], Any]):
        self.folder, self.rank, self.phases = folder, rank, phases
        self.steps, self.skip = steps, skip
        self._tell = tell
        self._begun = 0
        self._first = 0
        self._profile: profile | None = None

    def __enter__(self) -> "StepProfiler":
        return self

    def begin_step(self) -> None:
        """To be called at the beginning of each step, when `phases` knows which, and outside of all phases."""
        if self.steps and self._begun == self.skip:
            self._start()
        elif self._profile and self._begun == self.skip + self.steps:
            self._finish()
        self._begun += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._profile and error is None:
            self._finish()
        elif self._profile:
            self._stop()
        elif self.steps and not self._first and error is None:
            self._tell(f"no profile was taken: training ended before step {self.skip + 1} of this worker group (training.profile_from)")

    def _start(self) -> None:
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])
        self._profile = profile(activities=activities, record_shapes=True)
        self._profile.start()
        self._first = self.phases.step
        self.phases.annotate = True

    def _stop(self) -> profile:
        assert self._profile is not None
        self.phases.annotate = False
        finished, self._profile = self._profile, None
        finished.stop()
        return finished

    def _finish(self) -> None:
        finished = self._stop()
        name = f"rank-{self.rank:05d}.json"
        last = self._first + min(self._begun - self.skip, self.steps) - 1
        about = f"profile of steps {self._first} to {last} on rank {self.rank}"
        try:
            with tempfile.TemporaryDirectory(prefix="raysys-profile-") as room:
                path = os.path.join(room, name)
                finished.export_chrome_trace(path)
                if os.path.getsize(path) > _LARGE:
                    path, name = _packed(path), f"{name}.gz"
                uri = self.folder.path(PROFILE, name)
                self.folder.storage.upload(path, uri)
        except (StorageError, UserError, OSError) as fault:  # training is worth more than its profile
            self._tell(f"{about} could not be written: {fault}")
        else:
            self._tell(f"{about}: {uri} (open it in https://ui.perfetto.dev or chrome://tracing)")


def _packed(path: str) -> str:
    with open(path, "rb") as plain, gzip.open(f"{path}.gz", "wb", compresslevel=5) as packed:
        shutil.copyfileobj(plain, packed)
    return f"{path}.gz"
