"""Objects in S3 buckets, over boto3.

Retries are ours alone (botocore makes one attempt per call): back-off with full jitter, and a body that breaks is resumed
at the byte where it broke, from the same version of the object.
"""

import io
import os
import random
import time
from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar, cast

import boto3
import botocore.config
import botocore.exceptions
import urllib3.exceptions
from boto3.s3.transfer import TransferConfig

from raysys.errors import UserError
from raysys.storage.base import Entry, StorageError, join

ATTEMPTS = 6
"""Attempts without progress before a transfer counts as failed."""
DENIED_ATTEMPTS = 3
"""A refusal is tried this often: stores answer throttling with 403 at times."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds."""
PIECE = 1 << 20
"""Bytes taken from a body at once."""

_DENIED = {"AccessDenied", "403", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
_DENIED |= {"TokenRefreshRequired", "AccountProblem", "AllAccessDisabled"}
_MISSING = {"NoSuchKey", "NoSuchBucket", "404", "NotFound"}
_THROTTLED = {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "RequestTimeout"}
_BROKEN = (
    botocore.exceptions.HTTPClientError,
    botocore.exceptions.ConnectionError,
    botocore.exceptions.IncompleteReadError,
    botocore.exceptions.ResponseStreamingError,
    urllib3.exceptions.HTTPError,
    ConnectionError,
    TimeoutError,
)

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
        self._endpoint = endpoint
        session = boto3.session.Session()
        credentials = session.get_credentials()
        self._identity = f"credentials from {credentials.method}" if credentials else "no credentials"
        try:
            self._client = session.client(
                "s3",
                endpoint_url=endpoint,
                region_name=region,
                config=botocore.config.Config(
                    retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30, max_pool_connections=64, tcp_keepalive=True
                ),
            )
        except ValueError as error:
            raise UserError(f"the S3 endpoint {endpoint!r} cannot be used: {error}") from None

    def read(self, uri: str, offset: int, size: int | None) -> bytes:
        with _Body(self, uri, offset, size) as body:
            data = body.read_all()
        if size is not None and len(data) < size:
            raise StorageError(f"{uri} ends at byte {body.length}: {size} bytes from byte {offset} were wanted, {len(data)} are there")
        return data

    def open(self, uri: str) -> BinaryIO:
        body = _Body(self, uri, 0, None)
        body.connect()
        return cast(BinaryIO, io.BufferedReader(body, PIECE))

    def write(self, uri: str, data: bytes) -> None:
        bucket, key = split(uri)
        if len(data) > 64 * PIECE:
            self.call(uri, lambda: self._client.upload_fileobj(io.BytesIO(data), bucket, key, Config=_multipart()))
        else:
            self.call(uri, lambda: self._client.put_object(Bucket=bucket, Key=key, Body=data))

    def upload(self, path: str, uri: str) -> None:
        bucket, key = split(uri)
        if not os.path.isfile(path):
            raise UserError(f"{path} does not exist")
        self.call(uri, lambda: self._client.upload_file(path, bucket, key, Config=_multipart()))

    def size(self, uri: str) -> int:
        bucket, key = split(uri)
        return self.call(uri, lambda: self._client.head_object(Bucket=bucket, Key=key))["ContentLength"]

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
            return self.call(uri, lambda: self._client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1))["KeyCount"] > 0
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
            raise UserError(f"the folder {uri} does not exist: bucket {split(uri)[0]!r} at {self._where()} holds nothing beneath it")
        return entries

    def _listing(self, uri: str, suffix: str) -> list[Entry]:
        bucket, key = split(uri)
        prefix = key.strip("/") + "/" if key.strip("/") else ""
        base = join(uri)
        entries: list[Entry] = []
        token: dict[str, str] = {}
        while True:
            answer = self.call(uri, lambda token=token: self._client.list_objects_v2(Bucket=bucket, Prefix=prefix, **token))  # type: ignore[misc]
            for item in answer.get("Contents", []):
                if item["Key"].endswith(suffix) and not item["Key"].endswith("/"):
                    entries.append(Entry(f"{base}/{item['Key'][len(prefix) :]}", item["Size"]))
            if not answer.get("IsTruncated"):
                return sorted(entries)
            token = {"ContinuationToken": answer["NextContinuationToken"]}

    def get(self, uri: str, offset: int, size: int | None, etag: str | None) -> dict[str, Any]:
        """One GET from byte `offset` on; `etag` demands the version of the object seen before. Retried until it answers."""
        bucket, key = split(uri)
        options: dict[str, str] = {"IfMatch": etag} if etag else {}
        if offset or size is not None:
            options["Range"] = f"bytes={offset}-" if size is None else f"bytes={offset}-{offset + size - 1}"
        answer = self.call(uri, lambda: self._client.get_object(Bucket=bucket, Key=key, **options))
        begins = (answer.get("ContentRange") or "bytes 0-").removeprefix("bytes ").partition("-")[0]
        if begins != str(offset):
            raise StorageError(
                f"{uri}: {self._where()} answered from byte {begins} when asked from byte {offset}; it cannot serve byte ranges"
            )
        return answer

    def call(self, uri: str, operation: Callable[[], Result]) -> Result:
        """Run one request; retry what may pass; explain what will not."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return operation()
            except botocore.exceptions.ClientError as error:
                fault: Exception = error
                self._refuse(uri, error, attempt)
            except (botocore.exceptions.NoCredentialsError, botocore.exceptions.PartialCredentialsError):
                raise UserError(f"{uri} needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role") from None
            except botocore.exceptions.ParamValidationError as error:
                raise UserError(f"{uri}: {' '.join(str(error).split())}") from None
            except (*_BROKEN, boto3.exceptions.S3UploadFailedError, boto3.exceptions.RetriesExceededError) as error:
                fault = error
                inner = error.__context__
                if isinstance(inner, botocore.exceptions.ClientError):
                    self._refuse(uri, inner, attempt)
            if attempt >= ATTEMPTS:
                raise StorageError(f"{uri}: {self._where()} failed {attempt} times, last with: {_told(fault)}") from None
            pause(attempt)

    def _refuse(self, uri: str, error: botocore.exceptions.ClientError, attempt: int) -> None:
        """Raise for an answer that will not change; return for one that may pass."""
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        bucket, key = split(uri)
        named = f"bucket {bucket!r}, key {key!r} at {self._where()}"
        if code in _MISSING or status == 404:
            what = "no such bucket" if code == "NoSuchBucket" else "no such object (or bucket)" if code != "NoSuchKey" else "no such object"
            raise MissingError(f"{uri}: {what}: {named}")
        if code in _DENIED or status in (401, 403):
            if attempt >= DENIED_ATTEMPTS or code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"):
                raise DeniedError(f"{uri}: access refused ({code}) with {self._identity}: {named}")
        elif code == "InvalidRange" or status == 416:
            raise StorageError(f"{uri} ends before the bytes that were wanted ({named})")
        elif code == "PreconditionFailed" or status == 412:
            raise StorageError(f"{uri} was replaced while it was read")
        elif status < 500 and status != 429 and code not in _THROTTLED:
            raise StorageError(f"{uri}: refused with {code or status}: {error.response.get('Error', {}).get('Message', '')} ({named})")

    def _where(self) -> str:
        return f"endpoint {self._endpoint}" if self._endpoint else "Amazon S3"


class MissingError(UserError):
    """No such bucket or object."""


class DeniedError(UserError):
    """The identity has not the right."""


class _Body(io.RawIOBase):
    """The bytes of an object from `offset` on (`size` of them, or all), in order, over as many requests as it takes."""

    def __init__(self, store: ObjectStore, uri: str, offset: int, size: int | None):
        super().__init__()
        self._store, self._uri, self._position, self._wanted = store, uri, offset, size
        self._stream: Any = None
        self._etag: str | None = None
        self._left: int | None = None
        self.length = 0
        """Size of the whole object in bytes, once connected."""

    def connect(self) -> None:
        """Request the rest; afterwards `_left` bytes are known to come."""
        size = self._left if self._left is not None else self._wanted
        answer = self._store.get(self._uri, self._position, size, self._etag)
        self._stream, self._etag = answer["Body"], answer.get("ETag")
        total = (answer.get("ContentRange") or "").rpartition("/")[2]
        self.length = int(total) if total.isdigit() else self._position + answer["ContentLength"]
        if self._left is None:
            there = self.length - self._position
            self._left = there if size is None else min(size, there)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._next(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def read_all(self) -> bytes:
        """Everything that is left."""
        pieces = []
        while piece := self._next(PIECE):
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _next(self, most: int) -> bytes:
        """Some bytes; none at the end only."""
        for attempt in range(1, ATTEMPTS + 1):
            if self._stream is None:
                self.connect()
            assert self._left is not None
            if self._left == 0:
                return b""
            try:
                piece = self._stream.read(min(most, self._left))
            except _BROKEN as error:
                piece, fault = b"", _told(error)
            else:
                fault = "the connection ended early"
            if piece:
                self._position += len(piece)
                self._left -= len(piece)
                return piece
            self._hang_up()
            if attempt < ATTEMPTS:
                pause(attempt)
        raise StorageError(f"{self._uri}: the transfer broke {ATTEMPTS} times at byte {self._position} of {self.length}: {fault}")

    def _hang_up(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def close(self) -> None:
        self._hang_up()
        super().close()


def pause(attempt: int) -> None:
    """Wait before the next attempt: exponential back-off with full jitter."""
    time.sleep(random.uniform(0.1, 1.0) * min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)))


def _multipart() -> TransferConfig:
    return TransferConfig(multipart_threshold=64 * PIECE, multipart_chunksize=16 * PIECE, max_concurrency=4)


def _told(error: Exception) -> str:
    """An error in one line, without anything after a '?' (signed links carry credentials)."""
    return " ".join(f"{type(error).__name__}: {error}".split()).partition("?")[0][:300]
