"""A real S3 server (SeaweedFS) for tests, one per test run."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from cluster.object_store import BUCKET, Identity, serve

OWNER = Identity("owner-key", "owner-secret-of-the-tests")
READER = Identity("reader-key", "reader-secret-of-the-tests", ("Read", "List"))
# From the beginning, so that Ray's workers have them whenever the test run's Ray is started.
os.environ.update(OWNER.environment | {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"})


@dataclass(frozen=True)
class ObjectStoreServer:
    """What tests need to know of the running server."""

    endpoint: str
    bucket_uri: str
    owner: Identity
    """May do everything; in force in the environment."""
    reader: Identity
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
    with serve(folder, {"owner": OWNER, "reader": READER}, patience=0) as endpoint, environment(AWS_ENDPOINT_URL=endpoint):
        yield ObjectStoreServer(endpoint, f"s3://{BUCKET}", OWNER, READER)
