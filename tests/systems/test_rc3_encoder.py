"""RC³ and its rivals as encoders of sentences: saved, loaded, and read by transformers alone."""

import runpy

import numpy as np
import pytest
import torch

from raysys.data.images import ImagePreprocessorSettings
from raysys.errors import UserError
from raysys.models.visual_mbart import VisualMBartSettings
from raysys.runs.export import write_formats
from raysys.systems.build import make_system
from raysys.systems.encoder import Encoder
from raysys.systems.export.model_card import FILE, model_card
from raysys.systems.rc3.names import RC3_TITLES
from raysys.systems.rc3.settings import Rc3ModelSettings, Rc3ObjectiveSettings
from tests.data.rc3_worlds import LANGUAGES, SIZE, tokenizer

TEXTS, TAGS = ["the circle number 3 0", "das Quadrat Nummer 4 1", "heart番号7 0"], ["en", "de", "ja"]


def encoder_of(system: str) -> Encoder:
    sizes = {"size": 16, "layers": 1, "decoder_layers": 1, "heads": 2, "feed_forward": 32, "dropout": 0.1, "max_tokens": 16}
    network = VisualMBartSettings(**sizes, vocabulary_size=len(tokenizer()), region_size=SIZE, patch=8, image_size=16)
    torch.manual_seed(3)
    built = make_system(system, Rc3ModelSettings(network=network), Rc3ObjectiveSettings(), len(LANGUAGES))
    info = {"run": "tiny", "system": system, "step": 2, "languages": list(LANGUAGES), "data_fingerprint": "f00d"}
    return Encoder(built, tokenizer(), ImagePreprocessorSettings(size=16), info)


@pytest.mark.parametrize("system", ["rc3", "m3p", "memad"])
def test_it_comes_back_with_the_same_vectors_and_its_card_shows_how_to_use_it(system, tmp_path, monkeypatch):
    encoder = encoder_of(system)
    measured = write_formats(encoder, tmp_path, ("transformers",))
    assert measured.differences["transformers"] <= 1e-5
    loaded = Encoder.load(tmp_path)
    vectors = encoder.encode_texts(TEXTS, TAGS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(loaded.encode_texts(TEXTS, TAGS), vectors, atol=1e-6)
    card = model_card(encoder, [], {}, measured, None)
    assert RC3_TITLES[system] in card
    (tmp_path / FILE).write_text(card)
    monkeypatch.chdir(tmp_path)
    for block in card.split("```python")[1:]:
        code = block.partition("```")[0]
        (tmp_path / "example.py").write_text(code)
        found = runpy.run_path(str(tmp_path / "example.py"))["sentences"]
        expected = encoder.encode_texts(["a red apple", "ein roter Apfel"], [LANGUAGES[0], LANGUAGES[-1]])
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-5)


def test_the_language_of_a_sentence_counts_and_has_to_be_known():
    encoder = encoder_of("rc3")
    one, other = encoder.encode_texts(TEXTS[:1] * 2, ["en", "de"])
    assert np.abs(one - other).max() > 1e-3
    with pytest.raises(UserError, match="reads each language by itself: say in which each text is"):
        encoder.encode_texts(TEXTS)
    with pytest.raises(UserError, match="knows no sw; its languages are en, de, fr, ja"):
        encoder.encode_texts(TEXTS, ["en", "sw", "ja"])


def test_an_export_with_other_weights_is_refused(tmp_path):
    encoder_of("rc3").save(tmp_path)
    (tmp_path / "text" / "visual.safetensors").unlink()
    with pytest.raises(UserError, match=r"the network in .* cannot be read"):
        Encoder.load(tmp_path)
