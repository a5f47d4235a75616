"""mBARTs with random weights and pretrained ones, whole and cut down."""

import math

import pytest
import torch
from transformers import BertConfig, BertModel, MBartConfig, MBartForConditionalGeneration

from raysys.errors import UserError
from raysys.models.visual_mbart import VisualMBart
from tests.models.visual_networks import SETTINGS, network, texts


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory) -> str:
    """A small mBART as its makers might have left it: other positions, dropout and preferences for generation than ours."""
    torch.manual_seed(7)
    config = MBartConfig(
        vocab_size=90,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=40,
        scale_embedding=True,
        init_std=0.3,
        decoder_start_token_id=70,
    )
    model = MBartForConditionalGeneration(config)
    model.final_logits_bias.normal_()
    model.generation_config.num_beams = 7
    folder = str(tmp_path_factory.mktemp("mbart"))
    model.save_pretrained(folder)
    return folder


KEPT = [*range(8), *range(20, 60), *range(77, 90)]


def test_a_pretrained_network_computes_what_it_did(pretrained):
    model = MBartForConditionalGeneration.from_pretrained(pretrained).eval()
    net = VisualMBart(SETTINGS.model_copy(update={"pretrained": pretrained}))
    assert net.training
    assert net.mbart.config.dropout == SETTINGS.dropout
    assert net.settings.vocabulary_size == 90
    (ids, mask), (target, target_mask) = texts(9, 12), texts(6, 6)
    encoded = net.eval().encode(ids, mask)
    expected = model(input_ids=ids, attention_mask=mask, decoder_input_ids=target)
    assert encoded.states[mask.bool()].equal(expected.encoder_last_hidden_state[mask.bool()])
    assert torch.allclose(net.word_logits(net.decode(encoded, target, target_mask)), expected.logits, atol=1e-5)


def test_cut_down_it_computes_the_same_on_what_is_kept(pretrained):
    settings = SETTINGS.model_copy(update={"pretrained": pretrained})
    whole, cut = VisualMBart(settings).eval(), VisualMBart(settings, KEPT).eval()
    old = torch.tensor(KEPT)
    assert cut.settings.vocabulary_size == len(KEPT) == 61
    assert cut.mbart.config.vocab_size == 61
    assert cut.mbart.model.shared.weight.equal(whole.mbart.model.shared.weight[old])
    assert cut.mbart.lm_head.weight is cut.mbart.model.decoder.embed_tokens.weight is cut.mbart.model.shared.weight
    ids, mask = texts(9, 12)
    target, target_mask = texts(6, 6)
    found, expected = cut.encode(ids, mask), whole.encode(old[ids], mask)
    assert found.states[mask.bool()].equal(expected.states[mask.bool()])
    logits, others = (
        net.word_logits(net.decode(one, words, target_mask)) for net, one, words in ((cut, found, target), (whole, expected, old[target]))
    )
    assert torch.allclose(logits, others[..., old], atol=1e-6)


def test_a_cut_network_is_saved_and_loaded(pretrained, tmp_path):
    net = VisualMBart(SETTINGS.model_copy(update={"pretrained": pretrained}), [0, 1, 2, 5, 6, 80])
    assert net.mbart.config.decoder_start_token_id is None
    net.save_pretrained(tmp_path)
    loaded = VisualMBart.load(tmp_path)
    assert loaded.settings == net.settings.model_copy(update={"pretrained": None})
    assert all(tensor.equal(loaded.state_dict()[name]) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize(
    ("change", "kept", "message"),
    [
        ({"layers": 3, "feed_forward": 64}, None, r"layers 3 \(it has 2\), feed_forward 64 \(it has 48\)"),
        ({"max_tokens": 41}, None, r"max_tokens 41 \(it has 40 positions\)"),
        ({}, [0, 1, 2, 90], "whose vocabulary has 90"),
        ({}, [0, 2, 3], "lack <s>, <pad> or </s>"),
    ],
)
def test_what_does_not_fit_is_named(pretrained, change, kept, message):
    with pytest.raises(UserError, match=message):
        VisualMBart(SETTINGS.model_copy(update={"pretrained": pretrained, **change}), kept)


def test_what_is_no_mbart_is_named(tmp_path):
    BertModel(BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=9)).save_pretrained(
        tmp_path
    )
    with pytest.raises(UserError, match="of the kind 'bert', not mbart"):
        VisualMBart(SETTINGS.model_copy(update={"pretrained": str(tmp_path)}))
    with pytest.raises(UserError, match=r"nowhere.* cannot be loaded as mBART: .*facebook/mbart-large-50"):
        VisualMBart(SETTINGS.model_copy(update={"pretrained": str(tmp_path / "nowhere")}))


def test_random_weights_begin_at_the_scale_of_the_size():
    net = network(size=64, vocabulary_size=500)
    config = net.mbart.config
    assert config.scale_embedding
    assert net.mbart.model.shared.weight.std().item() == pytest.approx(0.02 * math.sqrt(1024 / 64), rel=0.05)
    assert net.visual.places.weight.std().item() == pytest.approx(0.02 * math.sqrt(1024 / 64) * 8, rel=0.2), "as scaled word embeddings"
    assert config.max_position_embeddings == SETTINGS.max_tokens
