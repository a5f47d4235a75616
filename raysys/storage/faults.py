"""What went wrong with a request: whether it may pass, and the sentence for a person if it does not.

Sentences name what was asked for (bucket, key), where (endpoint) and as whom (identity); never a secret.
"""

from dataclasses import dataclass

import boto3.exceptions
import botocore.exceptions
import botocore.parsers
import urllib3.exceptions

from raysys.errors import UserError
from raysys.storage.base import StorageError
from raysys.storage.identity import Identity

ATTEMPTS = 6
"""Attempts without progress before a transfer counts as failed."""
THROTTLED_ATTEMPTS = 12
"""A store that asks to slow down is given about a minute."""
DENIED_ATTEMPTS = 3
"""A refusal is tried this often: stores answer throttling with 403 at times."""
UNREACHABLE_SECONDS = 20.0
"""For how long a store that cannot be reached at all is tried."""

_DENIED = {"AccessDenied", "403", "Forbidden", "InvalidToken", "AccountProblem", "AllAccessDisabled"}
_MISSING = {"NoSuchKey", "NoSuchBucket", "404", "NotFound"}
_THROTTLED = {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests"}
_EXPIRED = "the session token has expired: get new credentials and start again (a run is resumed where it was)"
_CERTAIN = {
    "InvalidAccessKeyId": "the store does not know this access key: is it one of this endpoint?",
    "SignatureDoesNotMatch": "the secret key does not belong to the access key",
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "RequestTimeTooSkewed": "this machine's clock differs too much from the store's: set it (NTP)",
    "RequestExpired": "this machine's clock differs too much from the store's: set it (NTP)",
    "AuthorizationHeaderMalformed": "the bucket lies in another region: set --storage.region or AWS_REGION",
    "PermanentRedirect": "the bucket lies in another region: set --storage.region or AWS_REGION",
}
"""Refusals that another attempt does not change, and what they mean."""
_CREDENTIALS = (
    botocore.exceptions.CredentialRetrievalError,
    botocore.exceptions.MetadataRetrievalError,
    botocore.exceptions.NoAuthTokenError,
    botocore.exceptions.SSOError,
    botocore.exceptions.TokenRetrievalError,
    botocore.exceptions.UnauthorizedSSOTokenError,
)
_UNREACHABLE = (
    botocore.exceptions.ConnectTimeoutError,
    botocore.exceptions.EndpointConnectionError,
    botocore.exceptions.ProxyConnectionError,
    botocore.exceptions.SSLError,
)
EXPECTED = (
    botocore.exceptions.ClientError,
    botocore.exceptions.BotoCoreError,
    botocore.parsers.ResponseParserError,  # a listing that was cut is no XML
    boto3.exceptions.S3UploadFailedError,
    urllib3.exceptions.HTTPError,
    ConnectionError,
    TimeoutError,
)
"""What requests raise."""


class MissingError(UserError):
    """No such bucket or object."""


class DeniedError(UserError):
    """The identity has not the right."""


@dataclass(frozen=True)
class Place:
    """Which store is asked, and by whom."""

    endpoint: str | None
    identity: Identity

    def __str__(self) -> str:
        return f"endpoint {self.endpoint}" if self.endpoint else "Amazon S3"


@dataclass(frozen=True)
class Verdict:
    """What to make of a failed request."""

    error: Exception
    """For the person, when patience has an end."""
    attempts: int = 1
    """After how many attempts it has; 1: at once."""
    seconds: float = float("inf")
    """After how much time it has, if that is sooner."""
    throttled: bool = False
    """The store asked to slow down."""


def judge(fault: Exception, uri: str, bucket: str, key: str, place: Place) -> Verdict:
    """Make of what a request raised (one of :data:`EXPECTED`) what to do about it."""
    if isinstance(fault, boto3.exceptions.S3UploadFailedError):  # says no more than what it was raised from
        inner = fault.__context__
        fault = inner if isinstance(inner, EXPECTED) and not isinstance(inner, boto3.exceptions.S3UploadFailedError) else fault
    if isinstance(fault, botocore.exceptions.ClientError):
        return _judge_answer(fault, uri, f"bucket {bucket!r}, key {key!r} at {place}", place)
    if isinstance(fault, botocore.exceptions.NoCredentialsError | botocore.exceptions.PartialCredentialsError):
        return Verdict(UserError(f"{uri} needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role"))
    if isinstance(fault, _CREDENTIALS):
        return Verdict(UserError(f"{uri}: the {place.identity} cannot be had: {_told(fault, place)}"), ATTEMPTS, UNREACHABLE_SECONDS)
    if isinstance(fault, botocore.exceptions.ParamValidationError):
        return Verdict(UserError(f"{uri}: {_told(fault, place)}"))
    if isinstance(fault, _UNREACHABLE):
        certain = "CERTIFICATE_VERIFY_FAILED" in str(fault) or "WRONG_VERSION_NUMBER" in str(fault)
        error = StorageError(f"{uri}: {place} cannot be reached: {_why_unreachable(fault, place)}")
        return Verdict(error, 1 if certain else ATTEMPTS, UNREACHABLE_SECONDS)
    return Verdict(StorageError(f"{uri}: {place} failed {ATTEMPTS} times, last with: {_told(fault, place)}"), ATTEMPTS)


def _judge_answer(fault: botocore.exceptions.ClientError, uri: str, named: str, place: Place) -> Verdict:
    code = place.identity.hide(str(fault.response.get("Error", {}).get("Code", "")))
    status = int(fault.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    said = place.identity.hide(str(fault.response.get("Error", {}).get("Message", "")))
    if code in _MISSING or status == 404:
        what = "no such bucket" if code == "NoSuchBucket" else "no such object" if code == "NoSuchKey" else "no such object (or bucket)"
        return Verdict(MissingError(f"{uri}: {what}: {named}, asked with {place.identity}"))
    if code in _CERTAIN:
        return Verdict(DeniedError(f"{uri}: access refused ({code}) with {place.identity}: {_CERTAIN[code]}; {named}"))
    if status in (429, 503) or code in _THROTTLED:
        error = StorageError(
            f"{uri}: {place} asked to slow down {THROTTLED_ATTEMPTS} times ({code or status}); it has more work than it can do"
        )
        return Verdict(error, THROTTLED_ATTEMPTS, throttled=True)
    if code in _DENIED or status in (401, 403):
        denied = DeniedError(f"{uri}: access refused ({code}) with {place.identity}: has it the right to do this there? {named}")
        return Verdict(denied, DENIED_ATTEMPTS)
    if code == "InvalidRange" or status == 416:
        return Verdict(StorageError(f"{uri} ends before the bytes that were wanted ({named})"))
    if code == "PreconditionFailed" or status == 412:
        return Verdict(StorageError(f"{uri} was replaced while it was read"))
    if status >= 500 or code == "RequestTimeout":
        return Verdict(StorageError(f"{uri}: {place} failed {ATTEMPTS} times, last with: {code or status}: {said} ({named})"), ATTEMPTS)
    return Verdict(StorageError(f"{uri}: refused with {code or status}: {said} ({named}, asked with {place.identity})"))


def _why_unreachable(fault: Exception, place: Place) -> str:
    told = _told(fault, place)
    if isinstance(fault, botocore.exceptions.SSLError):
        advice = "is it https://, is its certificate one this machine trusts (AWS_CA_BUNDLE names others), is the clock right?"
        return f"TLS failed: {advice} ({told})"
    if isinstance(fault, botocore.exceptions.ProxyConnectionError):
        return f"the proxy refused: check HTTPS_PROXY, HTTP_PROXY and NO_PROXY ({told})"
    if isinstance(fault, botocore.exceptions.ConnectTimeoutError):
        return f"no answer: check the address, and firewalls between this machine and it ({told})"
    cause = str(getattr(fault, "kwargs", {}).get("error", fault))
    if "resolve" in cause or "Name or service not known" in cause or "name resolution" in cause:
        return f"this machine cannot resolve the host's name: check --storage.endpoint or AWS_ENDPOINT_URL, and DNS ({told})"
    return f"nothing listens there: check --storage.endpoint or AWS_ENDPOINT_URL, and whether the store runs ({told})"


def _told(fault: Exception, place: Place) -> str:
    """An error in one line, without anything after a '?' (signed links carry credentials)."""
    text = place.identity.hide(f"{type(fault).__name__}: {fault}").partition("?")[0]
    return text if len(text) <= 300 else text[:299] + "…"
