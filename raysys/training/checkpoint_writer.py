"""Writing a checkpoint beside training."""

import json
import logging
import random
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import torch
from torch import Tensor

from raysys.errors import RunFailed, UserError
from raysys.storage import Storage, StorageError, is_remote, join
from raysys.training.checkpoint_files import BLOCK, DTYPES, Piece, file_name, index_of
from raysys.training.checkpoint_mark import CheckpointState, Mark
from raysys.training.engine_state import EngineState

_log = logging.getLogger(__name__)
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
WAIT_SECONDS = 1800.0
"""For how long rank 0 waits for the other ranks' files once its own is written."""


class Snapshot:
    """A rank's file in memory: a copy of its pieces that training does not change.

    Args:
        pieces: what to copy; none is empty, no key comes twice.
        extras: what the file tells beside them; JSON values.
        buffer: memory of an earlier snapshot to use again, where it is large enough.
    """

    def __init__(self, pieces: Sequence[Piece], extras: dict[str, Any], buffer: Tensor | None = None):
        # Wide elements first: each then lies at a multiple of its size, and none lies across the border of two blocks.
        ordered = sorted(pieces, key=lambda piece: -piece.values.element_size())
        entries: dict[str, Any] = {
            "__metadata__": {
                "pieces": json.dumps({piece.key: [piece.start, piece.shape] for piece in ordered}),
                "extras": json.dumps(extras),
            }
        }
        end = 0
        for piece in ordered:
            begin, end = end, end + piece.values.nbytes
            dtype = _DTYPE_NAMES[piece.values.dtype]
            entries[piece.key] = {"dtype": dtype, "shape": [piece.values.numel()], "data_offsets": [begin, end]}
        assert len(entries) == len(ordered) + 1, "a key came twice"
        header = json.dumps(entries).encode()
        header += b" " * (-len(header) % 8)
        self.header = len(header).to_bytes(8, "little") + header
        size = len(self.header) + end
        if buffer is None or buffer.numel() < size:
            on_gpu = any(piece.values.is_cuda for piece in ordered)
            buffer = torch.empty(size, dtype=torch.uint8, pin_memory=on_gpu)
        self.buffer = buffer
        self.data = buffer[:size]
        self.data[: len(self.header)] = torch.frombuffer(bytearray(self.header), dtype=torch.uint8)
        for piece in ordered:
            begin, end = (len(self.header) + offset for offset in entries[piece.key]["data_offsets"])
            self.data[begin:end].view(piece.values.dtype).copy_(piece.values)

    def write(self, storage: Storage, uri: str) -> None:
        """Write the file to `uri`, and then its index to the same name with the ending ``.json``."""
        data = cast(bytes, memoryview(self.data.numpy()))  # type: ignore[arg-type]
        checksums = [zlib.crc32(data[begin : begin + BLOCK]) for begin in range(0, len(data), BLOCK)]
        if is_remote(uri):
            with tempfile.NamedTemporaryFile(prefix="raysys-checkpoint-") as file:
                file.write(data)
                file.flush()
                storage.upload(file.name, uri)
        else:
            storage.write(uri, data)
        index = {"size": len(data), "header": [len(self.header), zlib.crc32(self.header)], "block": BLOCK, "checksums": checksums}
        storage.write(index_of(uri), json.dumps(index).encode())


class CheckpointWriter:
    """Writes one checkpoint at a time in a thread; every rank has one.

    Args:
        storage: the door to the checkpoints.
        wait_seconds: for how long rank 0 waits for the other ranks' files.
    """

    def __init__(self, storage: Storage, wait_seconds: float = WAIT_SECONDS):
        self._storage, self._wait_seconds = storage, wait_seconds
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._buffer: Tensor | None = None

    def begin(self, state: EngineState, what: CheckpointState, uri: str, then: Callable[[], object]) -> None:
        """Copy the state and begin to write it into the folder `uri`; called by every rank, once the checkpoint before is written.

        Args:
            state: the engine's.
            what: to remember beside it.
            uri: the checkpoint's folder.
            then: called in the thread of rank 0 once the checkpoint is complete.
        """
        # All ranks' files of this attempt share a number that no other has: what one that was cut has left is never taken for theirs.
        writing = f"{state.agree(random.SystemRandom().getrandbits(40)):010x}"
        snapshot = Snapshot(state.written(), state.progress if state.rank == 0 else {}, self._buffer)
        self._buffer = snapshot.buffer
        # A daemon: where training fails, the process must not stay for the sake of a checkpoint that nobody completes.
        arguments = (snapshot, what, uri, state.rank, writing, then)
        self._thread = threading.Thread(target=self._write, args=arguments, daemon=True, name="checkpoint")
        self._thread.start()

    def wait(self, tick: Callable[[], object] = lambda: None) -> None:
        """Return when what was begun is written: on rank 0 the whole checkpoint, elsewhere this rank's part. Raises what went wrong.

        Args:
            tick: called each second meanwhile, for as long as the writing may take.
        """
        patience = time.monotonic() + 2 * self._wait_seconds
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(1.0)
            if time.monotonic() < patience:
                tick()
        self._thread = None
        self.check()

    def settle(self, seconds: float) -> None:
        """Wait for at most so long, and raise nothing."""
        if self._thread is not None:
            self._thread.join(seconds)

    def check(self) -> None:
        """Raise what has gone wrong so far; takes no time."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _write(self, snapshot: Snapshot, what: CheckpointState, uri: str, rank: int, writing: str, then: Callable[[], object]) -> None:
        try:
            snapshot.write(self._storage, join(uri, file_name(rank, what.workers, writing)))
            if rank == 0:
                self._complete(what, uri, writing)
                try:
                    then()
                except (StorageError, UserError) as fault:  # the checkpoint is complete all the same
                    _log.warning("old checkpoints could not be deleted: %s", fault)
        except BaseException as error:
            self._error = error

    def _complete(self, what: CheckpointState, uri: str, writing: str) -> None:
        """Write the mark once all ranks' files are there."""
        names = [file_name(rank, what.workers, writing) for rank in range(what.workers)]
        sizes = self._await(uri, names)
        files: dict[str, tuple[int, int | None]] = {name: (sizes[name], None) for name in names}
        for index in map(index_of, names):
            files[index] = (sizes[index], zlib.crc32(self._storage.read(join(uri, index))))
        Mark(what, writing, datetime.now(UTC).isoformat(timespec="seconds"), files).write(self._storage, uri)
        folder, _, name = uri.rpartition("/")
        self._storage.write(join(folder, "latest"), (json.dumps({"step": what.step, "folder": name}) + "\n").encode())

    def _await(self, uri: str, names: list[str]) -> dict[str, int]:
        """Sizes of all files in the folder, once the indices of `names` are among them: each rank writes its own last."""
        deadline, pause = time.monotonic() + self._wait_seconds, 0.05
        while True:
            sizes = {entry.uri.rpartition("/")[2]: entry.size for entry in self._storage.list(uri)}
            missing = [rank for rank, name in enumerate(names) if index_of(name) not in sizes]
            if not missing:
                return sizes
            if time.monotonic() > deadline:
                raise RunFailed(
                    f"the checkpoint {uri} is not complete {self._wait_seconds:g} s after rank 0 has written its part: nothing has come "
                    f"from rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing[:8]))}{' …' if len(missing) > 8 else ''}"
                )
            time.sleep(pause)
            pause = min(2.0, 1.5 * pause)
