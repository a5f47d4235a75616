"""Both encoders as ONNX graphs, with what turns sentences and pictures into their inputs.

A folder::

    text.onnx           input_ids, attention_mask (int64 [n, L]) → caption (float32 [n, d]) and, where there are two heads, image_caption
    image.onnx          pixels (uint8 RGB [n, 3, size, size]) → image (float32 [n, d])
    tokenizer.json, encoder.json, raysys_onnx_encoder.py and what it imports

All outputs are unit vectors.
"""

import json
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim

from raysys.systems.encoder import Encoder
from raysys.systems.export.agreement import SENTENCES, difference, need, pictures
from raysys.systems.export.standalone import copy_into
from raysys.systems.globetrotter import Globetrotter

FOLDER = "onnx"
LARGEST_FILE = 2**31 - 2**20
"""Bytes of weights that fit into a graph's file (protobuf's limit); more lie in a file beside it."""


class TextGraph(nn.Module):
    """Ids and mask → vectors of captions, and those for images where a head of its own makes them."""

    def __init__(self, system: Globetrotter):
        super().__init__()
        self.system = system

    @property
    def outputs(self) -> list[str]:
        """Their names."""
        return ["caption", "image_caption"] if self.system.has_caption_head else ["caption"]

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        # with all tokens: the shortcut for bags of words picks tokens out, which has no fixed shape
        pooled = self.system.text(input_ids, attention_mask, tokens=True)[0]
        project = {"caption": self.system.project_caption, "image_caption": self.system.project_image_caption}
        return tuple(project[name](pooled) for name in self.outputs)


class ImageGraph(nn.Module):
    """Pixels → vectors of images."""

    def __init__(self, system: Globetrotter):
        super().__init__()
        self.system = system

    def forward(self, pixels: Tensor) -> Tensor:
        return self.system.project_image(self.system.image(pixels))


def export_onnx(encoder: Encoder, folder: Path) -> float:
    """Write the folder.

    Returns:
        The largest difference between a vector that ONNX Runtime computes from the folder and the same of `encoder`, over batches of
        one and of many, short and long texts.

    Raises:
        UserError: onnx, onnxscript or onnxruntime is not installed.
        RunFailed: the vectors differ.
    """
    need(FOLDER, "onnx", "onnxscript", "onnxruntime")
    folder.mkdir(parents=True, exist_ok=True)
    system, form = encoder.system, encoder.system.text.settings.form
    batch, length = Dim("batch"), Dim("length", max=form.longest)
    graph = TextGraph(system)
    ids, mask = torch.tensor([[[2, 9, 3], [2, 3, 0]], [[1, 1, 1], [1, 1, 0]]], device=encoder.device)
    axes = {0: batch, 1: length}
    _write_graph(graph, {"input_ids": (ids, axes), "attention_mask": (mask, axes)}, graph.outputs, folder / "text.onnx")
    if encoder.has_images:
        size = encoder.preprocess.settings.size
        pixels = torch.zeros(2, 3, size, size, dtype=torch.uint8, device=encoder.device)
        _write_graph(ImageGraph(system), {"pixels": (pixels, {0: batch})}, ["image"], folder / "image.onnx")
    encoder.tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    facts = {
        "dimension": int(encoder.encode_texts(SENTENCES[:1]).shape[1]),
        "separate_heads": system.has_caption_head,
        "text_form": vars(form),
        "pad_id": encoder.tokenizer.pad_token_id,
        "image": encoder.preprocess.settings.model_dump(include={"size", "fit"}) if encoder.has_images else None,
    }
    (folder / "encoder.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    copy_into(folder, "onnx_encoder", "square", "encoding", relative=False)
    return largest_difference(encoder, folder)


def _write_graph(module: nn.Module, inputs: dict[str, tuple[Tensor, dict[int, Any]]], outputs: list[str], path: Path) -> None:
    """Inputs: name → an example and which of its axes may have any length."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in module.state_dict().values())
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it tells of torchvision's operators, which no graph here has
    try:
        with warnings.catch_warnings(), torch.inference_mode(False):
            warnings.simplefilter("ignore")  # axes that share a name, and torch's own deprecations
            torch.onnx.export(
                module.eval(),
                tuple(example for example, _ in inputs.values()),
                path,
                input_names=list(inputs),
                output_names=outputs,
                dynamic_shapes={name: axes for name, (_, axes) in inputs.items()},
                external_data=size > LARGEST_FILE,
                dynamo=True,
                verbose=False,
            )
    finally:
        logger.setLevel(level)


def largest_difference(encoder: Encoder, folder: Path) -> float:
    """For sentences, of what the folder's own code gives from the encoder's; for pictures, of what the graph gives for the same pixels.

    Raises:
        RunFailed: it is no rounding.
    """
    import onnxruntime

    from raysys.systems.export.standalone.onnx_encoder import OnnxEncoder

    found = []
    for batch_size in (1, 64):
        written = OnnxEncoder(folder, batch_size)
        found.append(difference("text.onnx", encoder.encode_texts(SENTENCES), written.encode_texts(SENTENCES)))
        if encoder.has_images:
            expected = encoder.encode_captions_for_images(SENTENCES)
            found.append(difference("text.onnx (for images)", expected, written.encode_captions_for_images(SENTENCES)))
    if encoder.has_images:
        shown = pictures(encoder.preprocess.settings.size)
        pixels = np.stack([encoder.preprocess(picture).numpy() for picture in shown])
        session = onnxruntime.InferenceSession(str(folder / "image.onnx"), providers=["CPUExecutionProvider"])
        for count in (1, len(shown)):
            vectors = session.run(["image"], {"pixels": pixels[:count]})[0]
            found.append(difference("image.onnx", encoder.encode_images(shown)[:count], vectors))
    return max(found)
