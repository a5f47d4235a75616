import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel, MBartConfig, MBartModel, SwinConfig, SwinModel, ViTConfig, ViTModel

from raysys.errors import UserError
from raysys.models.backbones import build_network
from raysys.training.parameter_groups import layer_factors, parameter_groups
from raysys.training.settings import TrainingSettings

D = 0.5


class System(nn.Module):
    """Frozen eyes, a text part of two layers, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Linear(2, 2).requires_grad_(False)
        self.text = nn.ModuleDict({"embed": nn.Embedding(3, 2), "layer": nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])})
        self.head = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
        self.log_scale = nn.Parameter(torch.zeros(1))


def found(settings: TrainingSettings) -> dict[str, tuple[float, float, float]]:
    """Name → learning rate, factor, weight decay."""
    system = System()
    names = {id(parameter): name for name, parameter in system.named_parameters()}
    groups = parameter_groups(system, settings)
    assert len({(group["factor"], group["weight_decay"]) for group in groups}) == len(groups)
    return {names[id(one)]: (group["lr"], group["factor"], group["weight_decay"]) for group in groups for one in group["params"]}


def test_matrices_decay_and_biases_norms_and_scales_do_not():
    assert found(TrainingSettings(learning_rate=0.5, weight_decay=0.1)) == {
        "text.embed.weight": (0.5, 1, 0.1),
        "text.layer.0.weight": (0.5, 1, 0.1),
        "text.layer.0.bias": (0.5, 1, 0),
        "text.layer.1.weight": (0.5, 1, 0.1),
        "text.layer.1.bias": (0.5, 1, 0),
        "head.0.weight": (0.5, 1, 0.1),
        "head.0.bias": (0.5, 1, 0),
        "head.1.weight": (0.5, 1, 0),
        "head.1.bias": (0.5, 1, 0),
        "log_scale": (0.5, 1, 0),
    }


def test_parts_with_a_learning_rate_of_their_own():
    rates = found(
        TrainingSettings(learning_rate=0.5, layer_decay=D, learning_rate_factors={"text": 0.1, "text.layer.1.bias": 3.0, "head": 0})
    )
    assert {name: factor for name, (_, factor, _) in rates.items()} == pytest.approx(
        {
            "text.embed.weight": 0.1 * D**2,
            "text.layer.0.weight": 0.1 * D,
            "text.layer.0.bias": 0.1 * D,
            "text.layer.1.weight": 0.1,
            "text.layer.1.bias": 3.0,
            "head.0.weight": 0,
            "head.0.bias": 0,
            "head.1.weight": 0,
            "head.1.bias": 0,
            "log_scale": 1,
        }
    )
    assert all(rate == pytest.approx(0.5 * factor) for rate, factor, _ in rates.values())


def test_a_part_that_is_not_trained_is_named():
    with pytest.raises(UserError, match=r"nothing that is trained is called eyes…; there are head, log_scale, text"):
        found(TrainingSettings(learning_rate_factors={"eyes": 2.0}))
    with pytest.raises(UserError, match=r"nothing that is trained is called image"):
        found(TrainingSettings(learning_rate_factors={"image": 2.0}))


def bert() -> nn.Module:
    return BertModel(BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=12, num_attention_heads=1, intermediate_size=4))


def vit() -> nn.Module:
    return ViTModel(ViTConfig(hidden_size=4, num_hidden_layers=3, num_attention_heads=1, intermediate_size=4, image_size=8, patch_size=4))


def mbart() -> nn.Module:
    sides = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("attention_heads", 1), ("ffn_dim", 4))}
    return MBartModel(MBartConfig(vocab_size=9, d_model=4, encoder_layers=3, decoder_layers=2, **sides))


def swin() -> nn.Module:
    return SwinModel(SwinConfig(image_size=16, patch_size=2, embed_dim=4, depths=[1, 2], num_heads=[1, 1], window_size=2))


def resnet() -> nn.Module:
    return build_network("resnet-18", pretrained=False).module


def lite0() -> nn.Module:
    return build_network("package:efficientnet-lite0", pretrained=False).module


NETWORKS = {
    "bert": (
        bert,
        {
            "embeddings.word_embeddings.weight": D**12,
            "embeddings.LayerNorm.bias": D**12,
            "encoder.layer.0.attention.self.query.weight": D**11,
            "encoder.layer.2.output.dense.weight": D**9,
            "encoder.layer.10.output.dense.weight": D,
            "encoder.layer.11.output.LayerNorm.weight": 1,
            "pooler.dense.weight": 1,
        },
    ),
    "vit": (
        vit,
        {
            "embeddings.cls_token": D**3,
            "embeddings.patch_embeddings.projection.weight": D**3,
            "layers.0.mlp.fc1.weight": D**2,
            "layers.2.mlp.fc2.bias": 1,
            "layernorm.weight": 1,
            "pooler.dense.weight": 1,
        },
    ),
    "two stacks that share their embeddings": (
        mbart,
        {
            "shared.weight": D**3,
            "encoder.embed_positions.weight": D**3,
            "encoder.layernorm_embedding.weight": D**3,
            "encoder.layers.0.fc1.weight": D**2,
            "encoder.layers.2.fc1.weight": 1,
            "encoder.layer_norm.weight": 1,
            "decoder.embed_positions.weight": D**2,
            "decoder.layers.0.encoder_attn.k_proj.weight": D,
            "decoder.layers.1.fc2.weight": 1,
        },
    ),
    "blocks of layers": (
        swin,
        {
            "embeddings.norm.weight": D**3,
            "encoder.layers.0.blocks.0.mlp.fc1.weight": D**2,
            "encoder.layers.0.downsample.reduction.weight": D**2,
            "encoder.layers.1.blocks.0.mlp.fc1.weight": D,
            "encoder.layers.1.blocks.1.mlp.fc1.weight": 1,
            "layernorm.weight": 1,
        },
    ),
    "stages of layers of convolutions": (
        resnet,
        {
            "model.embedder.embedder.convolution.weight": D**8,
            "model.encoder.stages.0.layers.0.layer.0.convolution.weight": D**7,
            "model.encoder.stages.0.layers.0.layer.1.convolution.weight": D**7,
            "model.encoder.stages.0.layers.1.layer.0.normalization.weight": D**6,
            "model.encoder.stages.1.layers.0.shortcut.convolution.weight": D**5,
            "model.encoder.stages.3.layers.0.layer.1.convolution.weight": D,
            "model.encoder.stages.3.layers.1.layer.1.convolution.weight": 1,
        },
    ),
    "efficientnet": (
        lite0,
        {
            "network._conv_stem.weight": D**16,
            "network._blocks.0._depthwise_conv.weight": D**15,
            "network._blocks.9._depthwise_conv.weight": D**6,
            "network._blocks.15._depthwise_conv.weight": 1,
            "network._conv_head.weight": 1,
        },
    ),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_each_layer_learns_more_slowly_than_the_next(network):
    build, expected = NETWORKS[network]
    torch.manual_seed(0)
    parts = nn.ModuleDict({"eyes": nn.Linear(2, 2), "part": nn.ModuleDict({"network": build()}), "head": nn.Linear(2, 2)})
    names = [name for name, _ in parts.named_parameters()]
    factors = layer_factors(names, D)
    assert list(factors) == names
    assert {name: factors[f"part.network.{name}"] for name in expected} == pytest.approx(expected)
    assert factors["eyes.weight"] == factors["head.weight"] == 1, "they are no part of the network, before it or behind it"
    assert set(layer_factors(names, 1.0).values()) == {1.0}
