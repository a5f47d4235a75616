"""An encoder as folders that transformers loads (:class:`raysys.systems.encoder.Encoder` says which), checked."""

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModel, MBartForConditionalGeneration

from raysys.data.language_codes import language_ids
from raysys.data.tokenizer import encode, load_tokenizer
from raysys.models.backbones import TransformersFeatures
from raysys.objectives.similarity import unit_vectors
from raysys.systems.encoder import Encoder, text_network
from raysys.systems.export.agreement import SENTENCES, difference, pictures, same_tensors
from raysys.systems.export.image_folder import network_arguments, processor_arguments
from raysys.systems.export.standalone.image_processor import SquareImageProcessor
from raysys.systems.export.standalone.modeling_lite0 import Lite0Model
from raysys.systems.rc3.encoder import Rc3Encoder


class TransformersExport(NamedTuple):
    """What was measured of the folders."""

    difference: float
    """Largest difference of any entry of a vector from the trained encoder's."""
    picture_cosine: float | None
    """Lowest cosine between the vectors of an opaque picture by `AutoImageProcessor` and by training's preprocessing; None without
    images."""


def export_transformers(encoder: Encoder, folder: Path) -> TransformersExport:
    """Write the folders.

    Raises:
        RunFailed: what is loaded from them differs from `encoder`, in a tensor or a vector.
    """
    encoder.save(folder)
    loaded = Encoder.load(folder)
    same_tensors("the export", encoder.system.state_dict(), loaded.system.state_dict())
    tags = encoder.info["languages"][:1] * len(SENTENCES) if encoder.reads_languages else None
    found = [difference("the export (sentences)", encoder.encode_texts(SENTENCES, tags), loaded.encode_texts(SENTENCES, tags))]
    if text_network(encoder.system):
        found.append(_check_text(encoder, folder))
    if isinstance(encoder.system, Rc3Encoder):
        found.append(_check_mbart(encoder, folder))
    cosine = None
    if encoder.has_images:
        shown = pictures(encoder.preprocess.settings.size)
        found.append(difference("the export (pictures)", encoder.encode_images(shown), loaded.encode_images(shown)))
        cosine = _check_images(encoder, folder / "image")
    return TransformersExport(max(found), cosine)


def _check_text(encoder: Encoder, folder: Path) -> float:
    """By transformers' own network and, where it is all that is needed, by its tokenizer."""
    text, settings = AutoModel.from_pretrained(folder / "text", add_pooling_layer=False).eval(), encoder.system.text.settings
    same_tensors("text/", encoder.system.text.bert.state_dict(), text.state_dict())
    tokenizer = load_tokenizer(folder / "text")  # an AutoTokenizer
    if settings.trigram_buckets:
        tokens = encode(tokenizer, SENTENCES, settings.form)._asdict()
        del tokens["truncated"]
    else:
        tokens = tokenizer(list(SENTENCES), padding=True, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        states, mask = text(**tokens).last_hidden_state, tokens["attention_mask"][:, :, None]
        pooled = states[:, 0] if settings.pooling == "cls" else (states * mask).sum(dim=1) / mask.sum(dim=1)
        project = getattr(encoder.system, "project_caption", unit_vectors)  # a system without heads compares what its network gives
        vectors = project(pooled.to(encoder.device)).cpu().numpy()
    return difference("text/", encoder.encode_texts(SENTENCES), vectors)


def _check_mbart(encoder: Encoder, folder: Path) -> float:
    """By transformers' own network and tokenizer: a sentence with the token of its language behind it, and the state at its beginning."""
    network = MBartForConditionalGeneration.from_pretrained(folder / "text").eval()
    same_tensors("text/", encoder.system.network.mbart.state_dict(), network.state_dict())
    tokenizer, language = load_tokenizer(folder / "text"), encoder.info["languages"][0]
    tag = str(tokenizer.convert_ids_to_tokens(language_ids(tokenizer, [language])[language]))
    tokens = tokenizer([sentence + tag for sentence in _SHORT], padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = network.model.encoder(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]).last_hidden_state
    return difference("text/", encoder.encode_texts(_SHORT, [language] * len(_SHORT)), unit_vectors(states[:, 0]).numpy())


_SHORT = SENTENCES[:1]  # longer ones are cut by raysys so that the token of the language stays


def _check_images(encoder: Encoder, folder: Path) -> float:
    # Code of the folder is code of ours: loading it from there would need a cache in the home folder, which a cluster may not have.
    arguments, form = network_arguments(encoder.system.image), encoder.preprocess.settings
    network_class: Any = Lite0Model if arguments.pop("trust_remote_code", False) else AutoModel
    processor_class: Any = SquareImageProcessor if processor_arguments(form) else AutoImageProcessor
    network = network_class.from_pretrained(folder, **arguments).eval()
    ours = encoder.system.image.network
    same_tensors("image/", (ours.model if isinstance(ours, TransformersFeatures) else ours).state_dict(), network.state_dict())
    processor = processor_class.from_pretrained(folder)
    opaque = [data for data in pictures(form.size) if Image.open(io.BytesIO(data)).mode == "RGB"]
    pixels = processor([Image.open(io.BytesIO(data)) for data in opaque], return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        vectors = encoder.project_image_features(TransformersFeatures(network)(pixels).numpy())
    return float(np.min((vectors * encoder.encode_images(opaque)).sum(axis=1)))
