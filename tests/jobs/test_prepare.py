"""`jobs/prepare.py`: from a recipe to shards with a manifest, and what it says when that cannot be."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import prepare
from raysys.errors import RunFailed, UserError
from raysys.shards.manifest import Manifest
from raysys.shards.reader import read_samples
from raysys.storage import Storage
from tests.jobs.calling import job
from tests.shards.tars import picture

ROOT = Path(__file__).parents[2]

RECIPE = """
import io
from PIL import Image
from raysys.shards.sample import Sample
from .words import WORDS

LANGUAGES = ("de", "en")
AVAILABLE = ("de", "en", "pt-BR", "zh-Hans")

def samples(cache, *, seed, languages, count=None):
    for split in ("train", "test"):
        for number in range(count or 5):
            image = io.BytesIO()
            Image.new("RGB", (4, 4), (number, seed, 0)).save(image, format="PNG")
            captions = {language: [f"{WORDS[split]} {number} {cache.name}"] for language in languages}
            yield Sample(split, f"{split}-{number}", image.getvalue(), "png", {"captions": captions, "group": str(number)})
"""

FILES_RECIPE = """
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from raysys.errors import RunFailed, UserError
from raysys.shards.parts import Skipped
from raysys.shards.sample import Sample
from .words import SKIPPED

SOURCE = "Expected is lines.txt."
LANGUAGES = AVAILABLE = ("en", "de")
CAPTION_COLUMNS = ("long", "short")

@dataclass(frozen=True)
class Lines:
    name: str
    split: str
    lines: tuple[str, ...]

    def __call__(self):
        for line in self.lines:
            if line.startswith(self.split):
                yield Sample(self.split, line, None, metadata={"captions": {"en": [line]}})
            else:
                yield Skipped(SKIPPED, f"lines.txt: {line}")

def parts(source, *, languages, shards, seed, caption_columns=()):
    lines = tuple(Path(source, "lines.txt").read_text().split())
    split = lambda name: [Lines(f"{name} {lines[i::shards]} {caption_columns}", name, lines[i::shards]) for i in range(shards)]
    return {name: split(name) for name in ("train", "test")}
"""

PLAIN_RECIPE = """
LANGUAGES = AVAILABLE = ("de", "fr")

def files(cache, *, languages, seed):
    for language in languages:
        yield f"en-{language}.tsv", f"{cache.name}\\t{language}\\n".encode()
