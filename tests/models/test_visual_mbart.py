"""The network against transformers' own mBART, and what must make no difference to it."""

import dataclasses
import json

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import MBartForConditionalGeneration

from raysys.errors import UserError
from raysys.models.visual import Visual
from raysys.models.visual_mbart import VisualMBart, VisualMBartSettings
from tests.models.visual_networks import SETTINGS, network, pictures, texts


def test_a_text_alone_is_encoded_as_by_mbart():
    net, (ids, mask) = network(), texts(9, 4, 12)
    found = net.encode(ids, mask)
    expected = net.mbart.model.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    assert found.states[mask.bool()].equal(expected[mask.bool()])
    assert found.first.equal(expected[:, 0])
    assert found.text_states is not None
    assert found.text_states.equal(found.states)
    assert found.region_states is None
    assert found.mask.equal(mask)


def test_a_picture_changes_the_text_and_the_text_its_representation():
    net, (ids, mask), picture = network(), texts(9, 4, 12), pictures(3)
    found = net.encode(ids, mask, [picture])
    assert found.states.shape == (3, 1 + 3 + 1 + 4 + 12, 32)
    assert found.first.equal(found.states[:, 0])
    assert found.region_states is not None
    assert found.region_states.equal(found.states[:, 1:4])
    assert found.text_states.equal(found.states[:, -12:])
    assert not torch.allclose(found.text_states[0], net.encode(ids, mask).states[0], atol=1e-3)
    for other in (
        net.encode(ids.roll(1, 0), mask.roll(1, 0), [picture]),
        net.encode(ids, mask, [pictures(3, seed=5)]),
        net.encode(ids, mask, [picture, pictures(3, seed=5)]),
        net.encode(ids, mask, [dataclasses.replace(picture, boxes=picture.boxes.flip(2))]),
        net.encode(ids, mask, [dataclasses.replace(picture, pixels=picture.pixels.roll(4, 3))]),
    ):
        assert (other.first - found.first).norm(dim=1).min() > 1e-3


def test_which_of_two_pictures_comes_first_makes_a_difference_and_the_order_of_regions_none():
    net, (ids, mask) = network(), texts(9, 4)
    one, two = pictures(2), pictures(2, seed=5)
    found = net.encode(ids, mask, [one, two]).first
    assert (net.encode(ids, mask, [two, one]).first - found).norm(dim=1).min() > 1e-3
    order = [2, 0, 1]
    turned = dataclasses.replace(one, regions=one.regions[:, order], boxes=one.boxes[:, order])
    assert torch.allclose(net.encode(ids, mask, [turned, two]).first, found, atol=1e-5)


NOTHING = pictures(2, seed=9)
NOTHING = dataclasses.replace(NOTHING, region_mask=torch.zeros(2, 3, dtype=torch.int64), has_pixels=torch.zeros(2, dtype=torch.bool))


def with_absent(kind: str) -> tuple[list[Visual], list[Visual]]:
    """Pictures, and the same with something beside them that the masks say is not there."""
    whole = pictures(2)
    regions, pixels = Visual(whole.regions, whole.boxes, whole.region_mask), Visual(pixels=whole.pixels, has_pixels=whole.has_pixels)
    if kind == "pixels":
        return [regions], [dataclasses.replace(whole, has_pixels=NOTHING.has_pixels)]
    if kind == "regions":
        return [pixels], [dataclasses.replace(whole, region_mask=NOTHING.region_mask, regions=torch.full((2, 3, 7), torch.nan))]
    if kind == "second picture":
        return [whole], [whole, NOTHING]
    if kind == "some regions":
        mask = torch.tensor([[1, 1, 0], [1, 1, 0]])
        return [Visual(whole.regions[:, :2], whole.boxes[:, :2], whole.region_mask[:, :2])], [
            dataclasses.replace(regions, region_mask=mask)
        ]
    return [Visual(whole.regions[:, :0], whole.boxes[:, :0], whole.region_mask[:, :0])], [NOTHING]


