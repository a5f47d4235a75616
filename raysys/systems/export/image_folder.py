"""The folder ``image/`` of an export: network and image processor, for `AutoModel` and `AutoImageProcessor`."""

import inspect
import json
from pathlib import Path

from raysys.data.images import ImagePreprocessorSettings
from raysys.models.backbones import TransformersFeatures
from raysys.models.images import ImageBackbone
from raysys.systems.export.standalone import copy_into

Channels = tuple[float, float, float]
PROCESSOR = "preprocessor_config.json"


def save_image_folder(image: ImageBackbone, preprocessing: ImagePreprocessorSettings, folder: Path) -> None:
    """Write the network, and a processor that shows it pictures as `preprocessing` did in training.

    With fit "crop" that is transformers' own CLIP processor. It has none that pads with white, so "pad" comes with code, as does the
    network EfficientNet-Lite0.
    """
    image.save_pretrained(folder, preprocessing.size)
    size, side = preprocessing.size, {"height": preprocessing.size, "width": preprocessing.size}
    normalised = {"image_mean": image.mean, "image_std": image.std}
    if not processor_arguments(preprocessing):
        cropped = {"size": {"shortest_edge": size}, "resample": 2, "crop_size": side, "do_center_crop": True}
        processor = {"image_processor_type": "CLIPImageProcessor", **cropped, **normalised}
    else:
        name = "SquareImageProcessor"
        code = {"AutoImageProcessor": f"raysys_image_processor.{name}"}
        processor = {"image_processor_type": name, "auto_map": code, "size": size, "fit": preprocessing.fit, **normalised}
        copy_into(folder, "image_processor", "square")
    (folder / PROCESSOR).write_text(json.dumps(processor, indent=2) + "\n", encoding="utf-8")
    if "trust_remote_code" in network_arguments(image):
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        code = {"AutoConfig": "raysys_modeling_lite0.Lite0Config", "AutoModel": "raysys_modeling_lite0.Lite0Model"}
        (folder / "config.json").write_text(json.dumps(config | {"auto_map": code}, indent=2) + "\n", encoding="utf-8")
        copy_into(folder, "modeling_lite0")


def network_arguments(image: ImageBackbone) -> dict[str, bool]:
    """What `AutoModel.from_pretrained` has to be told of the network."""
    if not isinstance(image.network, TransformersFeatures):
        return {"trust_remote_code": True}
    model = image.network.model
    # without it, a network that has no pooler would be given one with random weights
    may_pool = "add_pooling_layer" in inspect.signature(type(model).__init__).parameters
    return {"add_pooling_layer": False} if may_pool and getattr(model, "pooler", None) is None else {}


def processor_arguments(preprocessing: ImagePreprocessorSettings) -> dict[str, bool]:
    """What `AutoImageProcessor.from_pretrained` has to be told."""
    return {} if preprocessing.fit == "crop" else {"trust_remote_code": True}


def normalisation(folder: Path) -> tuple[Channels, Channels]:
    """Mean and deviation of R, G, B in 0..1 that the network in `folder` expects."""
    processor = json.loads((folder / PROCESSOR).read_text(encoding="utf-8"))
    (r, g, b), (x, y, z) = processor["image_mean"], processor["image_std"]
    return (r, g, b), (x, y, z)
