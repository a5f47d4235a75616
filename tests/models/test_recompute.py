"""Activation checkpointing: the same losses, gradients and statistics, with every block computed twice."""

import copy
from collections import Counter

import pytest
import torch
from torch import nn
from transformers import CLIPVisionConfig, CLIPVisionModel, ConvNextConfig, ConvNextModel, SwinConfig, SwinModel, ViTConfig, ViTModel

from raysys.models.images import ImageBackbone, ImageModelSettings
from raysys.models.recompute import recompute_in_backward
from raysys.models.text import TextEncoder, TextModelSettings

VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "image_size": 32, "patch_size": 8}
FOLDERS = {
    "vit": lambda: ViTModel(ViTConfig(**VIT, hidden_dropout_prob=0.2)),
    "clip": lambda: CLIPVisionModel(CLIPVisionConfig(**VIT, attention_dropout=0.2)),
    "convnext": lambda: ConvNextModel(ConvNextConfig(hidden_sizes=[8, 16, 24, 40], depths=[1, 2, 1, 1], drop_path_rate=0.2)),
    "swin": lambda: SwinModel(SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[1, 2], window_size=4)),
}
PIXELS = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(5))
TEXT = TextModelSettings(hidden_size=32, layers=3, heads=4, intermediate_size=64, max_tokens=12, vocabulary_size=90, dropout=0.3)


def backbone(name: str, folder, **settings) -> ImageBackbone:
    torch.manual_seed(0)
    if name in FOLDERS:
        FOLDERS[name]().save_pretrained(folder)
        name = str(folder)
    return ImageBackbone(ImageModelSettings(backbone=name, pretrained=name == str(folder), **settings))


def calls_of(network: nn.Module) -> Counter:
    calls: Counter = Counter()
    for name, module in network.named_modules():
        if not list(module.children()):
            module.register_forward_hook(lambda *_, name=name: calls.update([name]))
    return calls


def trained(network: nn.Module, *inputs) -> tuple[torch.Tensor, dict, dict]:
    """A forward and a backward pass with the random numbers of one seed: result, gradients, buffers."""
    torch.manual_seed(3)
    result = network(*inputs)
    result = result[0] if isinstance(result, tuple) else result
    after = torch.rand(1)
    (result * torch.linspace(-1, 1, result.numel()).view_as(result)).sum().backward()
    gradients = {name: parameter.grad for name, parameter in network.named_parameters()}
    return torch.cat([result.detach().flatten(), after]), gradients, dict(network.named_buffers())


def assert_same(found: tuple, expected: tuple) -> None:
    assert found[0].equal(expected[0])
    for values, others in zip(found[1:], expected[1:], strict=True):
        assert values.keys() == others.keys()
        for name, value in values.items():
            # some gradients of a frozen or unused position are absent in both
            assert (value is None) == (others[name] is None), name
            assert value is None or torch.allclose(value, others[name], rtol=1e-5, atol=1e-7), name


@pytest.mark.parametrize("name", ["resnet-10-narrow", "package:efficientnet-lite0", *FOLDERS])
def test_image_networks_train_alike_and_compute_their_blocks_twice(name, tmp_path):
    network = backbone(name, tmp_path).train()
    again = copy.deepcopy(network)
    again.checkpoint_activations()
    calls = calls_of(again)
    found = trained(again, PIXELS)
    assert_same(found, trained(network, PIXELS))
    assert found[2] == {} or name in FOLDERS or all(buffer == 1 for key, buffer in found[2].items() if key.endswith("tracked"))
    twice = sum(count == 2 for count in calls.values())
    assert twice >= 0.6 * len(calls), calls
    assert again.state_dict().keys() == network.state_dict().keys()


def test_a_text_network_draws_its_dropout_again():
    torch.manual_seed(0)
    encoder = TextEncoder(TEXT).train()
    again = copy.deepcopy(encoder)
    again.checkpoint_activations()
    calls = calls_of(again)
    inputs = torch.randint(5, 90, (3, 8)), torch.ones(3, 8)
    assert_same(trained(again, *inputs), trained(encoder, *inputs))
    assert calls["bert.encoder.layer.1.attention.self.query"] == 2
    assert calls["bert.embeddings.word_embeddings"] == 1
    calls.clear()
    with torch.no_grad():
        again(*inputs)
    assert calls["bert.encoder.layer.1.attention.self.query"] == 1


class Unknown(nn.Module):
    """A network of no known kind: a list of blocks with batch normalisation and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(6, 6)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.ReLU()) for _ in range(2))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = self.stem(rows)
        for block in self.blocks:
            rows = block(rows)
        return rows


def test_other_networks_recompute_the_elements_of_their_outermost_lists():
    torch.manual_seed(0)
    network = Unknown()
    again = copy.deepcopy(network)
    recompute_in_backward(again)
    calls, rows = calls_of(again), torch.randn(8, 6)
    assert_same(trained(again, rows), trained(network, rows))
    assert calls["stem"] == 1
    assert calls["blocks.0.0"] == calls["blocks.1.1"] == 2


def test_the_backward_pass_may_be_made_twice_and_a_copy_is_a_network_of_its_own():
    torch.manual_seed(0)
    network = Unknown()
    recompute_in_backward(network)
    recompute_in_backward(network)
    copied = copy.deepcopy(network)
    nn.init.zeros_(network.blocks[0][0].weight)
    rows = torch.randn(8, 6)
    result = copied(rows)
    (first,) = torch.autograd.grad(result.sum(), copied.blocks[0][0].weight, retain_graph=True)
    (second,) = torch.autograd.grad(result.sum(), copied.blocks[0][0].weight)
    assert first.equal(second)
    assert first.norm() > 0
    assert copied.blocks[0][1].num_batches_tracked == 1
    assert network.blocks[0][1].num_batches_tracked == 0


def test_a_frozen_network_needs_none(tmp_path):
    network = backbone("resnet-10-narrow", tmp_path, frozen=True)
    network.checkpoint_activations()
    assert not any("forward" in vars(module) for module in network.modules())