@pytest.mark.parametrize("kind", ["pixels", "regions", "second picture", "some regions", "all"])
def test_what_is_masked_makes_no_difference(kind):
    net, (ids, mask) = network(), texts(9, 5)
    plain, padded = with_absent(kind)
    expected, found = net.encode(ids, mask, plain), net.encode(F.pad(ids, (0, 3), value=17), F.pad(mask, (0, 3)), padded)
    assert torch.allclose(found.first, expected.first, atol=1e-5)
    assert torch.allclose(found.text_states[:, :9][mask.bool()], expected.text_states[mask.bool()], atol=1e-5)
    languages, (target, target_mask) = torch.tensor([50, 51]), texts(6, 8, seed=4)
    for one, other in zip(
        net.next_word_nll(found, F.pad(target, (0, 2), value=9), F.pad(target_mask, (0, 2)), languages),
        net.next_word_nll(expected, target, target_mask, languages),
        strict=True,
    ):
        assert torch.allclose(one, other, rtol=1e-5)
    assert net.generate(found, languages, 2, 5) == net.generate(expected, languages, 2, 5)


def test_rows_without_anything_give_numbers_and_gradients():
    net = network().train()
    ids, mask = texts(6, 0)
    target, target_mask = texts(5, 0, seed=3)
    for images in ((), (NOTHING,), (NOTHING, NOTHING)):
        encoded = net.encode(ids, mask, images)
        assert encoded.mask.any(dim=1).all(), "something to attend to, without which some kernels give no number"
        losses, tokens = net.next_word_nll(encoded, target, target_mask, torch.tensor([50, 51]))
        assert tokens.tolist() == [4, 0]
        assert losses[1] == 0
        (losses.sum() + encoded.first.square().sum() + encoded.states.square().sum()).backward()
    empty = torch.empty(2, 0, dtype=torch.int64)
    encoded = net.encode(empty, empty, [NOTHING])
    assert encoded.text_states.shape == (2, 0, 32)
    losses, tokens = net.next_word_nll(encoded, empty, empty, torch.tensor([50, 51]))
    assert not losses.any()
    assert not tokens.any()
    losses.sum().backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in net.parameters())


def test_word_losses_are_those_of_transformers():
    net, (ids, mask), picture = network(), texts(9, 4), pictures(2)
    encoded = net.encode(ids, mask, [picture])
    target, target_mask = texts(7, 5, seed=4)
    losses, tokens = net.next_word_nll(encoded, target, target_mask, torch.tensor([53, 54]))
    assert tokens.tolist() == [6, 4]
    for row, (length, language) in enumerate(((7, 53), (5, 54))):
        words = target[row, 1 : length - 1].tolist()
        logits = net.mbart(
            encoder_outputs=(encoded.states[row : row + 1],),
            attention_mask=encoded.mask[row : row + 1],
            decoder_input_ids=torch.tensor([[language, *words]]),
        ).logits[0]
        assert losses[row].item() == pytest.approx(F.cross_entropy(logits, torch.tensor([*words, 2]), reduction="sum").item(), rel=1e-5)
    states, words = encoded.text_states[mask.bool()], ids[mask.bool()]
    assert net.word_logits(states).shape == (13, 60)
    assert torch.allclose(net.word_nll(states, words), F.cross_entropy(net.word_logits(states), words, reduction="none"), atol=1e-5)


def test_beam_search_is_that_of_transformers(tmp_path):
    net, (ids, mask), languages = network(), texts(9, 4, 12), torch.tensor([50, 51, 52])
    net.mbart.final_logits_bias[0, 2] = 2.5  # so that some end before others
    net.save_pretrained(tmp_path)
    alone = MBartForConditionalGeneration.from_pretrained(tmp_path)
    search = {"num_beams": 3, "max_new_tokens": 8, "early_stopping": True}
    expected = []
    for row, language in enumerate(languages.tolist()):
        text = {"input_ids": ids[row : row + 1], "attention_mask": mask[row : row + 1]}
        found = alone.generate(**text, **search, decoder_start_token_id=language)[0].tolist()
        assert found[0] == language
        expected.append([piece for piece in found[1:] if piece != 2][:7])
    written = net.generate(net.encode(ids, mask), languages, beams=3, max_tokens=7)
    assert written == expected
    assert len({len(row) for row in written}) > 1


