"""The model card: facts that hub and people read, and examples that run as they stand."""

import re
import sys

import numpy as np
import pytest
import yaml

from raysys.systems.export.agreement import pictures
from raysys.systems.export.model_card import DataFacts, Measured, model_card, with_scores
from tests.systems.export.encoders import make

DATA = [
    DataFacts("emoji/train", {"de": 4, "no": 2}, {"de": 9, "no": 3}, ("Apache-2.0", "CC-BY-4.0")),
    DataFacts("tuxpaint/train", {"en": 5}, {"en": 5}, ()),
]
TRAINING = {"global batch": 48, "seed": 0}
TABLE = "test\n        R@1\n  tiny  .500"


def front_matter(card: str) -> dict:
    return yaml.safe_load(card.split("---\n")[1])


def examples(card: str) -> dict[str, str]:
    return dict(re.findall(r"### (\S+)\n\n```python\n(.*?)\n```", card, re.DOTALL))


@pytest.mark.parametrize("kind", ["transformer", "trigrams", pytest.param("vit", marks=pytest.mark.slow)])
def test_every_example_runs_and_gives_the_encoder_s_vectors(exported, kind, monkeypatch):
    encoder, folder, measured = exported(kind)
    monkeypatch.chdir(folder)
    jpeg = pictures(32)[-1]
    (folder / "picture.jpg").write_bytes(jpeg)
    texts = encoder.encode_texts(["a red apple", "ein roter Apfel"])
    blocks = examples(model_card(encoder, DATA, TRAINING, measured, None))
    assert list(blocks) == ["raysys", "transformers", "sentence-transformers", "onnx"]
    for name, block in blocks.items():
        monkeypatch.setattr(sys, "path", list(sys.path))
        names: dict = {}
        exec(compile(block, name, "exec"), names)
        np.testing.assert_allclose(names["sentences"], texts, atol=1e-5, err_msg=name)
        if name != "sentence-transformers":
            assert (np.asarray(names["pictures"]) * encoder.encode_images([jpeg])).sum() > 0.99, name
        for module in [module for module in sys.modules if module.startswith("raysys_")]:
            del sys.modules[module]


@pytest.mark.parametrize("kind", ["cls", "text-only"])
def test_examples_of_other_systems(kind, tmp_path, monkeypatch):
    encoder = make(kind, tmp_path / "network")
    encoder.save(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picture.jpg").write_bytes(pictures(32)[-1])
    for name, block in examples(model_card(encoder, [], {}, Measured({"transformers": 0.0}, None), None)).items():
        names: dict = {}
        exec(compile(block, name, "exec"), names)
        np.testing.assert_allclose(names["sentences"], encoder.encode_texts(["a red apple", "ein roter Apfel"]), atol=1e-5)
        assert ("pictures" in names) == encoder.has_images


def test_what_the_hub_reads(trigrams):
    card = model_card(trigrams, DATA, TRAINING, Measured({"transformers": 0.0, "onnx": 1e-6}, 0.99), None)
    front = front_matter(card)
    assert front["language"] == ["de", "el", "en", "ja", "no", "ru"], "Norwegian is not the YAML word for false"
    assert front["license"] == "other"
    assert (front["library_name"], front["pipeline_tag"]) == ("raysys", "sentence-similarity")
    assert "onnx" in front["tags"]
    assert "sentence-transformers" not in front["tags"]
    one = model_card(trigrams, [DataFacts("a", {}, {}, ("GPL-2.0-only",))], {}, Measured({"transformers": 0.0}, 1.0), None)
    assert front_matter(one)["license"] == "gpl-2.0"
    assert "license" not in front_matter(model_card(trigrams, [], {}, Measured({"transformers": 0.0}, 1.0), None))


def test_what_people_read(trigrams):
    card = model_card(trigrams, DATA, TRAINING, Measured({"transformers": 1.5e-7}, 0.98765), TABLE)
    for part in ("# tiny", "`f00d`", "| de | 4 / 9 | 0 / 0 |", "| en | 0 / 0 | 5 / 5 |", "emoji/train: Apache-2.0, CC-BY-4.0"):
        assert part in card
    for part in ("its samples name none", "| global batch | 48 |", "1.5e-07", "0.98765", "character trigrams (50)", "EfficientNet-Lite0"):
        assert part in card
    assert "The data were not at hand" in model_card(trigrams, [], {}, Measured({"transformers": 0.0}, 1.0), None)


def test_scores_are_put_in_later_and_nothing_else_changes(trigrams):
    card = model_card(trigrams, DATA, TRAINING, Measured({"transformers": 0.0}, 1.0), None)
    assert "Not scored yet." in card
    edited = card.replace("## Limits", "My own words.\n\n## Limits")
    scored = with_scores(edited, TABLE)
    assert f"```text\n{TABLE}\n```" in scored
    assert "Not scored yet." not in scored
    assert with_scores(with_scores(scored, "other"), TABLE) == scored
    assert with_scores(scored, None) == edited
    assert with_scores("a card without marks", TABLE) == "a card without marks"
