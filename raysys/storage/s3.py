"""Objects in S3 buckets, over boto3.

Retries are ours alone (botocore makes one attempt per call): back-off with full jitter, and a body that breaks is resumed
at the byte where it broke, from the same version of the object. Parts of large uploads are repeated by botocore.
"""

import email.utils
import functools
import io
import logging
import os
import random
import time
from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar, cast

import boto3
import botocore.config
import botocore.exceptions
import botocore.session
from boto3.s3.transfer import TransferConfig

from raysys.errors import UserError
from raysys.storage.base import Entry, StorageError, join
from raysys.storage.concurrency import CONNECTIONS, limiter_of
from raysys.storage.faults import EXPECTED, MissingError, Place, judge
from raysys.storage.identity import Identity
from raysys.storage.transfer import Transfer

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds."""
CONNECT_SECONDS, SILENT_SECONDS = 5.0, 30.0
"""For how long a connection may take, and a store may send nothing, before the attempt counts as failed."""
LARGE = 64 << 20
"""Bytes from which on an object goes up in parts."""

logging.getLogger("botocore").setLevel(logging.WARNING)  # its debug lines hold signatures and session tokens

Result = TypeVar("Result")


def split(uri: str) -> tuple[str, str]:
    """(bucket, key) of an ``s3://`` URI; the key may be empty."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    if not bucket:
        raise UserError(f"{uri} names no bucket; s3://bucket/folder was expected")
    return bucket, key


