"""Sentences and pictures as unit vectors by ONNX Runtime. Needs numpy, onnxruntime, Pillow and tokenizers."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image
from tokenizers import Tokenizer

from raysys.data.encoding import TextForm, encode_texts, pad_rows
from raysys.systems.export.standalone.square import to_square


class OnnxEncoder:
    """The encoders of the folder in which this file lies.

    Args:
        folder: the folder; by default this file's own.
        batch_size: sentences or pictures at once.
        providers: what ONNX Runtime computes on, such as `("CUDAExecutionProvider",)`.
    """

    def __init__(
        self, folder: str | Path = Path(__file__).parent, batch_size: int = 64, providers: Sequence[str] = ("CPUExecutionProvider",)
    ):
        folder = Path(folder)
        self.batch_size = batch_size
        self.facts = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.text = onnxruntime.InferenceSession(str(folder / "text.onnx"), providers=list(providers))
        self.image = None
        if (folder / "image.onnx").exists():
            self.image = onnxruntime.InferenceSession(str(folder / "image.onnx"), providers=list(providers))

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Sentences where they are compared with sentences: float32 [n, d], unit length."""
        return self._encode(texts, "caption")

    def encode_captions_for_images(self, texts: Sequence[str]) -> np.ndarray:
        """Sentences where they are compared with pictures: float32 [n, d], unit length."""
        return self._encode(texts, "image_caption" if self.facts["separate_heads"] else "caption")

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Pictures where they are compared with sentences and with pictures: float32 [n, d], unit length."""
        if self.image is None:
            raise ValueError("this encoder was trained without images")
        form, parts = self.facts["image"], []
        for start in range(0, len(images), self.batch_size):
            squares = [to_square(image, form["size"], form["fit"]) for image in images[start : start + self.batch_size]]
            parts.append(self.image.run(["image"], {"pixels": np.stack(squares).transpose(0, 3, 1, 2)})[0])
        return np.concatenate(parts) if parts else np.zeros((0, self.facts["dimension"]), np.float32)

    def _encode(self, texts: Sequence[str], output: str) -> np.ndarray:
        form, parts = TextForm(**self.facts["text_form"]), []
        for start in range(0, len(texts), self.batch_size):
            rows = encode_texts(self.tokenizer, texts[start : start + self.batch_size], form)
            ids, mask = pad_rows([row for row, _ in rows], self.facts["pad_id"])
            parts.append(self.text.run([output], {"input_ids": ids, "attention_mask": mask})[0])
        return np.concatenate(parts) if parts else np.zeros((0, self.facts["dimension"]), np.float32)
