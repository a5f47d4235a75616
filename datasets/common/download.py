"""Pictures from the web: many at once but few from one host, politely, and with every failure named by one of few causes."""

import random
import re
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import urllib3
import urllib3.exceptions

from raysys import __version__

from .described import PictureError
from .guarded import PrivateAddress, guarded_pools
from .scaling import Picture, scale_down

Item = TypeVar("Item")

_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Statuses of answers that may be others at another time."""
_REFUSALS = {"noai", "noimageai"}
"""Directives of X-Robots-Tag by which a site keeps its pictures out of training data."""


@dataclass(frozen=True)
class Limits:
    """What one part may ask of the network."""

    connections: int = 32
    """Pictures fetched at once."""
    per_host: int = 4
    """Of them from one host."""
    silence: float = 15
    """Seconds without a byte, or without a connection, after which an attempt ends."""
    seconds: float = 60
    """Seconds an attempt takes at most."""
    attempts: int = 3
    """Attempts for faults that may pass."""
    pause: float = 0.5
    """Seconds before the second attempt; doubled for each further one, and drawn at random from half of that on."""
    longest_pause: float = 30
    """Seconds; a server that asks for a longer pause (Retry-After) is not asked again in this run."""
    redirects: int = 5
    size: int = 20 << 20
    """Bytes of a picture as it is sent."""
    longest_side: int = 512
    """Pixels; larger pictures are scaled down."""
    private_addresses: bool = False
    """Whether addresses that are not public may be asked: an address in public data could else point at services of your own network."""
    contact: str = ""
    """How administrators of servers can reach you, as part of the user agent."""


@dataclass(frozen=True)
class Failed:
    """Why there is no picture."""

    cause: str
    detail: str
    passing: bool = False
    """Whether it may turn out otherwise at another time."""
    pause: float = 0
    """Seconds the server wants to be left alone."""


class _Refused(Exception):
    """An answer that is no picture; carries what is wrong with it."""

    def __init__(self, cause: str, detail: str, passing: bool = False, pause: float = 0):
        super().__init__(cause)
        self.failed = Failed(cause, detail, passing, pause)


def download(
    items: Iterable[tuple[Item, str]], limits: Limits, known: Callable[[Item], Picture | None] = lambda item: None
) -> Iterator[tuple[Item, Picture | Failed]]:
    """Fetch the picture behind each (item, web address); results come in the order of `items`.

    An item whose picture is `known` is not asked for; both happens in threads. Closed early, it ends within the time that one
    attempt takes at most.
    """
    client = _Client(limits)

    def get(item: Item, url: str) -> Picture | Failed:
        return known(item) or client.fetch(url)

    waiting: deque[tuple[Item, Future[Picture | Failed]]] = deque()
    with ThreadPoolExecutor(limits.connections) as pool:
        try:
            for item, url in items:
                waiting.append((item, pool.submit(get, item, url)))
                if len(waiting) >= 4 * limits.connections:  # far enough ahead that a slow one seldom holds up the others
                    yield _first(waiting)
            while waiting:
                yield _first(waiting)
        finally:
            client.stop.set()
            pool.shutdown(cancel_futures=True)


def _first(waiting: deque[tuple[Item, Future[Picture | Failed]]]) -> tuple[Item, Picture | Failed]:
    item, future = waiting.popleft()
    while True:
        try:
            return item, future.result(timeout=0.5)
        except TimeoutError:  # Ray stops a task by an exception that arrives only between two waits
            continue


class _Client:
    """Fetches pictures; used by many threads at once."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.stop = threading.Event()
        self._hosts: defaultdict[str, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(limits.per_host))
        self._lock = threading.Lock()
        about = "; ".join(part for part in ("prepares image-text data for training", limits.contact) if part)
        headers = {"User-Agent": f"raysys/{__version__} ({about})", "Accept": "image/*", "Accept-Encoding": "identity"}
        self._pools = urllib3.PoolManager(num_pools=limits.connections, maxsize=limits.per_host, headers=headers)
        self._pools.pool_classes_by_scheme = guarded_pools(limits.private_addresses, limits.seconds)

    def fetch(self, url: str) -> Picture | Failed:
        """The picture behind `url`, after as many attempts as it takes."""
        try:
            parsed = urllib3.util.parse_url(url.strip())
        except urllib3.exceptions.LocationParseError as error:
            return Failed("not a web address", _told(error))
        if parsed.scheme not in ("http", "https") or not parsed.host:
            return Failed("not a web address", f"{url[:80]!r} begins with neither http:// nor https://")
        with self._lock:
            turn = self._hosts[parsed.host]
        with turn:
            for attempt in range(1, self.limits.attempts + 1):
                if self.stop.is_set():
                    return Failed("stopped", "")
                result = self._attempt(parsed.url)
                if isinstance(result, Picture) or not result.passing or attempt == self.limits.attempts:
                    break
                usual = self.limits.pause * 2 ** (attempt - 1) * random.uniform(0.5, 1)
                pause = max(result.pause, min(usual, self.limits.longest_pause))
                if pause > self.limits.longest_pause:
                    break
                self.stop.wait(pause)
            return result

    def _attempt(self, url: str) -> Picture | Failed:
        try:
            return scale_down(self._body(url), self.limits.longest_side)
        except _Refused as error:
            return error.failed
        except PictureError as error:
            return Failed(error.cause, error.detail)
        except PrivateAddress as error:
            return Failed("private address", str(error))
        except Exception as error:  # strangers' answers bring out errors of any kind; none may end more than its own picture
            return _explain(error)

    def _body(self, url: str) -> bytes:
        deadline = time.monotonic() + self.limits.seconds
        retries = urllib3.Retry(
            total=None, connect=0, read=0, status=0, other=0, redirect=self.limits.redirects, respect_retry_after_header=False
        )
        timeout = urllib3.Timeout(connect=self.limits.silence, read=self.limits.silence)
        response = self._pools.request("GET", url, retries=retries, timeout=timeout, preload_content=False)
        whole = False
        try:
            self._check_head(response)
            pieces, size = [], 0
            while piece := response.read1(1 << 16):
                pieces.append(piece)
                size += len(piece)
                if size > self.limits.size:
                    raise _Refused("too large", f"more than {self.limits.size} bytes")
                if time.monotonic() > deadline or self.stop.is_set():
                    raise _Refused("timeout", f"not complete after {self.limits.seconds:g} s", passing=True)
            stated = response.headers.get("Content-Length", "")
            if stated.isdigit() and "Content-Encoding" not in response.headers and size < int(stated):
                raise _Refused("connection broken", f"{size} of {stated} bytes came", passing=True)
            whole = True
            return b"".join(pieces)
        finally:
            if not whole:
                response.close()  # what is left of the answer is not waited for
            response.release_conn()

    def _check_head(self, response: urllib3.BaseHTTPResponse) -> None:
        if response.status != 200:
            pause = _retry_after(response.headers.get("Retry-After", ""))
            raise _Refused(f"http {response.status}", str(response.reason or ""), response.status in _PASSING, pause)
        tags = ", ".join(response.headers.getlist("X-Robots-Tag")).lower()
        if refused := _REFUSALS & set(re.split(r"[\s,;:]+", tags)):
            raise _Refused("robots", f"X-Robots-Tag: {', '.join(sorted(refused))}")
        stated = response.headers.get("Content-Length", "")
        if stated.isdigit() and int(stated) > self.limits.size:
            raise _Refused("too large", f"{stated} bytes")


