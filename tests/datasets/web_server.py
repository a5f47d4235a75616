"""A web server on this machine that misbehaves in every way that pictures' hosts do."""

import gzip
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.shards.tars import picture

GOOD = picture(1, (20, 10), "JPEG")
HALF = picture(3, (64, 64), "JPEG")[:2000]
LARGE = picture(2, (120, 90), "PNG")


class WebServer(ThreadingHTTPServer):
    """What was asked of it is kept."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: Counter[str] = Counter()
        self.agents: set[str] = set()
        self.healthy = False
        """Whether `/down` works."""
        self.busy = self.busiest = 0
        """Answers to `/wait` now, and the most there were at once."""
        self.lock = threading.Lock()
        self.ended = threading.Event()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class _Handler(BaseHTTPRequestHandler):
    server: WebServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        with self.server.lock:
            self.server.asked[self.path] += 1
            self.server.agents.add(self.headers["User-Agent"])
        times = self.server.asked[self.path]
        if path == "/flaky" and times == 1:
            self.answer(503)
        elif path == "/busy" and times == 1:
            self.answer(429, headers={"Retry-After": "1"})
        elif path == "/later":
            self.answer(503, headers={"Retry-After": "3600"})
        elif path == "/down" and not self.server.healthy:
            self.answer(500)
        elif path.startswith("/status/"):
            self.answer(int(path.rpartition("/")[2]))
        elif path == "/silent":
            self.server.ended.wait(30)
        elif path == "/drip":
            self.head(200, {"Content-Length": str(len(GOOD))})
            self.drip(GOOD)
        elif path == "/drip-head":
            self.drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10_000)
        elif path == "/cut":
            self.head(200, {"Content-Length": str(len(GOOD) + 100)})
            self.wfile.write(GOOD)
            self.close_connection = True
        elif path == "/loop":
            self.answer(302, headers={"Location": "/loop"})
        elif path == "/moved":
            self.answer(301, headers={"Location": "/good"})
        elif path == "/to-file":
            self.answer(302, headers={"Location": "file:///etc/passwd"})
        elif path == "/html":
            self.answer(200, b"<!DOCTYPE html><html>no longer here</html>", {"Content-Type": "image/jpeg"})
        elif path == "/half":
            self.answer(200, HALF)
        elif path == "/robots":
            self.answer(200, GOOD, {"X-Robots-Tag": "otherbot: noindex, NoAI"})
        elif path == "/noindex":
            self.answer(200, GOOD, {"X-Robots-Tag": "noindex"})
        elif path == "/large":
            self.answer(200, LARGE)
        elif path == "/endless":
            self.head(200, {"Connection": "close"})
            for _ in range(2000):
                self.wfile.write(bytes(1 << 16))
            self.close_connection = True
        elif path == "/chunked":
            self.head(200, {"Transfer-Encoding": "chunked"})
            for begin in range(0, len(GOOD), 100):
                piece = GOOD[begin : begin + 100]
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        elif path == "/gzip":
            self.answer(200, gzip.compress(GOOD), {"Content-Encoding": "gzip"})
        elif path == "/bad-gzip":
            self.answer(200, b"no gzip at all", {"Content-Encoding": "gzip"})
        elif path == "/nonsense":
            self.wfile.write(b"\x00\x01nonsense\r\n\r\n")
            self.close_connection = True
        elif path == "/bad-location":
            self.answer(302, headers={"Location": "http://[nowhere/"})
        elif path == "/wait":
            with self.server.lock:
                self.server.busy += 1
                self.server.busiest = max(self.server.busy, self.server.busiest)
            time.sleep(0.05)
            with self.server.lock:
                self.server.busy -= 1
            self.answer(200, GOOD)
        else:
            self.answer(200, GOOD)

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.head(status, {"Content-Length": str(len(body))} | (headers or {}))
        self.wfile.write(body)

    def drip(self, data: bytes) -> None:
        for byte in data:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.server.ended.wait(0.05):
                return

    def handle(self) -> None:
        with suppress(OSError):  # the client hung up, as it should
            super().handle()


@contextmanager
def web_server() -> Iterator[WebServer]:
    """A running server."""
    server = WebServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
