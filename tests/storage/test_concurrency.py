"""How many requests run at once, alone and against a store that throttles."""

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from raysys.storage import Storage
from raysys.storage.concurrency import CONNECTIONS, Limiter, limiter_of
from tests.fault_proxy import Fault


def test_throttling_halves_the_limit_once_for_all_requests_in_flight():
    limiter = Limiter(16)
    with limiter.slot() as first, limiter.slot() as second:
        limiter.throttled(first)
        limiter.throttled(second)
    assert limiter.limit == 8
    with limiter.slot() as third:
        limiter.throttled(third)
    assert limiter.limit == 4
    for _ in range(5):
        with limiter.slot() as slot:
            limiter.throttled(slot)
    assert limiter.limit == 1  # never none


def test_answers_raise_the_limit_by_one_for_each_round():
    limiter = Limiter(16)
    with limiter.slot() as slot:
        limiter.throttled(slot)
    answers = []
    for count in range(1, 200):
        before = limiter.limit
        limiter.succeeded()
        if limiter.limit > before:
            answers.append(count)
    assert limiter.limit == 16  # the ceiling
    rounds = [after - before for before, after in zip([0, *answers], answers, strict=False)]
    assert all(abs(taken - limit) <= 1 for taken, limit in zip(rounds, range(8, 16), strict=True)), rounds


def test_no_more_requests_run_than_the_limit_allows():
    limiter, running, most = Limiter(3), [], []

    def request(_) -> None:
        with limiter.slot():
            running.append(1)
            most.append(len(running))
            time.sleep(0.005)
            running.pop()

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(request, range(40)))
    assert max(most) == 3


def test_a_slot_is_given_back_by_a_request_that_fails():
    limiter = Limiter(1)
    with pytest.raises(RuntimeError), limiter.slot():
        raise RuntimeError
    with limiter.slot():
        pass


def test_all_users_of_an_endpoint_share_its_limiter(through, proxy):
    assert through._s3._limiter is limiter_of(proxy.endpoint)
    assert limiter_of("http://one").limit == CONNECTIONS
    assert limiter_of("http://one") is not limiter_of("http://two")


@pytest.mark.parametrize("most", [3, 8])
def test_concurrency_settles_near_what_the_store_bears(proxy, through, object_store, monkeypatch, most):
    uri = f"{object_store.bucket_uri}/storage-tests-throttled"
    Storage().write(uri, bytes(2000))
    limiter = Limiter(CONNECTIONS)
    monkeypatch.setattr(through._s3, "_limiter", limiter)
    refused = []

    def throttle(request):
        if request.flying > most:
            refused.append(request.number)
            return Fault("refuse", code="SlowDown")
        time.sleep(0.01)  # a request takes its time, or they would not meet
        return None

    proxy.schedule = throttle
    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(lambda number: through.read(uri, number, 100), range(500)))
    assert [len(data) for data in found] == [100] * 500

    later = [request for request in proxy.requests if request.number >= len(proxy.requests) // 2]
    assert most / 2 <= statistics.mean(request.flying for request in later) <= most + 1
    assert sum(number >= later[0].number for number in refused) < 0.25 * len(later)


def test_streams_that_are_open_hold_no_slots(proxy, through, object_store, monkeypatch):
    uris = [f"{object_store.bucket_uri}/storage-tests-streams/{number}" for number in range(4)]
    for uri in uris:
        Storage().write(uri, bytes(3 << 20))
    monkeypatch.setattr(through._s3, "_limiter", Limiter(1))
    read = []

    def interleaved() -> None:
        files = [through.open(uri) for uri in uris]
        while pieces := [piece for piece in (file.read(1 << 20) for file in files) if piece]:
            read.append(sum(map(len, pieces)))

    thread = threading.Thread(target=interleaved, daemon=True)
    thread.start()
    thread.join(20)
    assert sum(read) == 4 * (3 << 20)
