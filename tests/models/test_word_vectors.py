import numpy as np
import pytest
import torch
from torch import nn

from raysys.data.word_vectors import SkipGramSettings, WordVectors
from raysys.models.word_vectors import LanguageAdapters, MuveSettings, MuveTextEncoder

FOUND = WordVectors(np.array([0, 0, 2]), np.array([5, 7, 5]), np.array([[1.0, 0.0], [0.0, 2.0], [3.0, -1.0]], dtype=np.float32))
"""Language 0 knows tokens 5 and 7, language 1 none, language 2 another token 5."""
SETTINGS = MuveSettings(skip_gram=SkipGramSettings(size=2), hidden_size=3, rows=3)
IDS = torch.tensor([[2, 5, 7, 5, 3], [2, 7, 3, 0, 0], [2, 5, 7, 3, 0], [2, 5, 6, 3, 0], [2, 5, 7, 3, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 0]])
LANGUAGES = torch.tensor([0, 0, 1, 2, 2])
VECTORS = [[[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]], [[0.0, 2.0]], [], [[3.0, -1.0]], [[3.0, -1.0]]]
"""Of the known tokens of each caption, by hand."""


@pytest.fixture
def encoder() -> MuveTextEncoder:
    torch.manual_seed(0)
    made = MuveTextEncoder(SETTINGS, languages=3, vocabulary_size=9)
    made.begin(FOUND)
    return made


def by_hand(encoder: MuveTextEncoder, caption: int) -> list[np.ndarray]:
    """The caption's words after the adapter of its language."""
    language = int(LANGUAGES[caption])
    weight, bias = (part[language].detach().numpy() for part in (encoder.adapters.weight, encoder.adapters.bias))
    return [weight @ np.array(vector) + bias for vector in VECTORS[caption]]


def test_captions_are_the_maximum_over_their_adapted_words(encoder):
    dense, bias = (part.detach().numpy() for part in (encoder.dense.weight, encoder.dense.bias))
    out = encoder(IDS, MASK, LANGUAGES)
    assert out.dtype == torch.float32
    for caption in range(5):
        words = [np.maximum(dense @ word + bias, 0) for word in by_hand(encoder, caption)]
        expected = np.max(words, axis=0) if words else np.zeros(3)
        np.testing.assert_allclose(out[caption].detach().numpy(), expected, rtol=1e-6, atol=1e-7)
    assert out.detach().max(dim=1).values.gt(0).tolist().count(True) >= 3
    assert out[3].equal(out[4]), "token 7 has no vector in language 2"


def test_words_are_the_mean_of_their_adapted_pieces(encoder):
    out = encoder.word_vectors(IDS, MASK, LANGUAGES)
    assert out.dtype == torch.float32
    for caption in range(5):
        words = by_hand(encoder, caption)
        expected = np.mean(words, axis=0) if words else np.zeros(2)
        np.testing.assert_allclose(out[caption].detach().numpy(), expected, rtol=1e-6, atol=1e-7)


def test_captions_depend_on_their_own_words_and_language_alone(encoder):
    together = encoder(IDS, MASK, LANGUAGES)
    for caption in range(5):
        length = int(MASK[caption].sum())
        row = slice(caption, caption + 1)
        alone = encoder(IDS[row, :length], MASK[row, :length], LANGUAGES[row])
        torch.testing.assert_close(alone[0], together[caption])
    padded = torch.where(MASK.bool(), IDS, 5)
    assert encoder(padded, MASK, LANGUAGES).equal(together), "what stands where there is padding does not matter"
    assert not encoder(IDS, MASK, torch.tensor([2, 2, 2, 2, 2]))[0].equal(together[0])


def test_a_caption_without_a_known_word_gives_zeros_and_the_graph_stays_whole(encoder):
    out = encoder(IDS[2:3], MASK[2:3], LANGUAGES[2:3])
    assert out.tolist() == [[0.0, 0.0, 0.0]]
    out.sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.eq(0).all(), name


