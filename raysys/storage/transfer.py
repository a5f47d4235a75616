"""The bytes of one object, in order, over as many requests as it takes."""

import io
import time
from collections.abc import Callable
from typing import Any

from raysys.storage.base import StorageError

PIECE = 256 << 10
"""Bytes taken from a connection at once. Larger pieces cost more CPU time than they save: their memory is mapped anew each time."""
PROGRESS = 64 << 10
"""A request that broke after this many bytes counts as progress: attempts are counted anew."""
SLOW_SECONDS, SLOW_BYTES = 30.0, 4 << 10
"""A request that after this time has brought fewer bytes a second than this is given up, and another one made."""

Get = Callable[[str, int, int | None, str | None], dict[str, Any]]
"""One GET: (URI, offset, size or None, etag or None) → botocore's answer."""
Call = Callable[[str, Callable[[], None]], None]
"""Runs an operation on a URI again until it succeeds, or raises for a person."""


class Transfer(io.RawIOBase):
    """Bytes of an object from `offset` on, as a file that is read once; resumes by itself where the connection broke.

    Args:
        get: makes a request.
        call: repeats what failed.
        uri: the object.
        offset: first byte.
        size: how many bytes; None: all that follow.
    """

    def __init__(self, get: Get, call: Call, uri: str, offset: int, size: int | None):
        super().__init__()
        self._get, self._call, self._uri, self._position, self._wanted = get, call, uri, offset, size
        self._stream: Any = None
        self._etag: str | None = None
        self.left: int | None = None
        """Bytes still to come; None before the first request."""
        self.length = 0
        """Size of the whole object in bytes, once connected."""

    def take(self, most: int | None = None) -> bytes:
        """The next `most` bytes (all by default); fewer where the connection broke or the object ends, none at its end only."""
        into = io.BytesIO()
        self._call(self._uri, lambda: self._advance(into, most))
        return into.getvalue()

    def take_all(self) -> bytes:
        """Everything that is left."""
        pieces = [self.take()]
        while self.left:
            pieces.append(self.take())
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.take(len(buffer)) if self.left != 0 else b""
        buffer[: len(piece)] = piece
        return len(piece)

    def connect(self) -> None:
        """Request the rest; afterwards `left` bytes are known to come."""
        answer = self._get(self._uri, self._position, self.left if self.left is not None else self._wanted, self._etag)
        etag, self._stream = answer.get("ETag"), answer["Body"].__enter__()  # urllib3's response, which can read what is there
        if self._etag and etag != self._etag:
            self._hang_up()
            raise StorageError(f"{self._uri} was replaced while it was read")
        self._etag = etag
        total = (answer.get("ContentRange") or "").rpartition("/")[2]
        self.length = int(total) if total.isdigit() else self._position + answer["ContentLength"]
        if self.left is None:
            there = self.length - self._position
            self.left = there if self._wanted is None else min(self._wanted, there)

    def _advance(self, into: io.BytesIO, most: int | None) -> None:
        """Add to `into` what one request brings, until it holds `most` bytes. Raises what the connection raised, before PROGRESS."""
        if self._stream is None:
            self.connect()
        assert self.left is not None
        end = into.tell() + self.left if most is None else min(most, into.tell() + self.left)
        before, started = into.tell(), time.monotonic()
        try:
            while into.tell() < end:
                piece = self._stream.read1(min(PIECE, end - into.tell()))
                into.write(piece)
                self._position += len(piece)
                self.left -= len(piece)
                where, brought, seconds = f"at byte {self._position} of {self.length}", into.tell() - before, time.monotonic() - started
                if not piece:
                    raise ConnectionError(f"the connection ended {where}")
                if seconds > SLOW_SECONDS and brought < SLOW_BYTES * seconds and into.tell() < end:
                    raise TimeoutError(f"only {brought} bytes in {seconds:.0f} s, {where}")
        except Exception:
            self._hang_up()
            if into.tell() - before < PROGRESS:
                raise
        if not self.left:
            self._hang_up()

    def _hang_up(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def close(self) -> None:
        self._hang_up()
        super().close()
