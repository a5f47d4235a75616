"""Connections for addresses that strangers wrote: none into private networks, none that keeps one waiting for ever."""

import contextlib
import ipaddress
import socket
import threading
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection


class PrivateAddress(Exception):
    """A host lies in a network that is not public."""


def guarded_pools(private_addresses: bool, seconds: float) -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """Connection pools for :class:`urllib3.PoolManager` by scheme.

    Their connections raise :class:`PrivateAddress` instead of asking an address that is not public, whatever name or
    redirect led there, unless `private_addresses`; and end an answer whose head is not there after `seconds`.
    """

    class Guard:
        host: str
        port: int
        sock: Any

        def _new_conn(self) -> socket.socket:
            with contextlib.suppress(OSError):  # a name that is not known is told of below
                for *_, address in socket.getaddrinfo(self.host.strip("[]"), self.port, type=socket.SOCK_STREAM):
                    self._refuse_private(str(address[0]))
            connection: socket.socket = super()._new_conn()  # type: ignore[misc]
            try:
                self._refuse_private(connection.getpeername()[0])  # the name can mean something else by now
            except PrivateAddress:
                connection.close()
                raise
            return connection

        def _refuse_private(self, text: str) -> None:
            address = ipaddress.ip_address(text.partition("%")[0])
            address = getattr(address, "ipv4_mapped", None) or address
            if not (private_addresses or (address.is_global and not address.is_multicast)):
                raise PrivateAddress(f"{self.host} is {address}")

        def getresponse(self) -> Any:
            late = threading.Event()
            cut = threading.Timer(seconds, self._cut, [late])  # a server can send its head byte by byte, never silent for long
            cut.start()
            try:
                answer = super().getresponse()  # type: ignore[misc]
            finally:
                cut.cancel()
            if late.is_set():  # a head that was cut reads like one that is whole
                raise TimeoutError(f"no answer after {seconds:g} s")
            return answer

        def _cut(self, late: threading.Event) -> None:
            late.set()
            with contextlib.suppress(OSError, AttributeError):  # it has ended by itself
                self.sock.shutdown(socket.SHUT_RDWR)

    http = type("GuardedHTTP", (Guard, HTTPConnection), {})
    https = type("GuardedHTTPS", (Guard, HTTPSConnection), {})
    return {
        "http": type("GuardedHTTPPool", (urllib3.HTTPConnectionPool,), {"ConnectionCls": http}),
        "https": type("GuardedHTTPSPool", (urllib3.HTTPSConnectionPool,), {"ConnectionCls": https}),
    }
