"""jobs/shards.py as a person calls it."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from raysys.errors import run_job
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.object_store import environment
from tests.shards.tars import pairs, picture, samples, tar, without_end

PROGRAM = Path(__file__).parents[2] / "jobs/shards.py"


@pytest.fixture
def job(capsys):
    """Call the job with a command line: (exit code, standard output, standard error)."""
    spec = importlib.util.spec_from_file_location("shards_job", PROGRAM)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            run_job(lambda: module.main(list(arguments)))
        written = capsys.readouterr()
        return int(end.value.code or 0), written.out, written.err

    return call


@pytest.fixture
def data(tmp_path):
    """Two data sets beneath one folder."""
    write_shards(samples(10), str(tmp_path / "data/train"), 2, Storage())
    write_shards(samples(4), str(tmp_path / "data/test"), 1, Storage())
    return tmp_path / "data"


def test_index_inspect_and_validate(data, job):
    code, out, err = job("index", str(data))
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first.startswith(f"{data}/test: 1 shards, 4 samples, ")
    assert second.startswith(f"{data}/train: 2 shards, 10 samples, ")
    assert "fingerprint" in first
    assert (data / "train/manifest.parquet").exists()

    code, out, _ = job("inspect", str(data))
    assert code == 0
    assert "German" in out
    assert f"contact sheet: {data}/contact-sheet.html" in out
    assert (data / "contact-sheet.html").read_text().count("<figure>") == 14

    assert job("validate", str(data)) == (0, "no faults in 2 data sets\n", "")


def test_pairs_of_languages(data, job, tmp_path):
    code, out, err = job("pairs", str(data), "--languages", "en", "de", "ja", "--storage.region", "us-east-1")
    assert (code, err) == (0, "")
    assert f"{data}/train: 10 samples, 10 with an image" in out
    record = json.loads((data / "language-pairs.json").read_text())
    assert [(one["folder"], one["counts"]) for one in record] == [
        (f"{data}/{name}", [[count, count, 0], [count, count, 0], [0, 0, 0]]) for name, count in (("test", 4), ("train", 10))
    ]
    assert job("pairs", str(data), "--out", str(tmp_path / "pairs.json"))[0] == 0
    assert (tmp_path / "pairs.json").exists()
    code, _, err = job("pairs", str(data), "--languages", "english")
    assert code == 2
    assert "'english' is not a language tag" in err


def test_faults_end_with_code_1(data, job):
    (data / "train/000001.tar").write_bytes(without_end(tar(pairs([1, 3]))))
    code, out, _ = job("validate", str(data))
    assert code == 1
    fault, total = out.splitlines()
    assert fault.startswith(f"{data}/train/000001.tar, byte ")
    assert total == "1 fault (shard 1) in 2 data sets"

    code, out, _ = job("index", str(data))
    assert code == 1
    assert (data / "test/manifest.parquet").exists()
    assert not (data / "train/manifest.parquet").exists()
    assert f"{data}/train: not indexed: {data}/train/000001.tar, byte " in out
    code, out, _ = job("index", str(data), "--on-damage", "skip")
    assert code == 0
    assert "the rest of the shard is left out" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index", "nowhere"], "error: the folder nowhere does not exist"),
        (["index", "gs://x"], "gs://"),
        ([], "required"),
        (["polish", "x"], "invalid choice"),
        (["inspect", ".", "--samples", "0"], "1 or more"),
    ],
)
def test_bad_use_ends_with_code_2(job, arguments, message):
    code, _, err = job(*arguments)
    assert code == 2
    assert message in err


def test_as_a_process_of_its_own(data):
    def run(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run("validate", str(data)) == (0, "no faults in 2 data sets\n", "")
    assert run("validate", f"{data}/nowhere") == (2, "", f"error: the folder {data}/nowhere does not exist\n")


def test_on_an_object_store(object_store, job):
    uri = f"{object_store.bucket_uri}/job"
    write_shards(samples(4), f"{uri}/train", 1, Storage())
    with environment(**object_store.reader.environment):
        code, _, err = job("index", uri)
        assert code == 2
        assert "access refused" in err
    assert job("index", uri)[0] == 0
    assert job("validate", uri, "--storage.endpoint", object_store.endpoint)[0] == 0
    assert job("inspect", uri)[0] == 0
    assert Storage().exists(f"{uri}/contact-sheet.html")
    code, _, err = job("index", "s3://no-such-bucket/x")
    assert code == 2
    assert "no-such-bucket" in err


def _foreign(folder: Path) -> Path:
    """A data set of images and .txt captions."""
    folder.mkdir(parents=True)
    members = [(f"{n}.{kind}", data) for n in range(3) for kind, data in (("jpg", picture(n, kind="JPEG")), ("txt", f"a cat {n}".encode()))]
    (folder / "00000.tar").write_bytes(tar(members))
    return folder


@pytest.mark.parametrize("how", ["options", "config"])
def test_tars_of_other_tools(tmp_path, job, how):
    folder = _foreign(tmp_path / "data/train")
    code, _, err = job("index", str(folder))
    assert code == 2
    assert "try data.layout.caption_member: txt" in err
    options = ["--layout.caption-member", "txt", "--layout.language=en"]
    if how == "config":
        (tmp_path / "run.yaml").write_text("run: {name: x}\ndata:\n  folder: data\n  layout: {caption_member: txt, language: de}\n")
        options = ["--config", str(tmp_path / "run.yaml"), "--layout.language", "en"]
    assert job("index", str(folder), *options)[0] == 0
    assert job("validate", str(folder))[:2] == (0, "no faults in 1 data set\n")
    code, out, _ = job("inspect", str(folder))
    assert code == 0
    assert "English" in out
    assert "a cat 2" in (folder / "contact-sheet.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layout.caption_member", "txt"], "set language (such as en) or language_field"),
        (["--layout.language", "english", "--layout.caption_field", "x"], "data.layout: language: 'english' is not a language tag"),
        (["--config", "nowhere.yaml"], "cannot read the settings file nowhere.yaml"),
        (["--layout.caption", "x"], "--layout.caption"),
    ],
)
def test_layouts_that_make_no_sense(tmp_path, job, options, message):
    code, _, err = job("index", str(_foreign(tmp_path / "data")), *options)
    assert code == 2
    assert message in err


def test_repair(data, job, tmp_path):
    shard = data / "train/000001.tar"
    shard.write_bytes(without_end(shard.read_bytes())[:-600])
    code, out, _ = job("repair", str(data), "--out", str(tmp_path / "clean"))
    assert code == 0
    assert f"{data}/train: 9 samples of 2 shards kept in {tmp_path}/clean/train (0 from behind damage); 2 faults" in out
    assert f"listed in {tmp_path}/clean/train/repair.jsonl" in out
    assert f"{data}/test: 4 samples of 1 shards kept in {tmp_path}/clean/test (0 from behind damage); no faults\n" in out
    assert job("validate", str(tmp_path / "clean"))[0] == 0
    code, out, _ = job("repair", str(data), "--out", str(tmp_path / "clean"))
    assert code == 0
    assert "1 of 2 shards were copied before without a fault" in out
    assert job("repair", str(data), "--out", str(data))[0] == 2
    assert job("repair", str(data))[0] == 2
