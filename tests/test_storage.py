"""Local disk and a real S3 server behind one door."""

import functools
import http.server
import pickle
import threading
import time

import pytest

from raysys.errors import UserError
from raysys.storage import Entry, Storage, StorageError, StorageSettings, faults, is_remote, join, s3
from tests.object_store import environment


@pytest.fixture(params=["local", "s3"])
def place(request, tmp_path):
    """(storage, URI of an empty folder) on local disk and on the server."""
    if request.param == "local":
        return Storage(), str(tmp_path / "place")
    server = request.getfixturevalue("object_store")
    return Storage(), f"{server.bucket_uri}/{tmp_path.name}"


@pytest.fixture
def brief_pauses(monkeypatch):
    monkeypatch.setattr(s3, "FIRST_PAUSE", 0.01)


@pytest.mark.parametrize(
    ("uri", "parts", "joined"),
    [
        ("a/", ("b",), "a/b"),
        ("/", ("b",), "/b"),
        ("/a", ("/b/", "c"), "/a/b/c"),
        ("s3://bucket", ("x",), "s3://bucket/x"),
        ("s3://bucket/", (), "s3://bucket"),
        ("file:///a/", ("b",), "file:///a/b"),
    ],
)
def test_join(uri, parts, joined):
    assert join(uri, *parts) == joined
    assert is_remote(joined) == joined.startswith("s3:")


