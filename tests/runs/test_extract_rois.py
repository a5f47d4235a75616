"""Region features for whole data sets: what is written, left out, kept and made again."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from raysys.data.bad import BadDataError
from raysys.errors import RunFailed, UserError
from raysys.runs.extract_rois import ExtractRoisSettings, describe, extract
from raysys.shards.manifest import Manifest
from raysys.shards.reader import read_samples
from raysys.shards.sample import Sample
from raysys.shards.validate import validate
from raysys.shards.writer import write_shards
from raysys.storage import Storage, join
from tests.jobs.calling import ROOT, environment
from tests.models.small_detectors import SIZE, save_detr
from tests.shards.tars import picture, text

STORAGE = Storage()


def sample(number: int, **changes) -> Sample:
    fields = json.loads(text(number, boxes=[[0, 1, 2, 9, 8], [0, 0, 0, 16, 12]]))
    return Sample("train", f"s{number:03}", picture(number), "png", fields, **changes)


def write(folder, samples, shards: int = 3) -> str:
    write_shards(samples, str(folder), shards, STORAGE)
    return str(folder)


@pytest.fixture
def data(tmp_path) -> Path:
    """Two data sets: 7 samples in 3 shards, 2 in one."""
    write(tmp_path / "data/train", map(sample, range(7)))
    write(tmp_path / "data/sub/test", map(sample, range(2)), 1)
    return tmp_path / "data"


@pytest.fixture
def settings(data, tmp_path):
    def make(**changes) -> ExtractRoisSettings:
        values = {"data": str(data), "out": str(tmp_path / "out"), "detector": "boxes", "features": "resnet-10-narrow", "crop_size": 32}
        return ExtractRoisSettings.model_validate({**values, "workers": 0, "batch_size": 2, **changes})

    return make


def members(folder) -> dict[str, dict[str, bytes]]:
    manifest = Manifest.load(STORAGE, str(folder))
    return {one.key: one.members for one in read_samples(STORAGE, manifest, range(len(manifest)))}


def times(folder) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in Path(folder).iterdir()}


def quiet(line: str) -> None:
    pass


def test_every_sample_is_there_as_it_was_with_regions_beside_it(settings, data, tmp_path):
    lines: list[str] = []
    copies = extract(settings(), lines.append)
    assert sorted(copies) == [str(tmp_path / "out/sub/test"), str(tmp_path / "out/train")]
    assert f"{tmp_path}/out/train: 7 samples read, 7 written with regions, 0 left out" in lines
    assert [(one.read, one.written, one.left_out) for one in copies[str(tmp_path / "out/train")]] == [(3, 3, []), (2, 2, []), (2, 2, [])]
    for name in ("train", "sub/test"):
        before, after = members(data / name), members(tmp_path / "out" / name)
        assert list(before) == list(after)
        for key, its in after.items():
            found = np.load(io.BytesIO(its.pop("rois.npz")), allow_pickle=False)
            assert its == before[key]
            assert found["features"].shape == (2, 128)
            assert found["boxes"].tolist() == [[1, 2, 9, 8], [0, 0, 16, 12]]
            assert found["size"].tolist() == [16, 12]
        assert list(validate(STORAGE, str(tmp_path / "out" / name))) == []


def test_what_is_there_is_kept_and_what_changed_is_made_again(settings, data, tmp_path):
    out = tmp_path / "out/train"
    extract(settings(), quiet)
    before = times(out)
    extract(settings(), quiet)
    assert times(out) == before

    (out / "000001.tar").unlink()
    (out / "000002.part.json").write_text("{}")
    lines: list[str] = []
    extract(settings(), lines.append)
    assert f"{tmp_path / 'out'}: 2 of 4 shards are there already" in lines
    after = times(out)
    assert {name for name in before if before[name] == after[name]} == {"000000.tar", "000000.part.json"}
    assert len(members(out)) == 7

    write(data / "train", [sample(0), *(sample(number + 100 * (number == 4)) for number in range(1, 7))])
    extract(settings(), quiet)
    assert {name for name in after if after[name] == times(out)[name]} == {
        f"00000{n}.{end}" for n in (0, 2) for end in ("tar", "part.json")
    }
    extract(settings(regions=1), quiet)
    assert not set(after.values()) & set(times(out).values())
    found = np.load(io.BytesIO(members(out)["s000"]["rois.npz"]))
    assert found["boxes"].tolist() == [[0, 0, 16, 12]]


def test_samples_that_cannot_be_used(settings, tmp_path):
    odd = sample(3)
    odd.metadata["boxes"] = [[0, 5, 5, 5, 9]]
    cut = sample(1)
    cut.image = cut.image[:200]
    none = Sample("train", "text", None, metadata=sample(9).metadata)
    folder = write(tmp_path / "bad/train", [sample(0), cut, none, odd, sample(4), sample(5), sample(6), Sample("train", "last", b"")], 4)
    with pytest.raises(BadDataError, match=r"000001.tar, sample 's001'.*cannot be decoded.*--on-bad-sample skip"):
        extract(settings(data=folder), quiet)
    assert (tmp_path / "out/000000.tar").is_file()
    kept = times(tmp_path / "out")["000000.tar"]
    with pytest.raises(BadDataError, match=r"1 of 8 samples cannot be used, more than --max-bad-fraction 0.01"):
        extract(settings(data=folder, on_bad_sample="skip"), quiet)
    lines: list[str] = []
    copies = extract(settings(data=folder, on_bad_sample="skip", max_bad_fraction=0.5), lines.append)
    assert times(tmp_path / "out")["000000.tar"] == kept
    assert set(members(tmp_path / "out")) == {"s000", "s004", "s005", "s006"}
    told = [(bad.key, bad.cause) for record in copies[str(tmp_path / "out")] for bad in record.left_out]
    assert told == [("s001", "image"), ("text", "layout"), ("s003", "layout"), ("last", "image")]
    assert f"{tmp_path}/out: 8 samples read, 4 written with regions, 4 left out" in lines
    assert [line for line in lines if line.startswith("  2 × layout; the first:")]
    # shards none of whose samples is left are no gap in the numbering
    assert list(validate(STORAGE, str(tmp_path / "out"))) == []

    nothing = write(tmp_path / "nothing", [odd], 1)
    with pytest.raises(RunFailed, match="not one sample"):
        extract(settings(data=nothing, out=str(tmp_path / "none"), on_bad_sample="skip", max_bad_fraction=1), quiet)


def test_folders_that_cannot_be(settings, data, tmp_path):
    for out in (data, data / "train/rois", tmp_path):
        with pytest.raises(UserError, match="lie within one another"):
            extract(settings(out=str(out)), quiet)
    with pytest.raises(UserError, match="nowhere does not exist"):
        extract(settings(data=str(tmp_path / "nowhere")), quiet)
    write(tmp_path / "out/train", map(sample, range(5)), 5)
    with pytest.raises(UserError, match=r"out/train/000003.tar is no copy of a shard"):
        extract(settings(), quiet)


def test_dry_run_says_what_is_to_do(settings, tmp_path):
    lines = describe(settings(), quiet)
    assert lines[0] == "9 samples in 4 shards of 2 data sets; 0 shards are there already"
    assert "data.region_size 128" in lines[1]
    assert lines[2].startswith("the first 2 samples: 2 with regions, ")
    assert lines[3].startswith("9 samples are left to do: ")
    assert not (tmp_path / "out").exists()
    extract(settings(), quiet)
    assert describe(settings(), quiet)[0].endswith("4 shards are there already")


def test_a_detector_on_ray_data_actors_from_and_to_object_storage(settings, data, tmp_path, ray_session, object_store):
    save_detr(tmp_path / "detr")
    storage, source, out = Storage(), join(object_store.bucket_uri, "rois-source"), join(object_store.bucket_uri, "rois")
    write(tmp_path / "cut", [sample(0), sample(1), Sample("train", "cut", picture(2)[:200])])
    for shard in sorted((tmp_path / "cut").glob("*.tar")):
        storage.upload(shard, join(source, "train", shard.name))
    changes = {"data": source, "out": out, "detector": str(tmp_path / "detr"), "features": "", "regions": 6}
    with pytest.raises(UserError, match="--workers: 99 of 1 CPUs each do not fit"):
        extract(settings(**changes, workers=99), quiet)
    # what an actor says of a bad sample is the job's error; the shards that were finished by then are kept
    with pytest.raises(BadDataError, match=r"rois-source/train/000002.tar, sample 'cut'.*--on-bad-sample skip"):
        extract(settings(**changes, workers=1), quiet)
    lines: list[str] = []
    (copy,) = extract(settings(**changes, on_bad_sample="skip", max_bad_fraction=0.5), lines.append)
    assert copy == join(out, "train")
    assert f"{out}: 2 of 3 shards are there already" in lines
    assert f"{copy}: 3 samples read, 2 written with regions, 1 left out" in lines
    for one in read_samples(storage, Manifest.load(storage, copy), range(2)):
        found = np.load(io.BytesIO(one.members["rois.npz"]))
        assert found["features"].shape == (len(found["boxes"]), SIZE)
        assert 0 < len(found["boxes"]) <= 6


@pytest.mark.slow
def test_a_job_that_is_killed_goes_on_where_it_was(data, tmp_path):
    write(tmp_path / "many", map(sample, range(60)), 12)
    command = [sys.executable, str(ROOT / "jobs/extract_rois.py"), "--data", str(tmp_path / "many"), "--out", str(tmp_path / "copy")]
    command += ["--detector", "boxes", "--features", "resnet-10-narrow", "--crop-size", "224", "--workers", "0"]
    job = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    records = tmp_path / "copy"
    while len(list(records.glob("*.part.json"))) < 3:
        assert job.poll() is None
        time.sleep(0.005)
    os.kill(job.pid, signal.SIGKILL)
    job.wait()
    assert not (records / "manifest.parquet").exists()
    before = {path.name: path.stat().st_mtime_ns for path in records.glob("*.part.json")}
    assert 3 <= len(before) < 12
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert f"{len(before)} of 12 shards are there already" in done.stdout
    assert f"{records}: 60 samples read, 60 written with regions, 0 left out" in done.stdout
    assert {name: (records / name).stat().st_mtime_ns for name in before} == before
    assert len(members(records)) == 60
