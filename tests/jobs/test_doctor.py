"""jobs/doctor.py: each check by its values, and the job against real Ray and a real S3 server."""

import os
import socket
import time

import pytest
import yaml

from raysys.runs.doctor import checks
from raysys.runs.doctor.examine import Patient, examine
from raysys.runs.doctor.findings import Finding, size
from raysys.runs.doctor.node import LIBRARIES, Disk, _container_memory, gather
from raysys.runs.doctor.storage import check_storage
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from raysys.training.settings import RaySettings, TrainingSettings
from tests.jobs.calling import ROOT, job
from tests.object_store import environment
from tests.shards.tars import samples

GIB = 1 << 30


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (8 << 20, "8 MiB"), (GIB * 3 // 2, "1.5 GiB"), (2000 * GIB, "2000.0 GiB")]
)
def test_size(count, text):
    assert size(count) == text


def test_a_finding_is_one_line():
    assert str(Finding("failed", "10.0.0.2", "disk", "1 GiB free", "make room")) == "failed   10.0.0.2  disk: 1 GiB free; make room"
    assert str(Finding("ok", "driver", "python", "3.11.7")) == "ok       driver  python: 3.11.7"


def test_constraints():
    assert checks.read_constraints("# made by pip\nRay==2.60.0\n\nnumpy==2.4.6 # why\nloose>=1\n") == {"ray": "2.60.0", "numpy": "2.4.6"}


@pytest.mark.parametrize(
    ("found", "level", "text"),
    [
        ({"torch": "2.13.0+cu128", "ray": "2.60.0"}, "ok", "torch 2.13.0+cu128, ray 2.60.0"),
        ({"torch": "2.13.0+cu128", "ray": "2.59.0"}, "failed", "ray 2.59.0 but 2.60.0 on the driver"),
        ({"torch": "2.13.0+cu128", "ray": "none"}, "failed", "not installed: ray"),
    ],
)
def test_versions(found, level, text):
    driver = {"torch": "2.13.0+cu128", "ray": "2.60.0"}
    finding = checks.check_versions("n", found, driver, {"torch": "2.13.0", "ray": "2.60.0"})
    assert (finding.level, finding.found) == (level, text)


def test_versions_that_were_not_tested():
    finding = checks.check_versions("n", {"ray": "2.61.0"}, {"ray": "2.61.0"}, {"ray": "2.60.0"})
    assert (finding.level, finding.found) == ("warning", "ray 2.61.0 for 2.60.0")


