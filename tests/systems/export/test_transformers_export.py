"""Folders that transformers loads by itself: every tensor, and the same pixels as nearly as Pillow allows."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

from raysys.errors import RunFailed
from raysys.systems.encoder import Encoder
from raysys.systems.export import transformers_export
from raysys.systems.export.agreement import SENTENCES, pictures, same_tensors
from raysys.systems.export.image_folder import network_arguments, processor_arguments
from raysys.systems.export.transformers_export import export_transformers


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    measured = export_transformers(tiny, folder)
    assert measured.difference < 1e-6
    if tiny.has_images:
        assert measured.picture_cosine > (0.9999 if tiny.preprocess.settings.fit == "pad" else 0.99)
    return folder


def test_every_tensor_is_that_of_the_source(tiny, folder):
    state = tiny.system.state_dict()
    text = AutoModel.from_pretrained(folder / "text", add_pooling_layer=False).state_dict()
    found = {f"text.bert.{name}": tensor for name, tensor in text.items()} | load_file(folder / "heads.safetensors")
    if tiny.has_images:
        arguments = network_arguments(tiny.system.image)
        prefix = "image.network." if "trust_remote_code" in arguments else "image.network.model."
        image = AutoModel.from_pretrained(folder / "image", **arguments).state_dict()
        found |= {f"{prefix}{name}": tensor for name, tensor in image.items()}
    assert found.keys() == state.keys()
    for name, tensor in state.items():
        assert tensor.equal(found[name]), name


def test_the_tokenizer_gives_the_ids_of_training(tiny, folder):
    tokenizer = AutoTokenizer.from_pretrained(folder / "text")
    assert tokenizer(list(SENTENCES), truncation=True)["input_ids"] == tiny.tokenizer(list(SENTENCES), truncation=True)["input_ids"]


def test_the_image_processor_gives_the_pixels_of_training(tiny, folder):
    if not tiny.has_images:
        return
    code = processor_arguments(tiny.preprocess.settings)
    processor = AutoImageProcessor.from_pretrained(folder / "image", **code)
    shown = [data for data in pictures(32) if code or Image.open(io.BytesIO(data)).mode == "RGB"]
    found = processor([Image.open(io.BytesIO(data)) for data in shown], return_tensors="pt")["pixel_values"]
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (tiny.system.image.mean, tiny.system.image.std))
    expected = torch.stack([tiny.preprocess(data) for data in shown])
    differences = ((found * std + mean) * 255 - expected).abs()
    # a JPEG is decoded at a smaller size in training; of the rest each value is rounded once more or once less
    assert differences[:2].max() < 1.01
    assert differences.mean() < (0.05 if code else 3)


def test_lite0_is_the_package_s_network(trigrams, tmp_path):
    trigrams.save(tmp_path)
    network = AutoModel.from_pretrained(tmp_path / "image", trust_remote_code=True).eval()
    for size in (32, 64, 96, 224):
        pixels = torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(size))
        with torch.inference_mode():
            expected = trigrams.system.image.network.eval()(pixels)
            torch.testing.assert_close(network(pixels).pooler_output, expected, atol=1e-5, rtol=1e-5)


def test_a_tensor_that_was_lost_is_noticed(trigrams, tmp_path, monkeypatch):
    save = Encoder.save

    def spoilt(self, folder):
        save(self, folder)
        heads = load_file(folder / "heads.safetensors")
        heads["image_head.mean"][0] += 1e-6
        save_file(heads, folder / "heads.safetensors")

    monkeypatch.setattr(transformers_export.Encoder, "save", spoilt)
    with pytest.raises(RunFailed, match=r"the export: the tensor image_head\.mean is not that of the trained system"):
        export_transformers(trigrams, tmp_path)
    with pytest.raises(RunFailed, match=r"has other tensors than the trained system: \['b'\]"):
        same_tensors("x", {"a": torch.ones(1), "b": torch.ones(1)}, {"a": torch.ones(1)})


def test_normalisation_is_kept_whatever_processor_there_is(tiny, folder):
    if tiny.has_images:
        loaded = Encoder.load(folder)
        assert loaded.system.image.mean == tuple(tiny.system.image.mean)
        assert loaded.system.image.std == tuple(tiny.system.image.std)
        np.testing.assert_array_equal(loaded.encode_images(pictures(32)), tiny.encode_images(pictures(32)))
