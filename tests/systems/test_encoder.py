"""Exports: the same vectors after loading, by us and by transformers alone."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

from raysys.data.images import ImagePreprocessorSettings
from raysys.data.tokenizer import train_tokenizer
from raysys.errors import UserError
from raysys.models.images import ImageModelSettings
from raysys.systems.encoder import Encoder
from tests.shards.tars import picture
from tests.training.worlds import build, model_settings, objective, tiny_backbone

TEXTS = [
    "a red circle",
    "ein sehr langer Satz über drei grüne Dreiecke und ein kleines Quadrat, das niemand je gesehen hat",
    "красный круг",
    "赤い丸",
    "ett",
    "δύο μεγάλα τετράγωνα",
]
PICTURES = [picture(number, size=(32, 32)) for number in range(5)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, 300, max_tokens=12)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return tiny_backbone(tmp_path_factory.mktemp("backbone"))


def make(tokenizer, backbone: str, **weights: float) -> Encoder:
    model = model_settings(backbone, dropout=0.1, frozen=False)
    model = model.model_copy(update={"text": model.text.model_copy(update={"vocabulary_size": len(tokenizer)})})
    system = build(model, objective(**weights))
    torch.manual_seed(11)
    with torch.no_grad():
        for parameter in system.parameters():  # as after training: nothing is at its initial value, biases included
            parameter += 0.05 * torch.randn_like(parameter)
        for name, buffer in system.named_buffers():
            if name.endswith("running_mean"):
                buffer += 0.1
    return Encoder(system, tokenizer, ImagePreprocessorSettings(size=32), {"languages": ["de", "el", "en", "ja", "ru", "sv"], "step": 3})


@pytest.fixture(scope="module")
def encoder(tokenizer, backbone) -> Encoder:
    return make(tokenizer, backbone)


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "export"
    encoder.save(folder)
    return folder


def test_loading_gives_the_same_vectors_and_facts(encoder, folder):
    loaded = Encoder.load(folder)
    assert loaded.info == encoder.info
    assert loaded.has_images
    assert loaded.preprocess.settings == encoder.preprocess.settings
    for method, given in (("encode_texts", TEXTS), ("encode_captions_for_images", TEXTS), ("encode_images", PICTURES)):
        expected, found = getattr(encoder, method)(given), getattr(loaded, method)(given)
        assert expected.shape == (len(given), 16)
        assert expected.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-5)
        np.testing.assert_array_equal(found, expected)
        assert np.abs(expected[0] - expected[1]).max() > 1e-3


def test_every_weight_and_buffer_survives(encoder, folder):
    expected, found = encoder.system.state_dict(), Encoder.load(folder).system.state_dict()
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        assert found[name].equal(tensor), name


def test_an_export_of_a_loaded_export_is_the_same(encoder, folder, tmp_path):
    Encoder.load(folder).save(tmp_path / "again")
    np.testing.assert_array_equal(Encoder.load(tmp_path / "again").encode_images(PICTURES), encoder.encode_images(PICTURES))


def test_transformers_alone_gives_the_pooled_text_vectors(encoder, folder):
    tokenizer, model = AutoTokenizer.from_pretrained(folder / "text"), AutoModel.from_pretrained(folder / "text").eval()
    tokens = tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt")
    assert tokens["input_ids"].shape[1] == 12, "the longest sentence is cut as in training"
    with torch.inference_mode():
        states = model(**tokens).last_hidden_state
        mask = tokens["attention_mask"][:, :, None]
        pooled = (states * mask).sum(dim=1) / mask.sum(dim=1)
        ours = encoder.system.text(tokens["input_ids"], tokens["attention_mask"])[0]
        np.testing.assert_allclose(pooled.numpy(), ours.numpy(), atol=1e-5)
        np.testing.assert_allclose(encoder.system.project_caption(pooled).numpy(), encoder.encode_texts(TEXTS), atol=1e-5)


def test_transformers_alone_gives_the_image_features(encoder, folder):
    processor, model = AutoImageProcessor.from_pretrained(folder / "image"), AutoModel.from_pretrained(folder / "image").eval()
    pixels = np.stack([encoder.preprocess(data).permute(1, 2, 0).numpy() for data in PICTURES])
    inputs = processor(list(pixels), return_tensors="pt")
    assert inputs["pixel_values"].shape == (5, 3, 32, 32)
    with torch.inference_mode():
        features = model(**inputs).pooler_output.flatten(1)
    np.testing.assert_allclose(features.numpy(), encoder.image_features(PICTURES), atol=1e-4)


def test_neither_order_nor_batches_nor_company_matter(encoder):
    expected = encoder.encode_texts(TEXTS)
    order = [3, 0, 5, 1, 4, 2]
    np.testing.assert_allclose(encoder.encode_texts([TEXTS[index] for index in order]), expected[order], atol=1e-5)
    np.testing.assert_allclose(np.concatenate([encoder.encode_texts([text]) for text in TEXTS]), expected, atol=1e-5)
    small = Encoder(encoder.system, encoder.tokenizer, encoder.preprocess.settings, batch_size=2)
    np.testing.assert_allclose(small.encode_texts(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(small.encode_images(PICTURES), encoder.encode_images(PICTURES), atol=1e-5)
    np.testing.assert_allclose(encoder.project_image_features(encoder.image_features(PICTURES)), encoder.encode_images(PICTURES), atol=1e-6)


def test_nothing_gives_no_rows(encoder):
    for method in (encoder.encode_texts, encoder.encode_captions_for_images, encoder.encode_images):
        assert method([]).shape == (0, 16)


def test_without_transitive_loss_sentences_are_compared_as_with_images(tokenizer, backbone, tmp_path):
    encoder = make(tokenizer, backbone, transitive=0)
    np.testing.assert_array_equal(encoder.encode_texts(TEXTS), encoder.encode_captions_for_images(TEXTS))
    encoder.save(tmp_path)
    np.testing.assert_array_equal(Encoder.load(tmp_path).encode_texts(TEXTS), encoder.encode_texts(TEXTS))


def test_a_system_trained_on_text_alone_has_no_images_and_says_so(tokenizer, backbone, tmp_path):
    encoder = make(tokenizer, backbone, transitive=0, image=0, image_caption=0)
    encoder.save(tmp_path)
    loaded = Encoder.load(tmp_path)
    assert not encoder.has_images
    assert not loaded.has_images
    assert not (tmp_path / "image").exists()
    assert loaded.encode_texts(TEXTS).shape == (len(TEXTS), 32)
    np.testing.assert_array_equal(loaded.encode_texts(TEXTS), encoder.encode_texts(TEXTS))
    for method, given in ((loaded.encode_captions_for_images, TEXTS), (loaded.encode_images, PICTURES)):
        with pytest.raises(UserError, match="trained without images"):
            method(given)


def test_a_package_network_is_exported_with_its_weights(tokenizer, backbone, tmp_path):
    model = model_settings(backbone)
    model = model.model_copy(update={"image": ImageModelSettings(backbone="package:efficientnet-lite0", pretrained=False, frozen=True)})
    model = model.model_copy(update={"text": model.text.model_copy(update={"vocabulary_size": len(tokenizer)})})
    encoder = Encoder(build(model, objective()), tokenizer, ImagePreprocessorSettings(size=32))
    encoder.save(tmp_path)
    np.testing.assert_array_equal(Encoder.load(tmp_path).encode_images(PICTURES[:2]), encoder.encode_images(PICTURES[:2]))


def test_what_is_no_export_is_refused(encoder, tmp_path):
    with pytest.raises(UserError, match=r"is not an exported encoder: raysys\.json cannot be read"):
        Encoder.load(tmp_path)
    (tmp_path / "raysys.json").write_text("{")
    with pytest.raises(UserError, match=r"is not an exported encoder: raysys\.json cannot be read"):
        Encoder.load(tmp_path)


@pytest.mark.parametrize(
    ("part", "values"),
    [("objective", {"weights": {"cloze": 0}}), ("objective", {"weights": {"transitive": 0}}), ("model", {"head": {"size": 8}})],
)
def test_weights_that_do_not_fit_the_card_are_refused(encoder, tmp_path, part, values):
    encoder.save(tmp_path)
    card = json.loads((tmp_path / "raysys.json").read_text())
    card[part] |= values
    (tmp_path / "raysys.json").write_text(json.dumps(card))
    with pytest.raises(UserError, match=r"the weights do not fit the settings in raysys\.json"):
        Encoder.load(tmp_path)


@pytest.mark.parametrize("lost", ["heads.safetensors", "text/model.safetensors", "text/tokenizer.json"])
def test_an_export_that_is_not_whole_is_refused(tmp_path, tokenizer, backbone, lost):
    make(tokenizer, backbone).save(tmp_path)
    (tmp_path / lost).unlink()
    with pytest.raises(UserError, match=r"export|tokenizer"):
        Encoder.load(tmp_path)
