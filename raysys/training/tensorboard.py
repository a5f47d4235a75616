"""The metrics as TensorBoard events, beside metrics.jsonl."""

import tempfile
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from raysys.storage import join
from raysys.training.run_folder import RunFolder


class EventLog:
    """Writes ``tensorboard/`` in the run's folder; in object storage events are copied there at each :meth:`flush`.

    Args:
        folder: the run.
        resume_step: what earlier attempts wrote of later steps is hidden.
    """

    def __init__(self, folder: RunFolder, resume_step: int):
        self.folder = folder
        self.uri = folder.path("tensorboard")
        self.local = Path(tempfile.mkdtemp(prefix="raysys-tensorboard-")) if folder.is_remote else Path(self.uri)
        self.writer = SummaryWriter(str(self.local), purge_step=resume_step + 1 if resume_step else None)

    def add(self, line: dict[str, Any]) -> None:
        """Add a line of metrics; values that are not numbers are left out."""
        for name, value in line.items():
            if name != "step" and isinstance(value, int | float):
                self.writer.add_scalar(name, value, line["step"])

    def flush(self) -> None:
        """Write what was added."""
        self.writer.flush()
        if self.folder.is_remote:
            for file in sorted(self.local.iterdir()):
                self.folder.storage.upload(str(file), join(self.uri, file.name))

    def close(self, failed: bool = False) -> None:
        """Write what was added, and end."""
        self.flush()
        self.writer.close()