"""


@pytest.fixture(autouse=True)
def recipes(tmp_path, monkeypatch):
    """A folder of recipes with one small one; the package of recipes is loaded anew from there."""
    folder = tmp_path / "datasets"
    (folder / "tiny").mkdir(parents=True)
    (folder / "tiny" / "recipe.py").write_text(RECIPE)
    (folder / "tiny" / "words.py").write_text("WORDS = {'train': 'one', 'test': 'other'}")
    (folder / "files").mkdir()
    (folder / "files" / "recipe.py").write_text(FILES_RECIPE)
    (folder / "files" / "words.py").write_text("SKIPPED = 'of another split'")
    (folder / "plain").mkdir()
    (folder / "plain" / "recipe.py").write_text(PLAIN_RECIPE)
    (folder / "broken").mkdir()
    (folder / "broken" / "recipe.py").write_text("import no_such_package_anywhere")
    (folder / "common").mkdir()
    monkeypatch.setattr(prepare, "RECIPES", folder)
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "raysys_datasets"}
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "raysys_datasets"]:
        del sys.modules[name]
    sys.modules.update(kept)


def settings(tmp_path, **values) -> prepare.PrepareSettings:
    return prepare.PrepareSettings(**{"dataset": "tiny", "out": str(tmp_path / "data" / "tiny"), **values})


def test_writes_shards_and_manifests_and_prints_counts(tmp_path, capsys):
    manifests = prepare.prepare(settings(tmp_path, shards=2))
    out = tmp_path / "data" / "tiny"
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*")) == [
        f"{split}/{name}" for split in ("test", "train") for name in ("000000.tar", "000001.tar", "manifest.parquet")
    ]
    storage = Storage()
    for split, manifest in manifests.items():
        stored = Manifest.load(storage, str(out / split))
        assert stored.fingerprint == manifest.fingerprint
        assert sorted(sample.key for sample in read_samples(storage, stored, range(5))) == [f"{split}-{number}" for number in range(5)]
    printed = capsys.readouterr().out
    assert f"{out}/train: 5 samples in 2 shards; de 5 en 5" in printed
    assert f"python jobs/shards.py inspect {out}" in printed


def test_the_cache_is_shared_beside_the_data_unless_given(tmp_path):
    def words(**values) -> str:
        manifest = prepare.prepare(settings(tmp_path, **values))["train"]
        return read_samples(Storage(), manifest, [0])[0].members["json"].decode()

    assert "one 0 .cache" in words()
    assert "one 0 elsewhere" in words(cache=tmp_path / "elsewhere")


def test_what_is_no_set_of_samples_is_written_as_it_is(tmp_path, capsys):
    out = tmp_path / "data" / "plain"
    assert prepare.prepare(settings(tmp_path, dataset="plain", out=str(out))) == {}
    assert {path.name: path.read_text() for path in out.iterdir()} == {"en-de.tsv": ".cache\tde\n", "en-fr.tsv": ".cache\tfr\n"}
    assert capsys.readouterr().out == f"{out}/en-de.tsv: 1 lines\n{out}/en-fr.tsv: 1 lines\n"
    prepare.prepare(settings(tmp_path, dataset="plain", out=str(tmp_path / "some"), languages=("fra",)))
    assert [path.name for path in (tmp_path / "some").iterdir()] == ["en-fr.tsv"]


def test_plain_files_on_object_storage(tmp_path, object_store):
    out = f"{object_store.bucket_uri}/prepare-plain"
    prepare.prepare(settings(tmp_path, dataset="plain", out=out, cache=tmp_path / "kept"))
    assert Storage().read(f"{out}/en-de.tsv") == b"kept\tde\n"


@pytest.mark.parametrize(
    ("values", "said"), [({"source": "x"}, "--source: the data set 'plain' gets"), ({"samples": 3}, "--samples: the size of the data set")]
)
def test_settings_that_plain_files_do_not_have(tmp_path, values, said):
    with pytest.raises(UserError, match=said):
        prepare.prepare(settings(tmp_path, dataset="plain", **values))


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    def content(name: str, seed: int) -> list[bytes]:
        prepare.prepare(settings(tmp_path, out=str(tmp_path / name), seed=seed))
        return [path.read_bytes() for path in sorted((tmp_path / name).rglob("*.tar"))]

    assert content("a", 1) == content("b", 1)
    assert content("a", 1) != content("c", 2)


def test_samples_and_languages_reach_the_recipe(tmp_path):
    manifest = prepare.prepare(settings(tmp_path, samples=3, languages=("zh_CN", "pt_BR", "zh-Hans")))["train"]
    assert manifest.languages() == {"pt-BR": 3, "zh-Hans": 3}


def test_all_languages_at_once_reach_the_recipe(tmp_path, recipes):
    code = RECIPE.replace("count=None):", "count=None, multilingual=False):") + "\nTAKES_MULTILINGUAL = True\n"
    (recipes / "tiny" / "recipe.py").write_text(code.replace("in languages}", "in (languages if multilingual else languages[:1])}"))
    for multilingual, counts in ((False, {"de": 5}), (True, {"de": 5, "en": 5})):
        manifests = prepare.prepare(settings(tmp_path, multilingual=multilingual))
        assert manifests["train"].languages() == counts


def test_a_split_of_another_data_set_is_pointed_out(tmp_path, capsys):
    prepare.prepare(settings(tmp_path))
    old = tmp_path / "data" / "tiny" / "old"
    (tmp_path / "data" / "tiny" / "train").rename(old)
    prepare.prepare(settings(tmp_path))
    assert f"note: {old} was there before" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dataset": "tony"}, "there is no data set 'tony' in .*; there are broken, files, plain, tiny"),
        ({"dataset": "common"}, "there is no data set 'common'"),
        ({"dataset": "broken"}, "needs the Python package 'no_such_package_anywhere'; try: pip install"),
        ({"languages": ("fr",)}, "'tiny' has nothing in 'fr'; it has de en pt-BR zh-Hans"),
        ({"languages": ("not a tag",)}, "'not a tag' is not a language tag"),
        ({"source": "somewhere"}, "the data set 'tiny' gets by itself what it is made from"),
        (
            {"caption_columns": ("long",)},
            "--caption-columns: the data set 'tiny' has no column 'long' of captions; its captions lie in one place",
        ),
        ({"dataset": "files"}, r"'files' is made from files you download; name their folder with --source\. Expected is lines\.txt"),
        ({"dataset": "files", "source": ".", "samples": 3}, "--samples: the size of the data set 'files' is that of its files"),
        ({"multilingual": True}, "--multilingual: the pictures of the data set 'tiny' have the languages that they have"),
        ({"dataset": "files", "source": ".", "multilingual": True}, "--multilingual: the pictures of the data set 'files'"),
        ({"prose": True}, "--prose: the data set 'tiny' is not made from running text"),
        ({"dataset": "files", "source": ".", "caption_columns": ("odd",)}, "has no column 'odd' of captions; it has long short"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(tmp_path, values, message):
    with pytest.raises(UserError, match=message):
        prepare.prepare(settings(tmp_path, **values))
    assert not (tmp_path / "data").exists()


@pytest.fixture
def source(tmp_path) -> Path:
    """What the recipe `files` reads."""
    folder = tmp_path / "downloaded"
    folder.mkdir()
    (folder / "lines.txt").write_text("train1 test1 train2 other train3")
    return folder


def from_files(tmp_path, source, **values) -> prepare.PrepareSettings:
    return settings(tmp_path, **{"dataset": "files", "source": str(source), "shards": 2, **values})


def test_downloaded_files_become_shards_on_ray(tmp_path, source, capsys, ray_session):
    manifests = prepare.prepare(from_files(tmp_path, source))
    out = tmp_path / "data" / "tiny"
    assert {split: manifest.table["key"].to_pylist() for split, manifest in manifests.items()} == {
        "train": ["train1", "train2", "train3"], "test": ["test1"],
    }  # fmt: skip
    printed = capsys.readouterr().out
    assert f"{out}/train: 5 records read, 3 samples written, 2 records skipped\n  2 × of another split; the first: lines.txt: " in printed
    assert f"{out}/train: 3 samples in 1 shards; en 3" in printed
    assert f"{out}/test: 5 records read, 1 samples written, 4 records skipped" in printed
    prepare.prepare(from_files(tmp_path, source))
    assert f"{out}/train: 2 of 2 parts are there already" in capsys.readouterr().out
    prepare.prepare(from_files(tmp_path, source, caption_columns=("short",)))
    assert "parts are there already" not in capsys.readouterr().out


def test_no_sample_at_all_is_a_failure(tmp_path, source, ray_session):
    (source / "lines.txt").write_text("nothing of use")
    with pytest.raises(
        RunFailed, match=r"nothing was written into .*tiny: not one record in .*downloaded gave a sample\. Expected is lines"
    ):
        prepare.prepare(from_files(tmp_path, source))


@pytest.mark.slow
def test_command_line_of_a_public_data_set(tmp_path):
    """A Ray of its own, the real recipe; a second run finds all done; without a single picture the exit code is 1."""
    folder = tmp_path / "flickr"
    (folder / "flickr30k-images").mkdir(parents=True)
    (folder / "results_20130124.token").write_text("1.jpg#0\tOne .\n1.jpg#1\tThe same .\n2.jpg#0\tTwo .\n3.jpg#0\tNot there .\n")
    for number in (1, 2):
        (folder / "flickr30k-images" / f"{number}.jpg").write_bytes(picture(number, kind="JPEG"))
    arguments = ("flickr30k", "--source", str(folder), "--out", str(tmp_path / "out"), "--shards", "2")
    code, out, err = job("prepare", *arguments)
    assert code == 0, err
    train = f"{tmp_path}/out/train"
    assert f"{train}: 3 records read, 2 samples written, 1 records skipped\n  1 × image missing; the first: {folder}/results_" in out
    assert f"{train}: 2 samples in 2 shards; en 2" in out
    for path in (folder / "flickr30k-images").iterdir():
        path.unlink()
    code, out, err = job("prepare", *arguments[:-1], "1")
    assert code == 1
    assert "3 × image missing" in out
    assert err.strip().splitlines()[-1].startswith(f"failed: nothing was written into {tmp_path}/out: not one record")
    assert not list((tmp_path / "out").rglob("*.tar"))


def test_command_line_without_source():
    code, _, err = job("prepare", "coco", "--out", "unused")
    assert code == 2
    assert err.startswith("error: the data set 'coco' is made from files you download; name their folder with --source. Expected is COCO")


@pytest.fixture
def real_recipes(recipes, monkeypatch):
    monkeypatch.setattr(prepare, "RECIPES", ROOT / "datasets")


def test_recipes_of_several_files_reach_the_workers(tmp_path, real_recipes, ray_session, capsys):
    """WIT's rows are sorted and its pictures fetched in other processes, which have no such package to import."""
    files = tmp_path / "wit"
    files.mkdir()
    rows = prepare.load_recipe("wit") and sys.modules["raysys_datasets.wit.rows"]
    row = dict.fromkeys(rows.COLUMNS, "") | {"language": "de", "image_url": "http://127.0.0.1:9/a.jpg"}
    row["caption_reference_description"] = "Ein Haus"
    lines = ["\t".join(rows.COLUMNS), "\t".join(row.values())]
    (files / "wit_v1.train.all-00000-of-00010.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    with pytest.raises(RunFailed, match="nothing was written"):
        prepare.prepare(settings(tmp_path, dataset="wit", source=str(files)))
    assert "1 × private address; the first: wit_v1.train.all-00000-of-00010.tsv.gz row 1" in capsys.readouterr().out
    (files / "images").mkdir()
    (files / "images" / "a.jpg").write_bytes(picture(1, kind="JPEG"))
    assert prepare.prepare(settings(tmp_path, dataset="wit", source=str(files)))["train"].languages() == {"de": 1}


def test_command_line_without_network(tmp_path):
    """One sentence and exit code 2, from the real command; npm is one that reaches nothing."""
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\nexit 1\n")
    npm.chmod(0o755)
    command = [sys.executable, "jobs/prepare.py", "emoji", "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": f"{npm.parent}:/bin:/usr/bin"}, capture_output=True, text=True)
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: cldr-annotations-full@48.2.0 and 8 more packages could not be fetched: the network")
    assert last.endswith("`make train DATA=shapes` needs no network")
    assert not (tmp_path / "out").exists()