def _retry_after(text: str) -> float:
    """Seconds of a Retry-After header, given as a number or as a date; 0 where there is none."""
    try:
        return max(0.0, urllib3.Retry().parse_retry_after(text)) if text.strip() else 0
    except urllib3.exceptions.InvalidHeader:
        return 0


def _explain(error: Exception) -> Failed:
    """Why a request failed without an answer."""
    if isinstance(error, urllib3.exceptions.MaxRetryError):
        if isinstance(error.reason, urllib3.exceptions.ResponseError):
            return Failed("too many redirects", str(error.reason))
        error = error.reason or error
    told = _told(error)
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        cause = error.__cause__ or error.__context__
        passing = isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_AGAIN
        return Failed("host unknown", told, passing)
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return Failed("cannot connect", told, passing=True)
    if isinstance(error, urllib3.exceptions.TimeoutError | TimeoutError):
        return Failed("timeout", told, passing=True)
    if isinstance(error, urllib3.exceptions.SSLError):
        return Failed("no trusted connection", told)
    if isinstance(error, urllib3.exceptions.ProtocolError | OSError):
        return Failed("connection broken", told, passing=True)
    if isinstance(error, urllib3.exceptions.LocationValueError | UnicodeError):
        return Failed("not a web address", told)
    return Failed("no usable answer", told)


def _told(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
