"""The ledger: one line for every bad sample, whoever met it and however often, and the same conclusion for all workers."""

import json
from pathlib import Path

import pytest

from raysys.data.bad import BadDataError, BadSample, BadSamplePolicy, Replacement
from raysys.data.samples import Samples
from raysys.errors import RunFailed
from raysys.storage import Storage
from raysys.training.ledger import Ledger, SampleAccounts
from raysys.training.run_folder import RunFolder
from tests.data.worlds import load, write_dataset
from tests.shards.tars import picture, tar
from tests.training.processes import run_ranks
from tests.training.worlds import batch

COUNT = 12
CAPTIONS = b'{"captions": {"de": ["ein Bild"]}}'


@pytest.fixture
def data(tmp_path) -> str:
    return write_dataset(tmp_path / "train", COUNT)


def bad(samples: Samples, number: int, cause: str = "image") -> BadSample:
    shard, key = (samples.column(name)[number] for name in ("shard", "key"))
    return BadSample(f"{samples.manifests[0].folder}/{shard}", key, "png", cause, "cannot be decoded")


def lines(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]


def test_a_sample_has_one_line_which_a_resumed_run_keeps(tmp_path, data):
    samples = load([data], policy=BadSamplePolicy("skip"))
    ledger = Ledger(RunFolder(Storage(), str(tmp_path / "run")), [samples])
    assert ledger.add(bad(samples, 3))
    assert ledger.add(bad(samples, 5, "checksum"), step=7, replaced_by="s0001")
    assert not ledger.add(bad(samples, 5, "checksum"), step=9, replaced_by="s0002")
    ledger.flush()
    assert lines(tmp_path / "run") == [
        {**bad(samples, 3)._asdict(), "step": None, "replaced_by": None, "copies": []},
        {**bad(samples, 5, "checksum")._asdict(), "step": 7, "replaced_by": "s0001", "copies": []},
    ]
    again = Ledger(RunFolder(Storage(), str(tmp_path / "run")), [samples])
    assert not again.add(bad(samples, 5), step=2)
    assert again.counts() == {"data/samples_bad": 2, "data/samples_bad_checksum": 1, "data/samples_bad_image": 1}


def test_quarantine_holds_the_members_of_bad_samples_of_all_data_sets(tmp_path, data):
    policy = BadSamplePolicy("quarantine")
    sources = [load([data], policy=policy), load([write_dataset(tmp_path / "validation", 4, first=50)], policy=policy)]
    ledger = Ledger(RunFolder(Storage(), str(tmp_path / "run")), sources)
    for samples, number in ((sources[0], 6), (sources[1], 2)):
        ledger.add(bad(samples, number))
        key = samples.column("key")[number]
        (line,) = [line for line in ledger.lines if line["key"] == key]
        image, text = sorted(line["copies"], key=lambda path: path.endswith("json"))
        folder = Path(image).parent
        assert folder.name == samples.column("shard")[number][:-4]
        assert folder.parent.name.startswith(Path(samples.manifests[0].folder).name + "-")
        assert folder.parent.parent == tmp_path / "run" / "quarantine"
        assert Path(image).name == f"{key}.png"
        assert Path(image).read_bytes() == picture(int(key[1:]))
        assert "captions" in json.loads(Path(text).read_text())
    gone = BadSample(f"{data}/000000.tar", "no such key", "", "lost", "it was listed, and is not there")
    ledger.add(gone)
    assert ledger.lines[-1]["copies"] == []


def test_copies_of_equal_names_do_not_replace_one_another(tmp_path):
    policy = BadSamplePolicy("quarantine")
    keys = ("x..y", "x_y", "a/../../../up")
    sources = []
    for name in ("one/train", "two/train"):
        members = [(f"{key}.png", picture(len(name + key))) for key in keys] + [(f"{key}.json", CAPTIONS) for key in keys]
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "000000.tar").write_bytes(tar(sorted(members)))
        sources.append(load([str(tmp_path / name)], policy=policy))
    ledger = Ledger(RunFolder(Storage(), str(tmp_path / "run")), sources)
    for samples in sources:
        for number in range(len(keys)):
            ledger.add(bad(samples, number))
    copies = [copy for line in ledger.lines for copy in line["copies"]]
    assert len(set(copies)) == len(copies) == 12
    for copy in copies:
        assert Path(copy).resolve().is_relative_to(tmp_path / "run" / "quarantine"), copy
        assert Path(copy).is_file()