def test_greedy_writing_begins_with_the_language_and_takes_the_likeliest_piece():
    net, (ids, mask), languages = network(), texts(9, 4), torch.tensor([50, 51])
    encoded, longest = net.encode(ids, mask, [pictures(2)]), SETTINGS.max_tokens - 1
    read = languages[:, None]
    for _ in range(longest):
        read = torch.cat([read, net.word_logits(net.decode(encoded, read, torch.ones_like(read)))[:, -1:].argmax(dim=2)], dim=1)
    expected = [row[1 : row.index(2) if 2 in row else None] for row in read.tolist()]
    assert net.generate(encoded, languages, beams=1, max_tokens=longest) == expected
    assert net.generate(encoded, languages, beams=1, max_tokens=1000) == expected, "no more than there are positions"


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(tensor.equal(other[name]) for name, tensor in one.items())


def test_what_is_saved_loads_here_and_in_transformers_alone(tmp_path):
    net = network()
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter)
    net.save_pretrained(tmp_path)
    alone = MBartForConditionalGeneration.from_pretrained(tmp_path)
    assert same(alone.state_dict(), net.mbart.state_dict())
    assert alone.lm_head.weight is alone.model.shared.weight
    assert alone.model.encoder.embed_tokens.weight is alone.model.decoder.embed_tokens.weight is alone.model.shared.weight
    loaded = VisualMBart.load(tmp_path)
    assert same(loaded.state_dict(), net.state_dict())
    assert loaded.settings == net.settings
    assert len(list(loaded.parameters())) == len(list(net.parameters())), "tied weights count once"
    (ids, mask), picture = texts(9, 4), pictures(2)
    assert loaded.eval().encode(ids, mask, [picture]).states.equal(net.encode(ids, mask, [picture]).states)


def test_what_cannot_be_loaded_is_named(tmp_path):
    with pytest.raises(UserError, match=r"visual\.json"):
        VisualMBart.load(tmp_path)
    network().save_pretrained(tmp_path)
    told = json.loads((tmp_path / "visual.json").read_text())
    (tmp_path / "visual.json").write_text(json.dumps(told | {"layers": 3}))
    with pytest.raises(UserError, match=r"layers 3 \(it has 2\)"):
        VisualMBart.load(tmp_path)
    (tmp_path / "visual.json").write_text(json.dumps(told | {"patch": 2}))
    with pytest.raises(UserError, match="size mismatch"):
        VisualMBart.load(tmp_path)


def test_what_the_network_cannot_read_is_refused():
    net, (ids, mask), picture = network(), texts(9, 4), pictures(2)
    with pytest.raises(ValueError, match="12 positions"):
        net.encode(*texts(13))
    with pytest.raises(ValueError, match="features of size 6, and the network reads 7"):
        net.encode(ids, mask, [dataclasses.replace(picture, regions=picture.regions[..., :6])])
    with pytest.raises(ValueError, match=r"shape \[3, 8, 4\]"):
        net.encode(ids, mask, [dataclasses.replace(picture, pixels=picture.pixels[..., :4])])
    with pytest.raises(ValueError, match="neither"):
        net.encode(ids, mask, [Visual()])
    with pytest.raises(ValueError, match="one picture or two, not 3"):
        net.encode(ids, mask, [picture] * 3)
    with pytest.raises(ValueError, match="boxes"):
        net.encode(ids, mask, [dataclasses.replace(picture, boxes=None)])
    with pytest.raises(ValueError, match="not a multiple of heads"):
        VisualMBartSettings(size=30, heads=4)
    with pytest.raises(ValueError, match="not a multiple of patch"):
        VisualMBartSettings(image_size=50)


def test_activations_are_computed_twice_for_the_same_gradients():
    plain, again = network(dropout=0.2).train(), network(dropout=0.2).train()
    again.checkpoint_activations()
    calls = []
    for layer in (again.mbart.model.encoder.layers[0], again.mbart.model.decoder.layers[1]):
        layer.fc1.register_forward_hook(lambda *_: calls.append(1))
    (ids, mask), picture = texts(9, 4), pictures(2)
    for net in (plain, again):
        torch.manual_seed(3)
        losses, _ = net.next_word_nll(net.encode(ids, mask, [picture]), ids, mask, torch.tensor([50, 51]))
        losses.sum().backward()
    assert len(calls) == 4
    for one, other in zip(plain.parameters(), again.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, atol=1e-6)


def test_rows_of_pictures_are_chosen():
    picture = pictures(3)
    found = picture.rows(torch.tensor([2, 0, 0]))
    assert found.boxes.equal(picture.boxes[[2, 0, 0]])
    assert found.has_pixels.shape == (3,)
    assert Visual(pixels=picture.pixels).rows(torch.tensor([1])).regions is None
