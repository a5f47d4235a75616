"""Recipes for downloaded files give the same shards in Ray's processes, which do not know the folder `datasets/`, as in threads."""

import pickle
from pathlib import Path

import pytest

from raysys.shards.parts import write_parts
from raysys.storage import Storage
from tests.datasets.iglue_files import put, put_lmdb, record, row
from tests.datasets.recipes import recipe_module

LANGUAGES = {"multi30k": ("en", "de"), "wikimatrix": ("en", "de"), "ordered_text": ("en",), "iglue": ("en",)}


def source(name: str, folder: Path) -> Path:
    if name == "multi30k":
        put(folder, "train.en", "one\n\nthree\n")
        put(folder, "train.de", "eins\nzwei\n\n")
    elif name == "wikimatrix":
        put(folder, "WikiMatrix.de-en.tsv", "".join(f"1.1\tSatz {n}\tsentence {n}\n" for n in range(200)) + "bad\n")
    elif name == "ordered_text":
        put(folder, "a.txt", "".join(f"sentence {n}\n" for n in range(600)) + "\nalone\n")
    else:
        put_lmdb(folder / "a.lmdb", {str(n): pickle.dumps(record(n)) for n in range(4)} | {"bad": b""})
        put(folder, "b.tsv", "\n".join(row(str(n), n) for n in range(4)))
        put(folder, "nlvr2/annotations/dev.jsonl", [{"sentence": f"{n}", "identifier": f"dev-{n}-0-0", "label": "True"} for n in range(4)])
    return folder


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_same_on_ray_and_in_threads(name, tmp_path, monkeypatch, ray_session):
    recipe = recipe_module(f"{name}.recipe")
    monkeypatch.chdir(tmp_path)  # Ray's processes work elsewhere
    source(name, tmp_path / "source")

    def write(out: str) -> tuple[dict, dict]:
        splits = recipe.parts("source", languages=LANGUAGES[name], shards=2, seed=0)
        counts = {split: write_parts(parts, f"{out}/{split}", Storage(), log=lambda line: None) for split, parts in splits.items()}
        return counts, {str(path.relative_to(out)): path.read_bytes() for path in Path(out).rglob("*.tar")}

    on_ray = write("ray")
    monkeypatch.setattr(ray_session, "is_initialized", lambda: False)
    assert write("threads") == on_ray
    assert sum(count.written for count in on_ray[0].values()) > 1
    assert (
        sum(count.skipped.total() for count in on_ray[0].values()) == {"multi30k": 2, "wikimatrix": 1, "ordered_text": 1, "iglue": 1}[name]
    )
