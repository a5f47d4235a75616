"""`jobs/prepare.py`: from a recipe to shards with a manifest, and what it says when that cannot be."""

import subprocess
import sys
from pathlib import Path

import pytest

from jobs import prepare
from raysys.errors import UserError
from raysys.shards.manifest import Manifest
from raysys.shards.reader import read_samples
from raysys.storage import Storage

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


@pytest.fixture(autouse=True)
def recipes(tmp_path, monkeypatch):
    """A folder of recipes with one small one; the package of recipes is loaded anew from there."""
    folder = tmp_path / "datasets"
    (folder / "tiny").mkdir(parents=True)
    (folder / "tiny" / "recipe.py").write_text(RECIPE)
    (folder / "tiny" / "words.py").write_text("WORDS = {'train': 'one', 'test': 'other'}")
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


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    def content(name: str, seed: int) -> list[bytes]:
        prepare.prepare(settings(tmp_path, out=str(tmp_path / name), seed=seed))
        return [path.read_bytes() for path in sorted((tmp_path / name).rglob("*.tar"))]

    assert content("a", 1) == content("b", 1)
    assert content("a", 1) != content("c", 2)


def test_samples_and_languages_reach_the_recipe(tmp_path):
    manifest = prepare.prepare(settings(tmp_path, samples=3, languages=("zh_CN", "pt_BR", "zh-Hans")))["train"]
    assert manifest.languages() == {"pt-BR": 3, "zh-Hans": 3}


def test_a_split_of_another_data_set_is_pointed_out(tmp_path, capsys):
    prepare.prepare(settings(tmp_path))
    old = tmp_path / "data" / "tiny" / "old"
    (tmp_path / "data" / "tiny" / "train").rename(old)
    prepare.prepare(settings(tmp_path))
    assert f"note: {old} was there before" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dataset": "tony"}, "there is no data set 'tony' in .*; there are broken, tiny"),
        ({"dataset": "common"}, "there is no data set 'common'"),
        ({"dataset": "broken"}, "needs the Python package 'no_such_package_anywhere'; try: pip install"),
        ({"languages": ("fr",)}, "'tiny' has nothing in 'fr'; it has de en pt-BR zh-Hans"),
        ({"languages": ("not a tag",)}, "'not a tag' is not a language tag"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(tmp_path, values, message):
    with pytest.raises(UserError, match=message):
        prepare.prepare(settings(tmp_path, **values))
    assert not (tmp_path / "data").exists()


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