class ObjectStore:
    """The operations of :class:`raysys.storage.Storage` on ``s3://`` URIs; thread-safe."""

    def __init__(self, endpoint: str | None, region: str):
        core = botocore.session.Session()
        core.set_config_variable("metadata_service_num_attempts", 3)  # many workers that start at once ask for the role's credentials
        try:
            self._session = boto3.session.Session(botocore_session=core, region_name=region)
            self._place = Place(endpoint, Identity(self._session.get_credentials()))
            self._client = self._make_client(attempts=1)
        except ValueError as error:
            raise UserError(f"the S3 endpoint {endpoint!r} cannot be used: {error}") from None
        except botocore.exceptions.BotoCoreError as error:  # a profile or a file of settings that is not there or cannot be read
            raise UserError(f"the settings of S3 credentials cannot be used: {error}") from None
        self._limiter = limiter_of(endpoint)

    def _make_client(self, attempts: int) -> Any:
        return self._session.client(
            "s3",
            endpoint_url=self._place.endpoint,
            config=botocore.config.Config(
                retries={"total_max_attempts": attempts, "mode": "standard"},
                connect_timeout=CONNECT_SECONDS,
                read_timeout=SILENT_SECONDS,
                max_pool_connections=2 * CONNECTIONS,  # streams that are open keep theirs beside those of the requests in flight
                tcp_keepalive=True,
                # Many stores know none of the newer checksums; what is read is compared with the manifest's.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )

    @functools.cached_property
    def _uploader(self) -> Any:
        """A client for uploads in parts: one part that fails is repeated alone."""
        return self._make_client(attempts=5)

    def __str__(self) -> str:
        return f"{self._place} with {self._place.identity}"

    def clock(self, uri: str) -> float | None:
        """The store's time, seconds since 1970, full seconds; None where it does not tell it."""
        bucket, key = split(uri)
        answer = self.call(uri, lambda: self._list(Bucket=bucket, Prefix=key, MaxKeys=1))
        told = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        return email.utils.parsedate_to_datetime(told).timestamp() if told else None

    def read(self, uri: str, offset: int, size: int | None) -> bytes:
        with Transfer(self._get, self.call, uri, offset, size) as transfer:
            data = transfer.take_all()
        if size is not None and len(data) < size:
            raise StorageError(f"{uri} ends at byte {transfer.length}: {size} bytes from byte {offset} were wanted, {len(data)} are there")
        return data

    def open(self, uri: str) -> BinaryIO:
        transfer = Transfer(self._get, self.call, uri, 0, None)
        self.call(uri, transfer.connect)
        return cast(BinaryIO, io.BufferedReader(transfer, 1 << 20))

    def write(self, uri: str, data: bytes) -> None:
        bucket, key = split(uri)
        if len(data) > LARGE:
            self.call(uri, lambda: self._uploader.upload_fileobj(io.BytesIO(data), bucket, key, Config=_multipart()))
        else:
            self.call(uri, lambda: self._client.put_object(Bucket=bucket, Key=key, Body=data))

    def upload(self, path: str, uri: str) -> None:
        bucket, key = split(uri)
        if not os.path.isfile(path):
            raise UserError(f"{path} does not exist")
        self.call(uri, lambda: self._uploader.upload_file(path, bucket, key, Config=_multipart()))

    def size(self, uri: str) -> int:
        bucket, key = split(uri)

        def ask() -> int:
            try:
                return self._client.head_object(Bucket=bucket, Key=key)["ContentLength"]
            except botocore.exceptions.ClientError as error:
                if error.response["Error"]["Code"] in ("400", "403"):  # answers to HEAD have no body that says why; those to GET do
                    self._client.get_object(Bucket=bucket, Key=key)["Body"].close()
                raise

        return self.call(uri, ask)

    def exists(self, uri: str) -> bool:
        bucket, key = split(uri)
        prefix = key.rstrip("/") + "/" if key.strip("/") else ""
        try:
            if prefix and not key.endswith("/"):
                self.size(uri)
                return True
        except MissingError:
            pass
        try:
            return self.call(uri, lambda: self._list(Bucket=bucket, Prefix=prefix, MaxKeys=1))["KeyCount"] > 0
        except MissingError:
            return False

    def delete(self, uri: str, recursive: bool) -> None:
        bucket, key = split(uri)
        if not recursive:
            self.call(uri, lambda: self._client.delete_object(Bucket=bucket, Key=key))
            return
        keys = [split(entry.uri)[1] for entry in self._listing(uri, "")] + ([key] if key and not key.endswith("/") else [])
        for start in range(0, len(keys), 1000):
            batch = {"Objects": [{"Key": key} for key in keys[start : start + 1000]], "Quiet": True}
            answer = self.call(uri, lambda batch=batch: self._client.delete_objects(Bucket=bucket, Delete=batch))  # type: ignore[misc]
            if faults := answer.get("Errors"):
                raise StorageError(
                    f"{len(faults)} objects beneath {uri} could not be deleted, first {faults[0]['Key']}: {faults[0]['Code']}"
                )

    def listing(self, uri: str, suffix: str) -> list[Entry]:
        entries = self._listing(uri, suffix)
        if not entries and not self.exists(uri.rstrip("/") + "/"):
            raise UserError(f"the folder {uri} does not exist: bucket {split(uri)[0]!r} at {self._place} holds nothing beneath it")
        return entries

    def _listing(self, uri: str, suffix: str) -> list[Entry]:
        bucket, key = split(uri)
        prefix = key.strip("/") + "/" if key.strip("/") else ""
        base = join(uri)
        entries: list[Entry] = []
        token: dict[str, str] = {}
        while True:
            answer = self.call(uri, lambda token=token: self._list(Bucket=bucket, Prefix=prefix, **token))  # type: ignore[misc]
            for item in answer.get("Contents", []):
                if item["Key"].endswith(suffix) and not item["Key"].endswith("/"):
                    entries.append(Entry(f"{base}/{item['Key'][len(prefix) :]}", item["Size"]))
            if not answer.get("IsTruncated"):
                return sorted(entries)
            token = {"ContinuationToken": answer["NextContinuationToken"]}

    def _list(self, **options: Any) -> dict[str, Any]:
        answer = self._client.list_objects_v2(**options)
        if "KeyCount" not in answer:  # botocore makes an empty answer of a body that was cut before its first byte
            raise ConnectionError("the connection ended before the list")
        return answer

    def _get(self, uri: str, offset: int, size: int | None, etag: str | None) -> dict[str, Any]:
        """One GET from byte `offset` on; `etag` demands the version of the object seen before."""
        bucket, key = split(uri)
        options = {"IfMatch": etag} if etag else {}
        # A range is asked for even where all is wanted: the answer then tells the object's size apart from its own length.
        wanted = f"bytes={offset}-" if size is None else f"bytes={offset}-{offset + size - 1}"
        try:
            answer = self._client.get_object(Bucket=bucket, Key=key, Range=wanted, **options)
        except botocore.exceptions.ClientError as error:
            if offset or size is not None or error.response["Error"]["Code"] not in ("InvalidRange", "416"):
                raise
            answer = self._client.get_object(Bucket=bucket, Key=key)  # an empty object has no byte 0
        begins = (answer.get("ContentRange") or "bytes 0-").removeprefix("bytes ").partition("-")[0]
        if begins != str(offset):
            answer["Body"].close()
            raise StorageError(
                f"{uri}: {self._place} answered from byte {begins} when asked from byte {offset}; it cannot serve byte ranges"
            )
        return answer

    def call(self, uri: str, operation: Callable[[], Result]) -> Result:
        """Run one request when there is room for it; repeat what may pass; explain what will not."""
        bucket, key = split(uri)
        started = time.monotonic()
        attempt = 0
        while True:
            attempt += 1
            try:
                with self._limiter.slot() as slot:
                    result = operation()
            except EXPECTED as fault:
                verdict = judge(fault, uri, bucket, key, self._place)
            else:
                self._limiter.succeeded()
                return result
            if verdict.throttled:
                self._limiter.throttled(slot)
            if attempt >= verdict.attempts or time.monotonic() - started > verdict.seconds:
                raise verdict.error from None
            pause(attempt)


def pause(attempt: int) -> None:
    """Wait before the next attempt: exponential back-off with full jitter."""
    time.sleep(random.uniform(0.1, 1.0) * min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)))


def _multipart() -> TransferConfig:
    return TransferConfig(multipart_threshold=LARGE, multipart_chunksize=16 << 20, max_concurrency=4)
