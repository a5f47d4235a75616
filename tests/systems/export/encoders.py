"""Tiny encoders of every kind that is exported differently, with weights as after training."""

from pathlib import Path

import torch
from transformers import ViTConfig, ViTModel

from raysys.data.images import ImagePreprocessorSettings
from raysys.data.tokenizer import train_tokenizer
from raysys.systems.encoder import Encoder
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ModelSettings, ObjectiveSettings
from tests.training.worlds import tiny_backbone

CAPTIONS = ["a red apple", "ein roter Apfel", "красный круг", "赤い丸", "δύο μεγάλα τετράγωνα", "ett", "a dog in the park"]
TEXT_ONLY = {"transitive": 0, "image": 0, "image_caption": 0}
KINDS = ("transformer", "cls", "trigrams", "vit", "text-only")


def make(kind: str, folder: Path) -> Encoder:
    """One of :data:`KINDS`; `folder` takes the image network that it begins with."""
    tokenizer = train_tokenizer(CAPTIONS, 300, max_tokens=12)
    text = {"hidden_size": 32, "layers": 1, "heads": 2, "intermediate_size": 48, "max_tokens": 12, "vocabulary_size": len(tokenizer)}
    model = {"text": text, "image": {"backbone": tiny_backbone(folder / "resnet")}, "head": {"size": 16}}
    weights, fit = {}, "crop"
    if kind == "cls":
        text["pooling"], model["text_heads"] = "cls", "shared"
    if kind == "trigrams":
        text |= {"layers": 0, "trigram_buckets": 50, "max_trigrams": 20}
        model |= {
            "image": {"backbone": "package:efficientnet-lite0", "pretrained": False},
            "image_head": "whitened",
            "text_heads": "shared",
        }
        weights, fit = {"cloze": 0}, "pad"
    if kind == "vit":
        config = ViTConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8)
        ViTModel(config, add_pooling_layer=False).save_pretrained(folder / "vit")
        model["image"], fit = {"backbone": str(folder / "vit")}, "pad"
    if kind == "text-only":
        weights = TEXT_ONLY
    torch.manual_seed(7)
    system = Globetrotter(ModelSettings.model_validate(model), ObjectiveSettings.model_validate({"margin": 0.0, "weights": weights}))
    with torch.no_grad():
        for parameter in system.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
        for name, buffer in system.named_buffers():
            if name.endswith(("running_mean", "image_head.mean")):
                buffer += 0.1
    info = {"run": "tiny", "step": 3, "languages": ["de", "el", "en", "ja", "no", "ru"], "data_fingerprint": "f00d"}
    return Encoder(system, tokenizer, ImagePreprocessorSettings(size=32, fit=fit), info)
