"""Data sets written in parts: the same in threads and on Ray, resumed part by part, nothing half done."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from raysys.errors import RunFailed, UserError
from raysys.shards.manifest import Manifest
from raysys.shards.parts import Skipped, write_parts
from raysys.shards.reader import read_samples
from raysys.shards.sample import MANIFEST_NAME, Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage, join
from tests.shards.tars import samples

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Numbers:
    """A part of made-up samples; each call leaves a line in `diary`, so that one can see which parts were made."""

    name: str
    numbers: tuple[int, ...]
    diary: str = os.devnull
    skip: tuple[Skipped, ...] = ()
    fault: str = ""
    """Raised as an exception after the samples, unless a file of this name is there."""
    pause: float = 0

    def __call__(self) -> Iterator[Sample | Skipped]:
        with open(self.diary, "a") as file:
            file.write(f"{self.name}\n")
        everything = samples(max(self.numbers, default=-1) + 1)
        for number in self.numbers:
            time.sleep(self.pause)
            yield everything[number]
        yield from self.skip
        if self.fault and not Path(self.fault).exists():
            raise ValueError("this part cannot be made")


def parts(count: int, diary: Path | str = os.devnull, each: int = 3) -> list[Numbers]:
    return [Numbers(f"part {i}", tuple(range(i * each, (i + 1) * each)), str(diary)) for i in range(count)]


def made(diary: Path) -> list[str]:
    lines = sorted(diary.read_text().splitlines()) if diary.exists() else []
    diary.unlink(missing_ok=True)
    return lines


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def keys(shard: Path) -> list[str]:
    with tarfile.open(shard) as archive:
        return [name.removesuffix(".json") for name in archive.getnames() if name.endswith(".json")]


def quiet(line: str) -> None:
    pass


def test_part_i_is_shard_i_in_the_writers_form(tmp_path):
    counts = write_parts(parts(2), str(tmp_path / "parts"), Storage(), quiet)
    assert (counts.read, counts.written, counts.skipped, counts.examples) == (6, 6, Counter(), {})
    for number in range(2):
        write_shards(samples(6)[3 * number : 3 * number + 3], str(tmp_path / f"{number}"), 1, Storage())
        written = (tmp_path / "parts" / f"{number:06d}.tar").read_bytes()
        assert written == (tmp_path / f"{number}" / "000000.tar").read_bytes()
        record = json.loads((tmp_path / "parts" / f"{number:06d}.part.json").read_text())
        assert (record["part"], record["size"], record["counts"]["written"]) == (f"part {number}", len(written), 3)
    assert Manifest.build(Storage(), str(tmp_path / "parts")).table["key"].to_pylist() == [f"s{n:03}" for n in range(6)]


def test_on_ray_the_same_bytes_as_in_threads(tmp_path, ray_session):
    given = parts(5)
    given[2] = Numbers("bad", (), skip=(Skipped("no caption", "line 1"), Skipped("no caption", "line 2")))
    on_ray = write_parts(given, str(tmp_path / "ray"), Storage(), quiet)
    command = "from tests.shards.test_parts import *; import sys; given = parts(5)\n"
    command += "given[2] = Numbers('bad', (), skip=(Skipped('no caption', 'line 1'), Skipped('no caption', 'line 2')))\n"
    command += "counts = write_parts(given, sys.argv[1], Storage(), quiet); assert 'ray' not in sys.modules; print(counts)"
    done = subprocess.run([sys.executable, "-c", command, str(tmp_path / "threads")], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == str(on_ray), done.stderr
    assert contents(tmp_path / "ray") == contents(tmp_path / "threads")
    assert "000002.tar" not in contents(tmp_path / "ray")
    assert "000002.part.json" in contents(tmp_path / "ray")


def test_a_part_that_fails_on_ray_is_named_and_the_others_are_kept(tmp_path, ray_session):
    given = [*parts(3), Numbers("the bad one", (90,), fault=str(tmp_path / "mended"))]
    given = [given[3], *given[:3]]
    with pytest.raises(RunFailed, match=r"(?s)000000\.tar: part 'the bad one' failed:.*this part cannot be made"):
        write_parts(given, str(tmp_path / "out"), Storage(), quiet)
    assert not (tmp_path / "out" / "000000.tar").exists()
    (tmp_path / "mended").touch()
    assert write_parts(given, str(tmp_path / "out"), Storage(), quiet).written == 10


def test_counts_add_up_and_name_the_first_example(tmp_path):
    given = [
        Numbers("a", (0, 1), skip=(Skipped("image missing", "a:7"), Skipped("image missing", "a:9"), Skipped("no caption", "a:10"))),
        Numbers("b", (2,), skip=(Skipped("no caption", "b:1"),)),
    ]
    for _ in range(2):  # written, then read from the records
        counts = write_parts(given, str(tmp_path), Storage(), quiet)
        assert (counts.read, counts.written) == (7, 3)
        assert counts.skipped == {"image missing": 2, "no caption": 2}
        assert counts.examples == {"image missing": "a:7", "no caption": "a:10"}


def test_only_what_is_missing_or_differs_is_made_again(tmp_path):
    out, diary = tmp_path / "out", tmp_path / "diary"
    given = parts(4, diary)
    write_parts(given, str(out), Storage(), quiet)
    whole = contents(out)
    assert made(diary) == ["part 0", "part 1", "part 2", "part 3"]
    write_parts(given, str(out), Storage(), quiet)
    assert made(diary) == []
    (out / "000000.tar").unlink()
    (out / "000001.part.json").write_text('{"part": "part 1"}')
    (out / "000002.tar").write_bytes(b"cut")
    write_parts(given, str(out), Storage(), quiet)
    assert made(diary) == ["part 0", "part 1", "part 2"]
    assert contents(out) == whole
    given[3] = Numbers("another", (50,), str(diary))
    write_parts(given, str(out), Storage(), quiet)
    assert made(diary) == ["another"]
    assert keys(out / "000003.tar") == ["s050"]


def test_what_may_pass_is_tried_again_by_the_next_run(tmp_path):
    diary = tmp_path / "diary"
    passing = Numbers("p", (0,), str(diary), skip=(Skipped("timeout", "u", retry=True), Skipped("not found", "v")))
    final = Numbers("f", (1,), str(diary), skip=(Skipped("not found", "w"),))
    for expected in (["f", "p"], ["p"], ["p"]):
        assert write_parts([passing, final], str(tmp_path / "out"), Storage(), quiet).written == 2
        assert made(diary) == expected


@dataclass(frozen=True)
class Costly(Numbers):
    """Takes over the samples of its former shard; those from number 2 on come only when the file `fault` is there."""

    def again(self, former):
        for number in self.numbers:
            sample = samples(number + 1)[-1]
            if sample.key in former:
                image, extension, metadata = former[sample.key]
                assert (image, extension, metadata) == (sample.image, "png", sample.metadata)
                yield Sample("train", sample.key, image, extension, metadata | {"taken over": True})
            elif number < 2 or Path(self.fault).exists():
                yield sample
            else:
                yield Skipped("down", sample.key, retry=True)

    def __call__(self):
        return self.again({})


@pytest.mark.parametrize("damaged", [False, True])
def test_a_costly_part_takes_over_what_it_has(tmp_path, damaged):
    part, out = Costly("c", (0, 1, 5), fault=str(tmp_path / "up")), tmp_path / "out"
    assert write_parts([part], str(out), Storage(), quiet).written == 2
    if damaged:
        data = (out / "000000.tar").read_bytes()
        (out / "000000.tar").write_bytes(b"damaged" + data[7:])
    (tmp_path / "up").touch()
    assert write_parts([part], str(out), Storage(), quiet).written == 3
    manifest = Manifest.build(Storage(), str(out))
    written = {sample.key: json.loads(sample.members["json"]) for sample in read_samples(Storage(), manifest, range(3))}
    assert {key: "taken over" in metadata for key, metadata in written.items()} == {"s000": not damaged, "s001": not damaged, "s005": False}
    assert len(list(out.iterdir())) == 2


def test_leftovers_go_and_the_manifest_with_them(tmp_path):
    write_parts(parts(4), str(tmp_path), Storage(), quiet)
    Manifest.build(Storage(), str(tmp_path)).save(Storage())
    write_parts(parts(4), str(tmp_path), Storage(), quiet)
    assert (tmp_path / MANIFEST_NAME).exists()
    (tmp_path / "README.md").write_text("kept")
    write_parts(parts(2), str(tmp_path), Storage(), quiet)
    expected = ["000000.part.json", "000000.tar", "000001.part.json", "000001.tar", "README.md"]
    assert sorted(path.name for path in tmp_path.iterdir()) == expected


def test_a_part_that_has_nothing_any_more_leaves_no_shard(tmp_path):
    write_parts([Numbers("a", (0,), skip=(Skipped("timeout", "u", retry=True),))], str(tmp_path), Storage(), quiet)
    write_parts([Numbers("a", (), skip=(Skipped("gone", "u"),))], str(tmp_path), Storage(), quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["000000.part.json"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "nothing to write"),
        ([Numbers("a", (1, 1))], "two samples have the key 's001'"),
        ([Numbers("a", (1,)), Numbers("b", (2, 1))], r"00000[01]\.tar and 00000[01]\.tar both have a sample with the key 's001'"),
    ],
)
def test_mistakes_are_told(tmp_path, given, message):
    for _ in range(2):  # written, then known from the records
        with pytest.raises(UserError, match=message):
            write_parts(given, str(tmp_path), Storage(), quiet)


def test_object_storage(object_store):
    folder = join(object_store.bucket_uri, "parts-of-a-set", "train")
    storage = Storage()
    storage.endpoint = object_store.endpoint
    lines: list[str] = []
    write_parts(parts(3), folder, storage, lines.append)
    storage.delete(join(folder, "000001.tar"))
    assert write_parts(parts(3), folder, storage, lines.append).written == 9
    assert lines[-2:] == [f"{folder}: 2 of 3 parts are there already", "000001.tar: 3 of 3 records (1 of 1 parts)"]
    assert len(Manifest.build(storage, folder)) == 9


SLOW = """
import sys
from raysys.errors import run_program
from tests.shards.test_parts import *
if sys.argv[1] == "ray":
    import ray
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
given = [Numbers(f"part {i}", tuple(range(3 * i, 3 * i + 3)), sys.argv[3], pause=0.02 if i < 2 else 1) for i in range(5)]
run_program(lambda: write_parts(given, sys.argv[2], Storage(), lambda line: print(line, flush=True)) and 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["ray", "threads"])
def test_interrupted_between_parts_only_the_missing_ones_are_made(tmp_path, where):
    """Ctrl-C in a real process after two of five parts: no half shard, exit code 130; the rest is made by the next run."""
    out, diary = tmp_path / "out", tmp_path / "diary"
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(ROOT), "RAY_TMPDIR": "/tmp"}
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, where, str(out), str(diary)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith("(2 of 5 parts)\n"):
            break
    deadline = time.monotonic() + 20
    while len(diary.read_text().splitlines()) < 3 and time.monotonic() < deadline:  # the third part is on its way
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.stdout.close()
    expected = [f"00000{i}.{ending}" for i in range(2) for ending in ("part.json", "tar")]
    assert sorted(path.name for path in out.iterdir()) == expected
    assert list((tmp_path / "tmp").glob("raysys-part-*")) == []
    made(diary)
    assert write_parts(parts(5, diary), str(out), Storage(), quiet).written == 15
    assert made(diary) == ["part 2", "part 3", "part 4"]
    assert keys(out / "000004.tar") == ["s012", "s013", "s014"]


def test_others_read_what_is_written(tmp_path):
    write_parts(parts(1), str(tmp_path), Storage(), quiet)
    with tarfile.open(fileobj=io.BytesIO((tmp_path / "000000.tar").read_bytes())) as archive:
        assert archive.getnames() == [f"s{n:03}.{extension}" for n in range(3) for extension in ("json", "png")]