def test_every_parameter_has_a_gradient_whatever_languages_a_batch_has(encoder):
    encoder(IDS[:1], MASK[:1], LANGUAGES[:1]).sum().backward()
    gradients = {name: parameter.grad for name, parameter in encoder.named_parameters()}
    assert gradients.keys() == {"vectors.weight", "adapters.weight", "adapters.bias", "dense.weight", "dense.bias"}
    assert all(gradient is not None for gradient in gradients.values())
    assert gradients["adapters.weight"][0].abs().sum() > 0
    assert gradients["adapters.weight"][1:].eq(0).all()
    assert gradients["vectors.weight"][[0, 3]].eq(0).all(), "neither unknown tokens nor those of other languages"
    assert gradients["vectors.weight"][1:3].abs().sum() > 0


def test_unknown_tokens_stay_without_a_vector_in_training(encoder):
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        encoder(IDS, MASK, LANGUAGES).sum().backward()
        optimizer.step()
    assert encoder.vectors.weight[0].eq(0).all()
    assert not torch.from_numpy(FOUND.vectors).allclose(encoder.vectors.weight[1:], atol=1e-3)


def test_adapters_equal_one_dense_layer_per_language():
    torch.manual_seed(0)
    adapters, words, languages = LanguageAdapters(4, 6), torch.randn(7, 6), torch.tensor([3, 0, 3, 1, 0, 3, 1])
    out = adapters(words, languages)
    out.square().sum().backward()
    layers = [nn.Linear(6, 6) for _ in range(4)]
    with torch.no_grad():
        for layer, weight, bias in zip(layers, adapters.weight, adapters.bias, strict=True):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
    expected = torch.stack([layers[language](own) for language, own in zip(languages.tolist(), words, strict=True)])
    expected.square().sum().backward()
    torch.testing.assert_close(out, expected)
    for language, layer in enumerate(layers):
        wanted = torch.zeros(6, 6) if layer.weight.grad is None else layer.weight.grad
        torch.testing.assert_close(adapters.weight.grad[language], wanted)
    assert layers[2].weight.grad is None


def test_adapters_begin_as_dense_layers_do():
    torch.manual_seed(0)
    values = LanguageAdapters(3, 100).weight.detach()
    assert values.abs().max() <= 0.1
    assert values.std() == pytest.approx(0.1 / 3**0.5, rel=0.02)


def test_vectors_can_be_kept_as_they_are():
    encoder = MuveTextEncoder(SETTINGS.model_copy(update={"tune_vectors": False}), 3, 9)
    encoder.begin(FOUND)
    encoder(IDS, MASK, LANGUAGES).sum().backward()
    assert encoder.vectors.weight.grad is None
    assert not encoder.vectors.weight.requires_grad
    assert encoder.adapters.weight.grad.abs().sum() > 0


def test_weights_and_table_are_saved_together(encoder):
    again = MuveTextEncoder(SETTINGS, 3, 9)
    again.load_state_dict(encoder.state_dict())
    assert again(IDS, MASK, LANGUAGES).equal(encoder(IDS, MASK, LANGUAGES))


def test_half_precision_gives_float32(encoder):
    exact = encoder(IDS, MASK, LANGUAGES)
    encoder.bfloat16()
    out = encoder(IDS, MASK, LANGUAGES)
    assert out.dtype == encoder.word_vectors(IDS, MASK, LANGUAGES).dtype == torch.float32
    torch.testing.assert_close(out, exact, atol=0.05, rtol=0.05)
    assert encoder.rows.dtype == torch.int32


@pytest.mark.parametrize("changed", [{"rows": 2}, {"skip_gram": SkipGramSettings(size=3)}])
def test_vectors_that_do_not_fit_are_refused(changed):
    encoder = MuveTextEncoder(SETTINGS.model_copy(update=changed), 3, 9)
    with pytest.raises(ValueError, match=r"word vectors of shape \(3, 2\), but the model's settings say"):
        encoder.begin(FOUND)
