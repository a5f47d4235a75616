"""A run on data that is not all sound: named and stopped by default; by policy trained, validated and scored without it."""

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import yaml

from raysys.data.bad import BadDataError
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.samples import Samples
from raysys.runs.evaluate import load_items
from raysys.storage import Storage
from raysys.training.run_folder import RunFolder
from tests.jobs.calling import job
from tests.jobs.test_end_to_end import SETTINGS
from tests.shards.tars import tar

DAMAGED = {"train": 2, "validation": 1, "test-seen": 1}
"""Pictures per split that are cut before the shards are indexed; headers stay, so that only decoding tells."""


def destroy(folder: Path, count: int, seed: int) -> list[str]:
    """Cut some pictures in half; returns the samples' keys."""
    samples = Samples.load([str(folder)], (), Storage(), log=lambda line: None)
    keys = np.random.default_rng(seed).choice(samples.column("key"), count, replace=False).tolist()
    for shard in folder.glob("*.tar"):
        with tarfile.open(shard) as archive:
            members = [(member.name, archive.extractfile(member).read()) for member in archive]  # type: ignore[union-attr]
        cut = [
            (name, data[: len(data) // 2] if name.split(".")[0] in keys and not name.endswith("json") else data) for name, data in members
        ]
        shard.write_bytes(tar(cut))
    (folder / "manifest.parquet").unlink()
    return keys


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> tuple[Path, dict[str, list[str]]]:
    folder = tmp_path_factory.mktemp("bad-data")
    code, _, err = job("prepare", "shapes", "--out", str(folder / "data/shapes"), "--samples", "400", "--shards", "2")
    assert code == 0, err
    keys = {split: destroy(folder / "data/shapes" / split, count, seed=1) for split, count in DAMAGED.items()}
    settings = SETTINGS | {
        "run": {"name": "bad", "storage": str(folder / "runs")},
        "data": SETTINGS["data"] | {"folder": str(folder / "data"), "max_bad_fraction": 0.05},
        "training": SETTINGS["training"] | {"steps": 10, "checkpoint_every": 10, "max_failures": 0},
    }
    (folder / "bad.yaml").write_text(yaml.safe_dump(settings))
    return folder, keys


@pytest.mark.slow
def test_by_default_the_first_bad_sample_ends_the_run_and_is_named(ray_session, world):
    folder, keys = world
    address = ray_session.get_runtime_context().gcs_address
    code, _, err = job("globetrotter", "--config", str(folder / "bad.yaml"), "--run.name", "strict", RAY_ADDRESS=address)
    assert code == 1
    assert err.startswith("failed: ")
    assert err.count("\n") == 1, err
    assert any(f".tar, sample {key!r}, member ." in err for key in keys["train"] + keys["validation"]), err
    assert "cannot be decoded" in err


def test_a_bad_picture_that_is_to_be_scored_is_named(world, tmp_path):
    folder, keys = world
    samples = Samples.load([str(folder / "data/shapes/test-seen")], (), Storage(), log=lambda line: None)
    with pytest.raises(BadDataError, match=rf"test-seen/00000\d\.tar, sample '{keys['test-seen'][0]}', member \.jpg: cannot be decoded"):
        load_items(samples, ImagePreprocessorSettings(size=32), RunFolder(Storage(), str(tmp_path)))


@pytest.mark.slow
def test_by_policy_it_trains_and_scores_without_them_and_accounts_for_each(ray_session, world):
    folder, keys = world
    address = ray_session.get_runtime_context().gcs_address
    run = folder / "runs/bad"
    run.mkdir(parents=True)
    mended = {"shard": f"{folder}/data/shapes/train/000000.tar", "key": "mended since", "cause": "image", "reason": "an attempt before"}
    (run / "ledger.jsonl").write_text(json.dumps(mended) + "\n")
    code, out, err = job("globetrotter", "--config", str(folder / "bad.yaml"), "--data.on-bad-sample", "quarantine", RAY_ADDRESS=address)
    assert code == 0, err
    lines = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    named = {split: sorted(line["key"] for line in lines if f"/{split}/" in line["shard"]) for split in DAMAGED}
    assert named == {split: sorted(found) for split, found in keys.items()}
    assert {line["cause"] for line in lines} == {"image"}
    assert all((line["replaced_by"] is not None) == ("/train/" in line["shard"]) for line in lines)
    for line in lines:
        assert len(line["copies"]) == 2
        assert all(Path(copy).is_file() for copy in line["copies"])
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in metrics if "train/loss" in line]
    assert len(trained) == 10
    assert trained[-1]["data/samples_bad"] == trained[-1]["data/samples_bad_image"] == 3
    assert sum(line["data/samples_replaced"] for line in trained) >= 2
    assert "bad samples: 3 (image 3), named in" in out
    assert "1 bad samples are not scored" in out
    assert "R@1" in out
