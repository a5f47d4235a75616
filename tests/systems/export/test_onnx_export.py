"""ONNX Runtime gives the vectors of the encoder, for any number of sentences and pictures of any length and size."""

import json
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import torch

from raysys.errors import RunFailed
from raysys.systems.export import agreement, onnx_export
from raysys.systems.export.agreement import SENTENCES, pictures
from raysys.systems.export.onnx_export import ImageGraph, TextGraph, export_onnx, largest_difference
from raysys.systems.export.standalone.onnx_encoder import OnnxEncoder
from tests.systems.export.encoders import make

ENCODE = """
import io, json, sys
import numpy as np
from PIL import Image
sys.path.insert(0, sys.argv[1])
from raysys_onnx_encoder import OnnxEncoder
encoder = OnnxEncoder()
texts = json.load(open(sys.argv[2]))
found = {
    "texts": encoder.encode_texts(texts),
    "none": encoder.encode_texts([]),
    "captions": encoder.encode_captions_for_images(texts),
    "images": encoder.encode_images([Image.open(name) for name in sys.argv[4:]]),
    "no_images": encoder.encode_images([]),
}
assert "torch" not in sys.modules and "transformers" not in sys.modules
np.savez(sys.argv[3], **found)
"""


@pytest.mark.parametrize(
    "kind", ["transformer", "trigrams", pytest.param("vit", marks=pytest.mark.slow), pytest.param("cls", marks=pytest.mark.slow)]
)
def test_graphs_agree_over_batches_and_lengths(exported, kind):
    encoder, folder, measured = exported(kind)
    assert measured.differences["onnx"] <= 1e-5
    graph, longest = TextGraph(encoder.system).eval(), encoder.system.text.settings.form.longest
    session = onnxruntime.InferenceSession(folder / "onnx" / "text.onnx")
    names = [output.name for output in session.get_outputs()]
    assert names == graph.outputs == (["caption", "image_caption"] if kind in ("transformer", "vit") else ["caption"])
    generator = torch.Generator().manual_seed(0)
    for rows in (1, 2, 7, 33):
        for length in (1, 2, longest - 1, longest):
            ids = torch.randint(0, 260, (rows, length), generator=generator)
            mask = (torch.arange(length)[None] < torch.randint(1, length + 1, (rows, 1), generator=generator)).long()
            with torch.inference_mode():
                expected = graph(ids, mask)
            for one, found in zip(expected, session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}), strict=True):
                np.testing.assert_allclose(found, one.numpy(), atol=1e-5)
    session, graph = onnxruntime.InferenceSession(folder / "onnx" / "image.onnx"), ImageGraph(encoder.system).eval()
    for rows in (1, 2, 9):
        pixels = torch.randint(0, 256, (rows, 3, 32, 32), dtype=torch.uint8, generator=generator)
        with torch.inference_mode():
            expected = graph(pixels)
        np.testing.assert_allclose(session.run(None, {"pixels": pixels.numpy()})[0], expected.numpy(), atol=1e-5)


def test_the_two_heads_give_different_vectors(exported):
    encoder, folder, _ = exported("transformer")
    written = OnnxEncoder(folder / "onnx")
    texts, captions = written.encode_texts(SENTENCES), written.encode_captions_for_images(SENTENCES)
    assert np.abs(texts - captions).max() > 0.01
    np.testing.assert_allclose(captions, encoder.encode_captions_for_images(SENTENCES), atol=1e-5)


def test_the_folder_alone_encodes_in_a_process_without_raysys(exported, tmp_path, without_raysys):
    encoder, folder, _ = exported("trigrams")
    (tmp_path / "texts.json").write_text(json.dumps(SENTENCES))
    files = []
    for number, picture in enumerate(pictures(32)):
        files.append(tmp_path / f"{number}.picture")
        files[-1].write_bytes(picture)
    command = [sys.executable, "-c", ENCODE, folder / "onnx", tmp_path / "texts.json", tmp_path / "found.npz", *files]
    done = subprocess.run(command, capture_output=True, text=True, env=without_raysys, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "found.npz")
    np.testing.assert_allclose(found["texts"], encoder.encode_texts(SENTENCES), atol=1e-5)
    np.testing.assert_allclose(found["captions"], encoder.encode_captions_for_images(SENTENCES), atol=1e-5)
    assert (found["images"] * encoder.encode_images(pictures(32))).sum(axis=1).min() > 0.9999
    assert found["none"].shape == found["no_images"].shape == (0, 16)


@pytest.mark.slow
def test_text_alone_and_weights_too_large_for_one_file(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_export, "LARGEST_FILE", 1000)
    encoder = make("text-only", tmp_path / "network")
    assert export_onnx(encoder, tmp_path / "onnx") <= 1e-5
    assert (tmp_path / "onnx" / "text.onnx.data").stat().st_size > 4 * 32 * 200
    assert not (tmp_path / "onnx" / "image.onnx").exists()
    with pytest.raises(ValueError, match="trained without images"):
        OnnxEncoder(tmp_path / "onnx").encode_images([])


def test_an_export_that_differs_is_refused(exported, tmp_path):
    _, folder, _ = exported("transformer")
    other = make("transformer", tmp_path)
    with torch.no_grad():
        other.system.image_head.dense.bias[0] += 0.01
    with pytest.raises(RunFailed, match=r"image\.onnx: differs from the trained encoder by \d\.\de-\d\d, more than 1e-05"):
        largest_difference(other, folder / "onnx")


def test_tolerance_is_that_of_rounding():
    one = np.eye(2, dtype=np.float32)
    assert agreement.difference("x", one, one + 5e-6) == pytest.approx(5e-6, rel=0.1)
    for other in (one + 2e-5, one * np.nan, one[:1]):
        with pytest.raises(RunFailed, match="the export is not usable"):
            agreement.difference("x", one, other)
