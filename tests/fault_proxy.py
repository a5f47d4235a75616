"""An HTTP proxy in front of a real S3 server that breaks answers in the ways networks and stores do."""

import contextlib
import http.client
import random
import socket
import socketserver
import struct
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

Connection = socketserver.StreamRequestHandler
Headers = dict[str, str]
_ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}, says the proxy</Message></Error>'


@dataclass(frozen=True)
class Fault:
    """What happens to one answer."""

    kind: Literal["cut", "reset", "stall", "slow", "refuse", "longer", "shorter", "whole", "version"]
    """cut, reset, stall: the connection ends, breaks, or falls silent after `at` bytes of the body. slow: one byte every
    `seconds`. refuse: the answer is `status` with `code`. longer, shorter: Content-Length is wrong by `at`. whole: a request
    for a range is answered with 200 and the whole object, `body`. version: the body and etag are those of another object."""
    at: int = 0
    body: bytes = b""
    status: int = 503
    code: str = "SlowDown"
    seconds: float = 0.0


@dataclass(frozen=True)
class Request:
    """A request as the proxy saw it."""

    number: int
    """0 for the first one."""
    method: str
    path: str
    """With the query."""
    headers: Headers
    flying: int
    """Requests in flight when it came, itself included."""


Schedule = Callable[[Request], Fault | None]


def first(*faults: Fault | None) -> Schedule:
    """The first answers have these faults, all later ones none."""
    left = list(faults)
    lock = threading.Lock()

    def next_fault(request: Request) -> Fault | None:
        with lock:
            return left.pop(0) if left else None

    return next_fault


def always(fault: Fault) -> Schedule:
    """Every answer has this fault."""
    return lambda request: fault


def share(fault: Fault, part: float, seed: int) -> Schedule:
    """A part of the answers has this fault, drawn anew for each request."""
    return lambda request: fault if random.Random(f"{seed} {request.number}").random() < part else None


@dataclass
class FaultProxy:
    """A running proxy. Signatures stay valid: the Host header and the path reach the server as the client signed them."""

    endpoint: str
    schedule: Schedule = lambda request: None
    requests: list[Request] = field(default_factory=list)
    """All requests since the list was cleared."""
    broken: int = 0
    """Answers that had a fault."""
    flying: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)

    def asked(self, method: str = "GET") -> list[str]:
        """The ranges of all requests of a kind."""
        return [request.headers.get("Range", "") for request in self.requests if request.method == method]


@contextlib.contextmanager
def fault_proxy(upstream: str) -> Iterator[FaultProxy]:
    """A proxy in front of the server at the URL `upstream`, for as long as the block lasts."""

    class Handler(socketserver.StreamRequestHandler):
        disable_nagle_algorithm = True

        def handle(self) -> None:
            with contextlib.suppress(OSError, ValueError):
                while _serve(proxy, self, urllib.parse.urlsplit(upstream).netloc):
                    pass

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address, daemon_threads, block_on_close, request_queue_size = True, True, False, 128

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy = FaultProxy(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield proxy
        finally:
            proxy.ended.set()
            server.shutdown()
            thread.join()


def _serve(proxy: FaultProxy, handler: Connection, upstream: str) -> bool:
    """Answer one request of a connection; whether another one can follow."""
    line = handler.rfile.readline().decode()
    if not line:
        return False
    method, path, _ = line.split()
    headers = {}
    while (header := handler.rfile.readline().decode().strip()) != "":
        name, _, value = header.partition(":")
        headers[name] = value.strip()
    if headers.pop("Expect", ""):
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    sent = handler.rfile.read(int(headers.get("Content-Length", 0)))
    with proxy.lock:
        proxy.flying += 1
        request = Request(len(proxy.requests), method, path, headers, proxy.flying)
        proxy.requests.append(request)
    try:
        fault = proxy.schedule(request)
        proxy.broken += fault is not None
        if fault and fault.kind == "refuse":
            time.sleep(fault.seconds)
            body = b"" if method == "HEAD" else _ERROR.format(code=fault.code).encode()
            return _write(handler, fault.status, "Refused", {"Content-Type": "application/xml", "Content-Length": str(len(body))}, body)
        status, reason, answer, body = _ask(upstream, method, path, headers, sent)
        if fault is None:
            return _write(handler, status, reason, answer, body)
        return _break(proxy, handler, status, reason, answer, body, fault)
    finally:
        with proxy.lock:
            proxy.flying -= 1


def _ask(upstream: str, method: str, path: str, headers: Headers, sent: bytes) -> tuple[int, str, Headers, bytes]:
    connection = http.client.HTTPConnection(upstream, timeout=60)
    with contextlib.closing(connection):
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(sent)
        answer = connection.getresponse()
        body = answer.read()
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in ("transfer-encoding", "connection")}
        return answer.status, answer.reason, kept if "Content-Length" in kept else kept | {"Content-Length": str(len(body))}, body


def _write(handler: Connection, status: int, reason: str, headers: Headers, body: bytes) -> bool:
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    handler.wfile.write(f"HTTP/1.1 {status} {reason}\r\n{head}\r\n".encode() + body)
    return True


def _break(proxy: FaultProxy, handler: Connection, status: int, reason: str, headers: Headers, body: bytes, fault: Fault) -> bool:
    """Write an answer with a fault; the connection ends with it."""
    if fault.kind in ("longer", "shorter"):
        wrong = len(body) + (fault.at if fault.kind == "longer" else -min(fault.at, len(body)))
        headers = headers | {"Content-Length": str(wrong)}
        body = body[:wrong]
    elif fault.kind == "whole":
        status, reason, body = 200, "OK", fault.body
        headers = {name: value for name, value in headers.items() if name != "Content-Range"} | {"Content-Length": str(len(body))}
    elif fault.kind == "version":
        headers = {name: '"another"' if name.lower() == "etag" else value for name, value in headers.items()}
        body = bytes(byte ^ 0xFF for byte in body)
    elif fault.kind in ("cut", "reset", "stall"):
        body = body[: fault.at]
    if fault.kind == "slow":
        _write(handler, status, reason, headers, b"")
        for position in range(len(body)):
            handler.wfile.write(body[position : position + 1])
            if proxy.ended.wait(fault.seconds):
                break
        return False
    _write(handler, status, reason, headers, body)
    if fault.kind == "stall":
        proxy.ended.wait(120)
    if fault.kind == "reset":  # closing with this option set sends RST instead of FIN
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
    return False
