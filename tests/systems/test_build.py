"""Every system by its name: what its objective leaves out, and its encoder saved, loaded and exported."""

from typing import get_args

import numpy as np
import pytest
import torch

from raysys.data.images import ImagePreprocessorSettings
from raysys.data.tokenizer import train_tokenizer
from raysys.errors import UserError
from raysys.runs.export import write_formats
from raysys.runs.settings import GlobetrotterSettings
from raysys.systems.build import make_system
from raysys.systems.encoder import Encoder
from raysys.systems.export.model_card import model_card
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.lample_conneau import LampleConneau
from raysys.systems.muve import Muve
from raysys.systems.settings import TITLES, ModelSettings, ObjectiveSettings, SystemName, objective_of
from raysys.systems.supervised import Supervised
from tests.shards.tars import picture
from tests.training.worlds import tiny_backbone

NAMES = get_args(SystemName)
LANGUAGES = ["de", "en", "ru"]
TEXTS, TAGS = ["ein roter Apfel", "a red apple", "красный круг"], LANGUAGES
CLASSES = {"supervised": Supervised, "muve": Muve, "lample-conneau": LampleConneau}


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return tiny_backbone(tmp_path_factory.mktemp("backbone"))


@pytest.fixture(scope="module")
def encoders(backbone) -> dict[str, Encoder]:
    tokenizer = train_tokenizer(TEXTS * 3, 300, max_tokens=12)
    text = {"hidden_size": 32, "layers": 1, "heads": 2, "intermediate_size": 48, "max_tokens": 12, "vocabulary_size": len(tokenizer)}
    muve = {"rows": 40, "hidden_size": 24, "skip_gram": {"size": 16}}
    model = ModelSettings.model_validate({"text": text, "image": {"backbone": backbone}, "head": {"size": 16}, "muve": muve})
    found = {}
    for name in NAMES:
        torch.manual_seed(5)
        system = make_system(name, model, objective_of(name, ObjectiveSettings()), len(LANGUAGES))
        info = {"run": "tiny", "system": name, "step": 3, "languages": LANGUAGES, "data_fingerprint": "f00d"}
        found[name] = Encoder(system, tokenizer, ImagePreprocessorSettings(size=32), info)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_name_builds_its_system(encoders, name):
    system = encoders[name].system
    assert type(system) is CLASSES.get(name, Globetrotter)
    assert system.uses_images == (name not in ("text-only", "lample-conneau"))
    assert name in TITLES


@pytest.mark.parametrize("name", NAMES)
def test_an_encoder_comes_back_with_the_same_vectors(encoders, name, tmp_path):
    encoder = encoders[name]
    measured = write_formats(encoder, tmp_path, ("transformers",))
    assert measured.differences["transformers"] <= 1e-5
    loaded = Encoder.load(tmp_path)
    np.testing.assert_allclose(loaded.encode_texts(TEXTS, TAGS), encoder.encode_texts(TEXTS, TAGS), atol=1e-6)
    np.testing.assert_allclose(loaded.word_vectors(TEXTS, TAGS), encoder.word_vectors(TEXTS, TAGS), atol=1e-6)
    if encoder.has_images:
        np.testing.assert_allclose(loaded.encode_images([picture(1)]), encoder.encode_images([picture(1)]), atol=1e-6)
    card = model_card(encoder, [], {}, measured, None)
    assert TITLES[name] in card
    blocks = card.split("```python")[1:]
    assert len(blocks) == (1 if name in ("muve", "lample-conneau") else 2)


@pytest.mark.parametrize("name", ["muve", "lample-conneau"])
def test_formats_that_cannot_hold_a_system_are_refused(encoders, name, tmp_path):
    with pytest.raises(UserError, match="onnx: written of Globetrotter alone"):
        write_formats(encoders[name], tmp_path, ("transformers", "onnx"))


def test_a_word_is_the_mean_of_its_pieces_without_special_tokens(encoders):
    encoder = encoders["globetrotter"]
    ids = encoder.tokenizer("ein roter Apfel", add_special_tokens=False)["input_ids"]
    expected = encoder.system.text.word_embeddings.weight[ids].mean(dim=0)
    np.testing.assert_allclose(encoder.word_vectors(["ein roter Apfel"])[0], expected.detach().numpy(), atol=1e-6)


def test_word_vectors_of_each_language_need_the_language(encoders):
    encoder = encoders["muve"]
    with pytest.raises(UserError, match=r"say in which each text is \(de, en, ru\)"):
        encoder.encode_texts(TEXTS)
    with pytest.raises(UserError, match=r"knows no fr; its languages are de, en, ru"):
        encoder.encode_texts(TEXTS, ["de", "fr", "en"])
    assert encoders["globetrotter"].encode_texts(TEXTS, ["xx", "yy", "zz"]).shape == (3, 16)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("globetrotter", {"transitive": 1, "image": 2, "image_caption": 3, "cloze": 4}),
        ("without-transitive", {"transitive": 0, "image": 2, "image_caption": 3, "cloze": 4}),
        ("without-image", {"transitive": 1, "image": 0, "image_caption": 3, "cloze": 4}),
        ("without-image-caption", {"transitive": 1, "image": 2, "image_caption": 0, "cloze": 4}),
        ("without-cloze", {"transitive": 1, "image": 2, "image_caption": 3, "cloze": 0}),
        ("text-only", {"transitive": 0, "image": 0, "image_caption": 0, "cloze": 4}),
        ("supervised", {"transitive": 1, "image": 2, "image_caption": 3, "cloze": 4}),
    ],
)
def test_ablations_change_one_weight(name, weights):
    given = ObjectiveSettings.model_validate({"weights": {"transitive": 1, "image": 2, "image_caption": 3, "cloze": 4}, "margin": 0.3})
    found = objective_of(name, given)
    assert found.weights.model_dump() == weights
    assert found.margin == 0.3


def test_what_is_trained_without_pictures_keeps_no_vectors_of_them():
    settings = {
        "data": {"train": ["x"], "cached_views": 2},
        "model": {"image": {"frozen": True}, "image_head": "whitened"},
        "training": {"learning_rate_factors": {"image_head": 0.1, "text": 0.5}},
    }
    for name in ("text-only", "lample-conneau"):
        found = GlobetrotterSettings.model_validate(settings | {"system": name}).resolved()
        assert (found.data.cached_views, found.model.image_head) == (0, "projection")
        assert found.training.learning_rate_factors == {"text": 0.5}
        assert found.resolved() == found
        assert not found.uses_images
    seen = GlobetrotterSettings.model_validate(settings | {"system": "muve"}).resolved()
    assert (seen.data.cached_views, seen.model.image_head) == (2, "whitened")


def test_an_objective_with_nothing_left_is_refused():
    alone = {"weights": {"transitive": 1, "image": 0, "image_caption": 0, "cloze": 0}}
    settings = GlobetrotterSettings.model_validate({"data": {"train": ["x"]}, "system": "without-transitive", "objective": alone})
    with pytest.raises(UserError, match="nothing to minimise"):
        settings.resolved()
