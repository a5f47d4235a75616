"""Fetching pictures from a real server that misbehaves."""

import dataclasses
import io
import socket
import time

import numpy as np
import PIL.Image
import pytest

from tests.datasets.recipes import recipe_module
from tests.datasets.web_server import GOOD, LARGE, web_server

downloads = recipe_module("common.download")
scaling = recipe_module("common.scaling")
Failed, Picture = downloads.Failed, downloads.Picture

LIMITS = downloads.Limits(private_addresses=True, silence=0.5, seconds=1.2, pause=0.02, longest_pause=2, attempts=2, size=50_000)


@pytest.fixture
def server():
    with web_server() as server:
        yield server


def fetch(url: str, **changes):
    [(item, result)] = downloads.download([("item", url)], dataclasses.replace(LIMITS, **changes))
    assert item == "item"
    return result


@pytest.mark.parametrize(
    ("path", "asked"),
    [("/good", 1), ("/flaky", 2), ("/busy", 2), ("/moved", 1), ("/noindex", 1), ("/chunked", 1), ("/gzip", 1), ("/good?name=ünï#x", 1)],
)
def test_what_works_in_the_end(server, path, asked):
    assert fetch(server.url(path)) == Picture(GOOD, "jpg")
    assert max(server.asked.values()) == asked
    [agent] = server.agents
    assert agent.startswith("raysys/")


@pytest.mark.parametrize(
    ("path", "cause", "passing", "asked"),
    [
        ("/status/404", "http 404", False, 1),
        ("/status/403", "http 403", False, 1),
        ("/status/204", "http 204", False, 1),
        ("/status/503", "http 503", True, 2),
        ("/later", "http 503", True, 1),  # an hour is not waited for
        ("/silent", "timeout", True, 2),
        ("/drip", "timeout", True, 2),
        ("/drip-head", "timeout", True, 2),
        ("/cut", "connection broken", True, 2),
        ("/loop", "too many redirects", False, 6),
        ("/to-file", "not a web address", False, 1),
        ("/bad-location", "no usable answer", False, 1),
        ("/bad-gzip", "no usable answer", False, 1),
        ("/nonsense", "connection broken", True, 2),
        ("/html", "not an image", False, 1),
        ("/half", "image cannot be read", False, 1),
        ("/robots", "robots", False, 1),
        ("/large", "too large", False, 1),
        ("/endless", "too large", False, 1),
    ],
)
def test_what_does_not_is_named(server, path, cause, passing, asked):
    start = time.monotonic()
    result = fetch(server.url(path), size=20_000)
    assert time.monotonic() - start < 6
    assert isinstance(result, Failed)
    assert (result.cause, result.passing) == (cause, passing)
    assert server.asked[path] == asked


@pytest.mark.parametrize(
    "url", ["", "ftp://a/b.jpg", "file:///etc/passwd", "no address", "http://", "http://[::1", "javascript:0", "//a/b"]
)
def test_other_addresses_are_not_asked(url):
    assert fetch(url).cause == "not a web address"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"])
def test_private_networks_are_not_asked(server, host):
    result = fetch(server.url("/good").replace("127.0.0.1", host), private_addresses=False)
    assert result.cause in ("private address", "cannot connect", "host unknown")  # not every machine has IPv6
    assert result.cause == "private address" or "ffff" in host
    assert not server.asked


def test_a_name_that_does_not_exist_and_a_port_where_nobody_listens():
    assert fetch("http://no-such-host.invalid/a.jpg").cause == "host unknown"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = fetch(f"http://127.0.0.1:{port}/a.jpg")
    assert (result.cause, result.passing) == ("cannot connect", True)


def test_results_come_in_order_and_hosts_are_spared(server):
    paths = [f"/wait?{number}" if number % 3 else f"/status/404?{number}" for number in range(40)]
    limits = dataclasses.replace(LIMITS, connections=8, per_host=2)
    results = list(downloads.download(((path, server.url(path)) for path in paths), limits))
    assert [item for item, _ in results] == paths
    assert all(isinstance(result, Failed) == (number % 3 == 0) for number, (_, result) in enumerate(results))
    assert server.busiest == 2


def test_closed_early_it_ends_soon(server):
    results = downloads.download(((number, server.url("/good" if number == 0 else "/drip")) for number in range(1000)), LIMITS)
    assert next(results)[0] == 0
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 3
    assert sum(server.asked.values()) < 200


def test_the_contact_is_in_the_user_agent(server):
    fetch(server.url("/good"), contact="me@example.org")
    assert server.agents == {f"raysys/{downloads.__version__} (prepares image-text data for training; me@example.org)"}


def encoded(image: PIL.Image.Image, kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def test_pictures_are_scaled_only_when_larger():
    assert scaling.scale_down(LARGE, 120) == Picture(LARGE, "png")
    smaller = scaling.scale_down(LARGE, 60)
    image = PIL.Image.open(io.BytesIO(smaller.data))
    assert (image.format, image.size, smaller.extension) == ("JPEG", (60, 45), "jpg")
    expected = np.asarray(PIL.Image.open(io.BytesIO(LARGE)).resize((60, 45), PIL.Image.Resampling.BOX), dtype=float)
    assert abs(np.asarray(image, dtype=float).mean() - expected.mean()) < 2


def test_scaled_pictures_stand_upright_and_stay_transparent():
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter to the right
    wide = PIL.Image.new("RGB", (100, 40))
    wide.paste((255, 0, 0), (0, 0, 50, 40))
    upright = PIL.Image.open(io.BytesIO(scaling.scale_down(encoded(wide, "JPEG", exif=exif), 50).data))
    assert upright.size == (20, 50)
    assert upright.getpixel((10, 10))[0] > 200  # the left half is on top
    assert upright.getpixel((10, 40))[0] < 50
    glass = scaling.scale_down(encoded(PIL.Image.new("LA", (100, 40), (200, 128)), "PNG"), 50)
    assert PIL.Image.open(io.BytesIO(glass.data)).getpixel((0, 0))[3] == 128


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK", "YCbCr", "I;16", "LA", "RGBA"])
def test_every_mode_of_pictures_is_taken(mode):
    kind = "TIFF" if mode in ("CMYK", "YCbCr") else "PNG"
    result = scaling.scale_down(encoded(PIL.Image.new(mode, (64, 32)), kind), 16)
    image = PIL.Image.open(io.BytesIO(result.data))
    assert image.size == ((64, 32) if mode == "I;16" else (16, 8))
    assert result.extension in ("jpg", "png", "tif")
