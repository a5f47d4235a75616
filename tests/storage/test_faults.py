"""What a person is told when a store refuses or cannot be reached, and what never is."""

import logging
import pickle
import socket
import time
import traceback

import pytest

from raysys.errors import UserError
from raysys.settings import dumps
from raysys.storage import Storage, StorageError, StorageSettings, faults, s3
from raysys.storage.identity import redacted
from tests.fault_proxy import Fault, always, first
from tests.object_store import environment

SECRET, TOKEN = "secret-that-nobody-may-see", "token-that-nobody-may-see"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("GET https://h/b/x?X-Amz-Credential=AK&X-Amz-Signature=abc failed", "GET https://h/b/x?… failed"),
        ("'http://h/x?AWSAccessKeyId=A&Signature=b'", "'http://h/x?…'"),
        ("http://me:word@host:80/x", "http://…@host:80/x"),
        ("s3://bucket/really?/x", "s3://bucket/really?/x"),
        ("a long-secret in\n two lines", "a … in two lines"),
    ],
)
def test_redacted(text, hidden):
    assert redacted(text, ["long-secret", None, "a"]) == hidden


@pytest.mark.parametrize(
    ("fault", "kind", "parts"),
    [
        (Fault("refuse", status=400, code="ExpiredToken"), UserError, ["the session token has expired: get new credentials"]),
        (Fault("refuse", status=403, code="RequestTimeTooSkewed"), UserError, ["clock differs too much"]),
        (Fault("refuse", status=403, code="InvalidAccessKeyId"), UserError, ["does not know this access key"]),
        (Fault("refuse", status=400, code="AuthorizationHeaderMalformed"), UserError, ["another region: set --storage.region"]),
        (Fault("refuse", status=403, code="AccessDenied"), UserError, ["access refused (AccessDenied)"]),
        (Fault("refuse", status=404, code="NoSuchKey"), UserError, ["no such object"]),
        (Fault("refuse", status=404, code="NoSuchBucket"), UserError, ["no such bucket"]),
        (Fault("refuse", status=400, code="InvalidArgument"), StorageError, ["refused with InvalidArgument"]),
    ],
)
def test_refusals_name_identity_bucket_key_and_endpoint(proxy, through, fault, kind, parts):
    proxy.schedule = always(fault)
    started = time.monotonic()
    with pytest.raises(kind) as raised:
        through.read("s3://raysys/some/key", 5, 10)
    assert time.monotonic() - started < 5
    for part in [*parts, "s3://raysys/some/key", "'raysys'", "'some/key'", proxy.endpoint, "credentials from env", "'-key'"]:
        assert part in str(raised.value)


def test_the_reason_is_found_where_the_first_answer_has_none(proxy, through):
    """Answers to HEAD have no body: "400" and "403" are all that is known."""
    proxy.schedule = always(Fault("refuse", status=400, code="ExpiredToken"))
    with pytest.raises(UserError, match="the session token has expired"):
        through.size("s3://raysys/x")