@pytest.mark.parametrize(
    ("free", "workers", "level"), [(8 * GIB, 3, "ok"), (6 * GIB, 3, "warning"), (GIB - 1, 0, "failed"), (GIB // 2, 1, "failed")]
)
def test_memory(free, workers, level):
    assert checks.check_memory("n", free, workers).level == level


@pytest.mark.parametrize(("shared", "level"), [(4 * GIB, "ok"), (64 << 20, "warning"), (None, "warning")])
def test_object_store(shared, level):
    assert checks.check_object_store("n", 4 * GIB, shared).level == level


@pytest.mark.parametrize(
    ("disk", "level"),
    [
        (Disk(70 * GIB, 200 * GIB), "ok"),
        (Disk(9 * GIB, 20 * GIB), "warning"),
        (Disk(9 * GIB, 200 * GIB), "failed"),  # 95.5% used
        (Disk(GIB // 2, GIB), "failed"),
        (Disk(0, 0), "failed"),
    ],
)
def test_disk(disk, level):
    assert checks.check_disk("n", "disk", "/x", disk).level == level


@pytest.mark.parametrize(
    ("difference", "level", "text"),
    [
        (0.4, "ok", "as the store's, to the second"),
        (-29, "ok", "29 s behind the store"),
        (31, "warning", "31 s ahead of the store"),
        (-900, "failed", "900 s behind the store"),
    ],
)
def test_clock(difference, level, text):
    finding = checks.check_clock("n", "the store", difference)
    assert (finding.level, finding.found) == (level, text)


@pytest.mark.parametrize(("there", "difference"), [(10.5, 0), (10, 0), (11, 0), (13, 2), (7, -3)])
def test_a_difference_of_clocks_is_what_is_certain(there, difference):
    assert checks.difference_of_clocks(there, 10, 11) == difference


@pytest.mark.parametrize(
    ("nodes", "training", "level"),
    [
        ([{"CPU": 4}], {"workers": 3}, "ok"),
        ([{"CPU": 4}], {"workers": 4}, "failed"),  # none is left for the data
        ([{"CPU": 3}, {"CPU": 3}], {"workers": 2, "cpus_per_worker": 2}, "ok"),
        ([{"CPU": 3}, {"CPU": 3}, {"CPU": 3}], {"workers": 2, "cpus_per_worker": 4}, "failed"),  # enough in all, on no one node
        ([{"CPU": 8, "GPU": 1}], {"workers": 2, "gpu": True}, "failed"),
        ([{"CPU": 8, "GPU": 2}], {"workers": 2, "gpu": True}, "ok"),
        ([{}], {"workers": 1}, "failed"),
    ],
)
def test_workers(nodes, training, level):
    assert checks.check_workers(nodes, TrainingSettings(**training)).level == level


def test_this_machine(tmp_path):
    facts = gather([str(tmp_path / "not/there/yet")])
    assert set(facts.libraries) == set(LIBRARIES)
    assert "none" not in facts.libraries.values()
    assert 0 < facts.memory < 1 << 45
    disk = facts.disks[str(tmp_path / "not/there/yet")]
    assert 0 < disk.free < disk.total
    assert not (tmp_path / "not").exists()


def test_memory_of_a_container(tmp_path):
    assert _container_memory(tmp_path) == 1 << 60
    (tmp_path / "memory.current").write_text("1000\n")
    for limit, left in (("max", 1 << 60), ("5000", 4000), ("500", 0)):
        (tmp_path / "memory.max").write_text(limit + "\n")
        assert _container_memory(tmp_path) == left


def test_storage_on_disk(tmp_path):
    write_shards(samples(4), str(tmp_path / "train"), 2, Storage())
    runs = str(tmp_path / "runs")
    read, written = check_storage("n", Storage(), [str(tmp_path / "train")], runs)
    assert (read.level, written.level) == ("ok", "ok")
    assert "2 shards" in read.found
    assert "MB/s" in read.found
    assert os.listdir(runs) == []
    (missing,) = check_storage("n", Storage(), [str(tmp_path / "nowhere")], None)
    assert missing.level == "failed"
    assert f"{tmp_path}/nowhere does not exist" in missing.found
    (empty,) = check_storage("n", Storage(), [runs], None)
    assert (empty.level, empty.found) == ("failed", "no .tar shards in it")


def test_storage_that_may_only_be_read(object_store):
    folder = f"{object_store.bucket_uri}/doctor-tests"
    write_shards(samples(4), folder, 2, Storage())
    with environment(**object_store.reader.environment):
        identity, clock, read, written = check_storage("n", Storage(), [folder], f"{folder}-runs")
    assert [finding.level for finding in (identity, clock, read, written)] == ["ok", "ok", "ok", "failed"]
    assert "credentials from env (access key ending in '-key')" in identity.found
    assert clock.found == "as the store's, to the second"
    assert "access refused" in written.found
    assert object_store.reader.secret_key not in written.found


def test_nodes_use_the_endpoint_of_the_driver(ray_session, object_store):
    """The workers' environment names no endpoint; the driver's door brings it along."""
    folder = f"{object_store.bucket_uri}/doctor-tests-endpoint"
    write_shards(samples(4), folder, 2, Storage())
    identity, *others = ray_session.get(ray_session.remote(check_storage).remote("n", Storage(), [folder], None))
    assert object_store.endpoint in identity.found
    assert [finding.level for finding in others] == ["ok", "ok"]


def test_every_node_is_examined(ray_session, tmp_path):
    write_shards(samples(4), str(tmp_path / "train"), 2, Storage())
    patient = Patient((str(tmp_path / "train"),), str(tmp_path / "runs"), Storage(), TrainingSettings(workers=1), RaySettings(), {})
    findings: list[Finding] = []
    examine(patient, findings.append)
    node = ray_session.nodes()[0]["NodeManagerAddress"]
    found = {(finding.node, finding.what) for finding in findings}
    for where in ("driver", node):
        assert {(where, what) for what in ("python", "versions", "disk", f"data {tmp_path}/train", f"runs {tmp_path}/runs")} <= found
    assert {(node, what) for what in ("memory", "object store", "clock")} <= found
    assert ("cluster", "workers") in found
    assert {finding.level for finding in findings if finding.what not in ("disk", "memory", "object store")} == {"ok"}

    tight = Patient((), None, Storage(), TrainingSettings(workers=100), RaySettings(), {})
    findings.clear()
    assert not examine(tight, findings.append)
    assert any(finding.level == "failed" and "100 workers" in finding.found for finding in findings)


@pytest.mark.slow
def test_the_job_names_who_was_refused_where(object_store, tmp_path):
    write_shards(samples(4), f"{object_store.bucket_uri}/doctor-tests-job/train", 2, Storage())
    settings = {"data": {"folder": f"{object_store.bucket_uri}/doctor-tests-job", "train": ["train"]}, "training": {"workers": 1}}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    arguments = ("--config", str(tmp_path / "settings.yaml"), "--run.storage", f"{object_store.bucket_uri}/doctor-tests-runs")

    code, out, err = job("doctor", *arguments, AWS_SECRET_ACCESS_KEY="not-the-secret-of-anyone")
    assert code == 1, out + err
    failed = [line for line in out.splitlines() if line.startswith("failed")]
    assert len({line.split()[1] for line in failed}) == 2  # the driver and the node
    for line in failed:
        assert all(
            part in line for part in ("access key ending in '-key'", "'raysys'", object_store.endpoint, "secret key does not belong")
        ), line
    assert "not-the-secret-of-anyone" not in out + err

    code, out, err = job("doctor", *arguments)
    assert "failed " not in out.replace("0 failed", ""), out + err
    assert code == 0, out + err
    assert not Storage().exists(f"{object_store.bucket_uri}/doctor-tests-runs")


def test_a_cluster_that_is_away(call, tmp_path, monkeypatch):
    write_shards(samples(4), str(tmp_path / "train"), 2, Storage())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    started = time.monotonic()
    code, out, err = call("doctor", str(tmp_path / "train"))
    assert code == 1, out + err
    assert f"failed   cluster  ray: RAY_ADDRESS is {address}, where nothing answers" in out, out + err
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", str(ROOT / "jobs/configs/shapes.yaml"), "--training.wokers", "2"], "--training.workers"),
        (["--config", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_bad_usage(call, arguments, message):
    code, _, err = call("doctor", *arguments)
    assert code == 2
    assert message in err
