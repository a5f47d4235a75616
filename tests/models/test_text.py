import pydantic
import pytest
import torch
from transformers import AutoModel

from raysys.models.text import TextEncoder, TextModelSettings, mean_of_tokens

SMALL = TextModelSettings(hidden_size=32, layers=2, heads=4, intermediate_size=64, max_tokens=12, vocabulary_size=90)


def encoder(**changes) -> TextEncoder:
    torch.manual_seed(0)
    return TextEncoder(SMALL.model_copy(update=changes)).eval()


def ids_and_mask() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(5, 90, (3, 8), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    ids[1, 5:] = 0
    return ids, mask


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_shapes_and_dtypes(layers):
    pooled, tokens = encoder(layers=layers)(*ids_and_mask())
    assert pooled.shape == (3, 32)
    assert tokens.shape == (3, 8, 32)
    assert pooled.dtype == tokens.dtype == torch.float32


@pytest.mark.parametrize(("layers", "pooling"), [(0, "mean"), (2, "mean"), (2, "cls")])
def test_padding_changes_nothing(layers, pooling):
    model = encoder(layers=layers, pooling=pooling)
    ids, mask = ids_and_mask()
    alone, _ = model(ids[1:2, :5], mask[1:2, :5])
    together, _ = model(ids, mask)
    torch.testing.assert_close(together[1:2], alone, atol=1e-5, rtol=1e-5)
    ids[1, 5:] = 77
    torch.testing.assert_close(model(ids, mask)[0], together, atol=1e-5, rtol=1e-5)


def test_mean_counts_real_tokens_only():
    tokens = torch.arange(12.0).reshape(1, 4, 3)
    torch.testing.assert_close(mean_of_tokens(tokens, torch.tensor([[1, 1, 0, 0]])), torch.tensor([[1.5, 2.5, 3.5]]))


def test_a_row_of_padding_is_zero_and_harms_no_other_row():
    model = encoder()
    ids, mask = ids_and_mask()
    before, _ = model(ids, mask)
    mask[2] = 0
    pooled, _ = model(ids, mask)
    assert torch.equal(pooled[2], torch.zeros(32))
    torch.testing.assert_close(pooled[:2], before[:2], atol=1e-5, rtol=1e-5)
    pooled.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize(("layers", "pooling"), [(0, "mean"), (2, "mean"), (2, "cls")])
def test_every_parameter_is_used_and_has_a_dimension(layers, pooling):
    model = encoder(layers=layers, pooling=pooling)
    model(*ids_and_mask())[0].square().sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or p.dim() == 0] == []


def test_attention_is_the_fused_kind():
    assert encoder().bert.config._attn_implementation == "sdpa"


def test_word_order_matters_with_layers():
    model = encoder()
    ids, mask = ids_and_mask()
    swapped = ids[:1].clone()
    swapped[0, 1], swapped[0, 2] = ids[0, 2], ids[0, 1]
    assert (model(swapped, mask[:1])[0] - model(ids[:1], mask[:1])[0]).abs().max() > 1e-4


def test_saved_encoder_loads_with_transformers_alone(tmp_path):
    model = encoder()
    model.bert.save_pretrained(tmp_path)
    loaded, info = AutoModel.from_pretrained(tmp_path, add_pooling_layer=False, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    ids, mask = ids_and_mask()
    expected = model(ids, mask)[1]
    torch.testing.assert_close(loaded.eval()(input_ids=ids, attention_mask=mask).last_hidden_state, expected)


def test_dropout_acts_in_training_only():
    model = encoder()
    arguments = ids_and_mask()
    assert torch.equal(model(*arguments)[0], model(*arguments)[0])
    model.train()
    assert not torch.equal(model(*arguments)[0], model(*arguments)[0])


def test_too_many_tokens_are_refused():
    with pytest.raises(ValueError, match="13 tokens in a row, but at most 12 are allowed"):
        encoder()(torch.ones(1, 13, dtype=torch.long), torch.ones(1, 13))


@pytest.mark.parametrize(
    "wrong", [{"hidden_size": 30, "heads": 4}, {"layers": 0, "pooling": "cls"}, {"layers": 1, "trigram_buckets": 9}, {"dropout": 1.0}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(pydantic.ValidationError):
        TextModelSettings(**wrong)


def test_a_bag_is_the_same_computed_without_padding():
    model = encoder(layers=0, trigram_buckets=30, max_trigrams=5).train()
    assert model.word_embeddings.num_embeddings == 120
    ids, mask = ids_and_mask()
    ids[0, 4:] += 35  # ids of trigrams lie behind the vocabulary
    mask[2] = 0
    pooled, none = model.eval()(ids, mask, tokens=False)
    assert none is None
    torch.testing.assert_close(pooled, model(ids, mask)[0], atol=1e-6, rtol=1e-5)
    assert torch.equal(pooled[2], torch.zeros(32))
    wanted = torch.randn(3, 32, generator=torch.Generator().manual_seed(2))
    gradients = []
    for tokens in (False, True):
        model.zero_grad()
        (model(ids, mask, tokens=tokens)[0] * wanted).sum().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    for without, through in zip(*gradients, strict=True):
        torch.testing.assert_close(without, through, atol=1e-6, rtol=1e-5)
    with pytest.raises(ValueError, match="18 tokens in a row, but at most 17 are allowed"):
        model(torch.ones(1, 18, dtype=torch.long), torch.ones(1, 18))