def _closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def full_queue():
    """Port of a socket that takes no more connections: those who ask for one get no answer."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port
        for one in waiting:
            one.close()


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        ("http://127.0.0.1:{closed}", "nothing listens there: check --storage.endpoint or AWS_ENDPOINT_URL"),
        ("http://no-such-store.invalid:9000", "cannot resolve the host's name"),
        ("https://127.0.0.1:{plain}", "TLS failed: is it https://"),
        ("http://127.0.0.1:{full}", "no answer: check the address, and firewalls"),
    ],
)
def test_a_store_that_cannot_be_reached_is_told_in_one_sentence(object_store, full_queue, monkeypatch, endpoint, message):
    monkeypatch.setattr(s3, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(s3, "CONNECT_SECONDS", 0.3)
    endpoint = endpoint.format(closed=_closed_port(), plain=object_store.endpoint.rpartition(":")[2], full=full_queue)
    started = time.monotonic()
    with pytest.raises(StorageError, match=f"{endpoint} cannot be reached: .*{message}") as raised:
        Storage(StorageSettings(endpoint=endpoint)).read("s3://bucket/x")
    assert time.monotonic() - started < 10
    assert "\n" not in str(raised.value)


def test_patience_with_a_store_that_is_away_ends(monkeypatch):
    monkeypatch.setattr(faults, "UNREACHABLE_SECONDS", 0.3)
    monkeypatch.setattr(faults, "ATTEMPTS", 1000)
    monkeypatch.setattr(s3, "FIRST_PAUSE", 0.1)
    started = time.monotonic()
    with pytest.raises(StorageError, match="cannot be reached"):
        Storage(StorageSettings(endpoint=f"http://127.0.0.1:{_closed_port()}")).read("s3://bucket/x")
    assert time.monotonic() - started < 5
    assert s3.CONNECT_SECONDS + s3.LONGEST_PAUSE / 2 + 20 <= 30


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        (f"http://someone:{SECRET}@host:9000", "http://host is given with credentials"),
        (f"https://host/?X-Amz-Signature={SECRET}", "https://host is given with credentials"),
        ("host:9000", "http://host:port or https://host was expected"),
        ("ftp://host", "http://host:port or https://host was expected"),
    ],
)
def test_endpoints_are_addresses_and_hold_no_secrets(endpoint, message):
    with pytest.raises(UserError) as raised:
        Storage(StorageSettings(endpoint=endpoint))
    assert message in str(raised.value)
    assert SECRET not in str(raised.value)


def test_credentials_that_cannot_be_had(tmp_path, object_store):
    nothing = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    with environment(**nothing), pytest.raises(UserError, match="needs credentials: set AWS_ACCESS_KEY_ID"):
        Storage().read("s3://raysys/x")
    with environment(AWS_PROFILE="absent"), pytest.raises(UserError, match=r"the settings of S3 credentials cannot be used: .*absent"):
        Storage().read("s3://raysys/x")


def test_secrets_are_told_nowhere(proxy, object_store, monkeypatch, caplog):
    """Every kind of error, with a secret key, a session token and a signed link in play; everything a log could hold of it."""
    monkeypatch.setattr(faults, "UNREACHABLE_SECONDS", 0.01)
    caplog.set_level(logging.DEBUG)
    kinds = [
        Fault("cut"),
        Fault("reset", at=1),
        Fault("longer", at=5),
        *(Fault("refuse", status=status, code=SECRET) for status in (400, 401, 403, 404, 412, 416, 429, 500, 503)),
        *(Fault("refuse", status=403, code=code) for code in ("AccessDenied", "ExpiredToken", "SignatureDoesNotMatch", "SlowDown")),
    ]
    told = []

    def note(call) -> None:
        with pytest.raises((UserError, StorageError)) as raised:
            call()
        told.extend(["".join(traceback.format_exception(raised.value)), repr(raised.value), str(pickle.dumps(raised.value))])

    with environment(AWS_ACCESS_KEY_ID="AKIDEXAMPLE-key", AWS_SECRET_ACCESS_KEY=SECRET, AWS_SESSION_TOKEN=TOKEN):
        storage = Storage(StorageSettings(endpoint=proxy.endpoint))
        for fault in kinds:
            proxy.schedule = always(fault)
            for call in (storage.read, storage.size, storage.open, storage.list, lambda uri: storage.write(uri, b"x")):
                if fault.kind != "longer":
                    note(lambda call=call: call("s3://raysys/x"))
        proxy.schedule = first()
        note(lambda: storage.read("s3://raysys/x"))  # the real server does not know the key
        away = Storage(StorageSettings(endpoint=f"http://127.0.0.1:{_closed_port()}"))
        note(lambda: away.read("s3://raysys/x"))
        note(lambda: storage.read(f"https://host/x?X-Amz-Signature={SECRET}"))
        told += [repr(storage), str(pickle.dumps(storage)), storage.describe("s3://raysys/x"), dumps(StorageSettings())]
    told += [record.getMessage() for record in caplog.records] + [caplog.text]
    assert len(told) > 100
    for secret in (SECRET, TOKEN):
        assert not [text for text in told if secret in text]