def test_writes_reads_lists_and_deletes(place, tmp_path):
    storage, folder = place
    first, second = join(folder, "b/ä 1.bin"), join(folder, "a.tar")
    data = bytes(range(256)) * 20
    storage.write(first, b"old and longer than the new one" * 1000)
    storage.write(first, data)
    (tmp_path / "up").write_bytes(b"tar")
    storage.upload(tmp_path / "up", second)

    assert storage.list(folder) == [Entry(second, 3), Entry(first, len(data))]
    assert storage.list(folder + "/", suffix=".tar") == [Entry(second, 3)]
    assert storage.read(first) == data
    assert storage.read(first, 7) == data[7:]
    assert storage.read(first, 100, 300) == data[100:400]
    assert storage.read(first, 100, 0) == b""
    assert storage.size(first) == len(data)
    assert [storage.exists(uri) for uri in (first, join(folder, "b"), folder, join(folder, "c"))] == [True, True, True, False]
    storage.download(first, tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == data
    with storage.open(first) as file:
        assert file.read(5) + file.read() == data

    storage.delete(second)
    storage.delete(second)  # what is not there counts as deleted
    assert [entry.uri for entry in storage.list(folder)] == [first]
    storage.delete(folder, recursive=True)
    assert not storage.exists(folder)


def test_large_objects_travel_in_parts(place, tmp_path):
    storage, folder = place
    data = b"0123456789abcdef" * (1 << 18) * 17  # 68 MiB: beyond the size that goes up in one request
    storage.write(join(folder, "large"), data)
    assert storage.size(join(folder, "large")) == len(data)
    assert storage.read(join(folder, "large"), len(data) - 20, 20) == data[-20:]
    storage.delete(folder, recursive=True)


def test_long_listings_come_in_pages(object_store, tmp_path):
    storage = Storage()
    folder = f"{object_store.bucket_uri}/{tmp_path.name}"
    for name in ("a", "b/c", "d", "e", "f"):
        storage.write(join(folder, name), b"x")
    client = storage._s3._client
    client.list_objects_v2 = functools.partial(client.list_objects_v2, MaxKeys=2)
    assert [entry.uri for entry in storage.list(folder)] == [join(folder, name) for name in ("a", "b/c", "d", "e", "f")]
    storage.delete(folder, recursive=True)
    assert not Storage().exists(folder)


def test_short_reads_are_errors(place):
    storage, folder = place
    uri = join(folder, "short")
    storage.write(uri, b"0123456789")
    for offset, size in ((5, 6), (10, 1), (50, 3)):
        with pytest.raises(StorageError, match="short ends"):
            storage.read(uri, offset, size)


def test_missing_objects_and_folders_are_named(place):
    storage, folder = place
    missing = join(folder, "nothing/here.tar")
    for use in (storage.read, storage.size, storage.open, lambda uri: storage.download(uri, "unused"), storage.list):
        with pytest.raises(UserError, match=r"nothing/here\.tar"):
            use(missing)


def test_a_door_can_be_pickled(place):
    storage, folder = place
    storage.write(join(folder, "x"), b"x")
    with environment(AWS_ENDPOINT_URL="http://127.0.0.1:9"):  # the other process need not know the endpoint
        assert pickle.loads(pickle.dumps(storage)).read(join(folder, "x")) == b"x"


def test_threads_share_a_door(place):
    storage, folder = place
    storage.write(join(folder, "x"), bytes(100_000))
    results = []
    threads = [threading.Thread(target=lambda: results.append(len(storage.read(join(folder, "x"), 10, 50_000)))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [50_000] * 16


def test_arrow_sees_the_same_store(place):
    storage, folder = place
    storage.write(join(folder, "x"), b"seen by both")
    filesystem, path = storage.arrow_filesystem(join(folder, "x"))
    with filesystem.open_input_stream(path) as stream:
        assert stream.read() == b"seen by both"


def test_file_uris_are_paths(tmp_path):
    storage = Storage()
    storage.write(f"file://{tmp_path}/with%20space/x", b"1")
    assert (tmp_path / "with space/x").read_bytes() == b"1"
    assert storage.list(f"file://{tmp_path}") == [Entry(f"file://{tmp_path}/with space/x", 1)]


def test_unknown_kinds_of_storage_are_refused():
    with pytest.raises(UserError, match="gs://"):
        Storage().read("gs://bucket/x")
    with pytest.raises(UserError, match="https://") as fault:
        Storage().read("https://host/x?X-Amz-Signature=abc")
    assert "abc" not in str(fault.value)


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    storage = Storage()
    storage.write(str(tmp_path / "x"), b"old")
    with pytest.raises(TypeError):
        storage.write(str(tmp_path / "x"), "not bytes")  # type: ignore[arg-type]
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"old")]


def test_refusals_name_bucket_key_endpoint_and_not_the_secret(object_store):
    Storage().write(f"{object_store.bucket_uri}/refusals/x", b"x")
    with environment(**object_store.reader.environment):
        reader = Storage()
        assert reader.read(f"{object_store.bucket_uri}/refusals/x") == b"x"
        start = time.monotonic()
        with pytest.raises(UserError) as fault:
            reader.write(f"{object_store.bucket_uri}/refusals/y", b"y")
    assert time.monotonic() - start < 10
    message = str(fault.value)
    assert all(part in message for part in ("raysys", "refusals/y", object_store.endpoint, "credentials from env")), message
    assert object_store.reader.secret_key not in message
    assert object_store.reader.access_key not in message


@pytest.mark.parametrize(("access_key", "secret_key"), [("owner-key", "wrong"), ("nobody", "owner-secret-of-the-tests")])
def test_wrong_credentials_are_refused(object_store, access_key, secret_key):
    with environment(AWS_ACCESS_KEY_ID=access_key, AWS_SECRET_ACCESS_KEY=secret_key), pytest.raises(UserError, match="access refused"):
        Storage().list(object_store.bucket_uri)


def test_missing_bucket_is_named(object_store):
    with pytest.raises(UserError, match="elsewhere"):
        Storage().read("s3://elsewhere/x")


class _Breaking(http.server.BaseHTTPRequestHandler):
    """Serves byte ranges of `data`, but each answer follows the next entry of `faults` while there are any."""

    data = bytes(range(256)) * 4000
    faults: list[str]
    asked: list[int]
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        begin, _, end = (self.headers["Range"] or "bytes=0-").removeprefix("bytes=").partition("-")
        self.asked.append(int(begin))
        fault = self.faults.pop(0) if self.faults else ""
        if fault.isdigit():
            self.send_response(int(fault))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self.data[int(begin) : int(end) + 1 if end else None]
        whole = fault == "whole"
        self.send_response(200 if whole else 206)
        self.send_header("Content-Length", str(len(self.data if whole else body)))
        if not whole:
            self.send_header("Content-Range", f"bytes {begin}-{int(begin) + len(body) - 1}/{len(self.data)}")
        self.send_header("ETag", '"new"' if fault == "replaced" else '"1"')
        self.end_headers()
        self.wfile.write(self.data if whole else body[: len(body) // 2] if fault == "cut" else body)
        self.close_connection = fault == "cut"

    def log_message(self, *arguments):
        pass


@pytest.fixture
def breaking(brief_pauses):
    """(storage whose server breaks in the ways put into `faults`, that class)."""
    _Breaking.faults, _Breaking.asked = [], []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Breaking)
    server.handle_error = lambda *arguments: None  # type: ignore[method-assign]  # clients hang up on purpose
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    with environment(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b"):
        yield Storage(StorageSettings(endpoint=f"http://127.0.0.1:{server.server_port}")), _Breaking
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("faults", [["cut"], ["cut", "cut", "cut"], ["503", "503"], ["500", "cut", "429", "cut"], ["403"]])
def test_broken_transfers_resume_where_they_broke(breaking, faults):
    storage, server = breaking
    server.faults = list(faults)
    assert storage.read("s3://b/x", 1000, 500_000) == server.data[1000:501_000]
    assert server.asked == sorted(server.asked)
    assert len(server.asked) == len(faults) + 1
    server.faults = list(faults)
    with storage.open("s3://b/x") as file:
        assert file.read() == server.data


def test_transfers_that_keep_breaking_fail(breaking):
    storage, server = breaking
    server.faults = ["500"] * 20
    with pytest.raises(StorageError, match="failed 6 times"):
        storage.read("s3://b/x", 0, 10)


def test_refusal_that_stays_is_the_users(breaking):
    storage, server = breaking
    server.faults = ["403"] * 20
    with pytest.raises(UserError, match="access refused"):
        storage.read("s3://b/x", 0, 10)
    assert len(server.asked) == faults.DENIED_ATTEMPTS


def test_a_server_without_byte_ranges_is_refused(breaking):
    storage, server = breaking
    server.faults = ["whole"]
    with pytest.raises(StorageError, match="cannot serve byte ranges"):
        storage.read("s3://b/x", 1000, 10)


def test_a_server_that_is_away_is_named(brief_pauses):
    storage = Storage(StorageSettings(endpoint="http://127.0.0.1:9"))
    with environment(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b"), pytest.raises(StorageError, match=r"127\.0\.0\.1:9"):
        storage.read("s3://b/x")