def test_every_damaged_shard_of_a_data_set_has_its_line(tmp_path, data):
    ledger = Ledger(RunFolder(Storage(), str(tmp_path / "run")), [load([data])])
    for number in (0, 1, 1):
        ledger.add(BadSample(data, "", "", "shard", f"{data}/00000{number}.tar, byte 512: the archive ends too early"))
    assert ledger.counts() == {"data/samples_bad": 2, "data/samples_bad_shard": 2}


def test_names_of_any_characters_are_read_again(tmp_path, data):
    folder, samples = RunFolder(Storage(), str(tmp_path / "run")), load([data])
    ledger = Ledger(folder, [samples])
    ledger.add(BadSample(f"{data}/000000.tar", "a\u2028b\x85c", "json", "text", "no caption in '\u2029'"))
    ledger.flush()
    assert Ledger(folder, [samples]).lines == ledger.lines


def test_samples_of_other_data_are_kept_and_not_counted(tmp_path, data):
    folder, policy = RunFolder(Storage(), str(tmp_path / "run")), BadSamplePolicy("skip", 1.5 / COUNT)
    scored = load([write_dataset(tmp_path / "test", 6, first=80)], policy=policy)
    ledger = Ledger(folder, [scored])
    for number in range(4):
        ledger.add(bad(scored, number))
    ledger.flush()
    samples = load([data], policy=policy)
    ledger = Ledger(folder, [samples])
    ledger.add(bad(samples, 0))
    assert ledger.counts() == {"data/samples_bad": 1, "data/samples_bad_image": 1}
    assert len(ledger.lines) == 5
    ledger.check()
    ledger.add(bad(samples, 1))
    with pytest.raises(BadDataError, match=r"^2 of 12 samples are bad"):
        ledger.check()


def meet(rank: int, run: str, data: str, allowed: float) -> tuple[list[dict], str]:
    """Two workers; the first meets sample 1, both meet sample 2, the second meets sample 9 a step later."""
    samples = load([data], policy=BadSamplePolicy("quarantine", allowed))
    accounts = SampleAccounts(Ledger(RunFolder(Storage(), run), [samples]), rank, 2)
    met = {(0, 0): [1], (0, 1): [2], (1, 0): [2], (1, 1): [9]}
    settled = []
    try:
        for step in (0, 1):
            replaced = [Replacement(step, 0, number, "s0000", bad(samples, number)) for number in met[step, rank]]
            share = batch(step, rank, 2)
            share.replaced.extend(replaced)
            accounts.note(share)
            accounts.settle()  # as a checkpoint does
            settled.append(accounts.take())
    except RunFailed as error:
        return settled, str(error)
    return settled, ""


def test_workers_agree_and_the_first_writes(tmp_path, data):
    first, second = run_ranks(meet, 2, str(tmp_path / "run"), data, 0.5)
    assert first == second
    settled, error = first
    assert error == ""
    assert [figures["data/samples_bad"] for figures in settled] == [2, 3]
    assert [figures["data/samples_replaced"] for figures in settled] == [2, 2]
    assert [figures["data/captions_cut_fraction"] for figures in settled] == [0, 0]
    written = lines(tmp_path / "run")
    keys = load([data]).column("key")
    assert [(line["key"], line["step"]) for line in written] == [(keys[1], 0), (keys[2], 0), (keys[9], 1)]
    assert all(len(line["copies"]) == 2 for line in written)


def test_too_many_end_the_run_for_all_workers_alike(tmp_path, data):
    first, second = run_ranks(meet, 2, str(tmp_path / "run"), data, 2.5 / COUNT)
    assert first == second
    assert len(first[0]) == 1
    assert "3 of 12 samples are bad, more than data.max_bad_fraction 0.208333 allows" in first[1]
    assert len(lines(tmp_path / "run")) == 3, "what ended the run is named"
