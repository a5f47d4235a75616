"""A first look at what a run has learned: how near sentences, and images, are to one another.

    python jobs/embed.py --run runs/shapes --text "a red circle" "ein roter Kreis" "a blue square" --image photo.png

Prints cosines: captions with captions (β), and images with captions (α^x) and with images (α^v). `--json` prints the vectors.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysys.errors import UserError, run_program
from raysys.settings import Settings, from_command_line
from raysys.storage import Storage, StorageSettings

if TYPE_CHECKING:
    from raysys.systems.encoder import Encoder


class EmbedSettings(Settings):
    """What to look at."""

    run: str
    """A run (its folder, local or s3://, or its name in `runs`), or the folder of an export."""
    text: tuple[str, ...] = ()
    """Sentences, in any of the run's languages."""
    language: tuple[str, ...] = ()
    """Language of each sentence (BCP-47), or one for all; needed for systems that have word vectors of each language."""
    image: tuple[str, ...] = ()
    """Image files, local or s3://."""
    storage: StorageSettings = StorageSettings()
    """How to reach object storage."""


def load_encoder(uri: str, storage: Storage, settings: StorageSettings) -> "Encoder":
    """The encoder of an export or of a run: its export, else its best checkpoint; nothing is written."""
    from raysys.runs.export import is_export, load_export, make_encoder
    from raysys.runs.networks import saved_tokenizer
    from raysys.runs.run import load_run

    if is_export(storage, uri):
        return load_export(storage, uri)
    run = load_run(uri, settings)
    exported = run.folder.path("export")
    if is_export(storage, exported):
        return load_export(storage, exported)
    state = run.checkpoint("best")
    return make_encoder(run, saved_tokenizer(run), state)


def vectors_of(
    encoder: "Encoder", texts: tuple[str, ...], languages: tuple[str, ...], files: tuple[str, ...], storage: Storage
) -> dict[str, np.ndarray]:
    """`text` and, with an encoder that knows images, `caption` and `image`: unit vectors, float32 [n, d]."""
    from raysys.data.encoding import EmptyTextError
    from raysys.data.images import ImageError

    if files and not encoder.has_images:
        raise UserError("--image: this run was trained on text alone; it has no network for images")
    if len(languages) not in (0, 1, len(texts)):
        raise UserError(f"--language: {len(languages)} languages for {len(texts)} sentences; give one for each, or one for all")
    tags = list(languages) * (len(texts) if len(languages) == 1 else 1) or None
    contents = [storage.read(file) for file in files]
    for file, content in zip(files, contents, strict=True):
        try:
            encoder.preprocess(content, file)
        except ImageError as error:
            raise UserError(f"--image: {error}") from None
    try:
        found = {"text": encoder.encode_texts(texts, tags)}
        if encoder.has_images:
            found |= {"caption": encoder.encode_captions_for_images(texts, tags), "image": encoder.encode_images(contents)}
    except EmptyTextError:
        raise UserError("--text: one of the sentences is empty: a sentence needs at least one visible character") from None
    return found


def as_json(vectors: dict[str, np.ndarray], texts: tuple[str, ...], files: tuple[str, ...]) -> str:
    """Texts and images with their vectors: `text_vector` among sentences, the others with images."""
    kinds = [name for name in ("text", "caption") if name in vectors]
    rows: dict[str, list[dict[str, Any]]] = {
        "texts": [{"text": text, **{f"{kind}_vector": vectors[kind][i].tolist() for kind in kinds}} for i, text in enumerate(texts)],
        "images": [{"file": file, "image_vector": vectors["image"][i].tolist()} for i, file in enumerate(files)],
    }
    return json.dumps(rows, ensure_ascii=False)


def tables(vectors: dict[str, np.ndarray], texts: tuple[str, ...], files: tuple[str, ...]) -> str:
    """Cosines for people: what is numbered how, then every table that there is something for."""
    sentences = {f"t{i}": text for i, text in enumerate(texts, 1)}
    images = {f"i{i}": Path(file).name for i, file in enumerate(files, 1)}
    parts = ["\n".join(f"{label:>4}  {name}" for label, name in (sentences | images).items())]
    if len(texts) > 1:
        parts.append(_table("sentence and sentence", vectors["text"] @ vectors["text"].T, sentences, sentences))
    if texts and files:
        parts.append(_table("image and sentence", vectors["image"] @ vectors["caption"].T, images, sentences))
    if len(files) > 1:
        parts.append(_table("image and image", vectors["image"] @ vectors["image"].T, images, images))
    return "\n\n".join(parts)


def _table(title: str, cosines: np.ndarray, rows: dict[str, str], columns: dict[str, str]) -> str:
    lines = [f"{title} (cosine)", " " * 4 + "".join(f"{label:>7}" for label in columns) + "  nearest"]
    for label, values in zip(rows, cosines, strict=True):
        others = {name: value for (other, name), value in zip(columns.items(), values, strict=True) if other != label}
        lines.append(f"{label:>4}" + "".join(f"{value:7.3f}" for value in values) + f"  {max(others, key=others.__getitem__)}")
    return "\n".join(lines)


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--json"]
    settings = from_command_line(
        EmbedSettings, arguments, "embed.py", "Show how near sentences and images are to one another; --json prints their vectors."
    )
    if not (settings.text or settings.image):
        raise UserError('nothing to look at: give sentences with --text "…" "…", or files with --image')
    storage = Storage(settings.storage)
    encoder = load_encoder(settings.run, storage, settings.storage)
    vectors = vectors_of(encoder, settings.text, settings.language, settings.image, storage)
    print((as_json if "--json" in sys.argv else tables)(vectors, settings.text, settings.image))


if __name__ == "__main__":
    run_program(main)
