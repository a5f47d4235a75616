"""An encoder of sentences as a folder that `sentence_transformers.SentenceTransformer` loads, without raysys.

Files as in sentence-transformers' documentation on creating custom models: ``modules.json`` lists the modules in order; the transformer
lies in the folder itself, each of the others in a folder of its own.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from raysys.models.heads import ProjectionHead
from raysys.systems.encoder import Encoder
from raysys.systems.export.agreement import SENTENCES, difference, need
from raysys.systems.export.standalone import copy_into
from raysys.systems.export.text_folder import save_text_folder

FOLDER = "sentence-transformers"


def needs_code(encoder: Encoder) -> bool:
    """Whether the folder loads with `trust_remote_code=True` alone: no tokenizer of transformers makes the ids of trigrams."""
    return encoder.system.text.settings.trigram_buckets > 0


def export_sentence_transformers(encoder: Encoder, folder: Path) -> float:
    """Write the folder.

    Returns:
        The largest difference between a vector of :data:`SENTENCES` as sentence-transformers encodes it from the folder, and as
        `encoder` does.

    Raises:
        UserError: sentence-transformers is not installed.
        RunFailed: the vectors differ.
    """
    need(FOLDER, "sentence_transformers")
    text = encoder.system.text
    save_text_folder(text, encoder.tokenizer, folder)
    first = "sentence_transformers.base.modules.transformer.Transformer"
    if needs_code(encoder):
        first = "raysys_trigram_transformer.TrigramTransformer"
        copy_into(folder, "trigram_transformer")
    listed = [{"idx": 0, "name": "0", "path": "", "type": first}]
    for index, module in enumerate(_modules_after_the_transformer(encoder), 1):
        path = f"{index}_{type(module).__name__}"
        (folder / path).mkdir()
        module.save(str(folder / path))
        listed.append({"idx": index, "name": str(index), "path": path, "type": f"{type(module).__module__}.{type(module).__name__}"})
    _write(folder / "modules.json", listed)
    # BertModel would otherwise be given a pooler with random weights, which nothing uses
    how = {"max_seq_length": text.settings.max_tokens, "do_lower_case": False, "model_args": {"add_pooling_layer": False}}
    _write(folder / "sentence_bert_config.json", how)
    _write(folder / "config_sentence_transformers.json", {"similarity_fn_name": "cosine"})
    return difference(f"the {FOLDER} folder", encoder.encode_texts(SENTENCES), encode(folder, list(SENTENCES), needs_code(encoder)))


def encode(folder: Path, texts: list[str], trust_remote_code: bool) -> np.ndarray:
    """What sentence-transformers makes of `texts`: float32 [n, d]."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=trust_remote_code, local_files_only=True)
    return model.encode(texts, show_progress_bar=False)


def _modules_after_the_transformer(encoder: Encoder) -> list[Any]:
    from sentence_transformers.base.modules import Dense, Normalize
    from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling
    from torch import nn

    text, head = encoder.system.text, _caption_head(encoder)
    modules: list[Any] = [Pooling(text.hidden_size, text.settings.pooling)]
    if head is not None:
        size = head.settings.size
        modules += [Dense(text.hidden_size, size, activation_function=nn.GELU()), LayerNorm(size)]
        modules[1].linear.load_state_dict(head.dense.state_dict())
        modules[2].norm.load_state_dict(head.norm.state_dict())
    return [*modules, Normalize()]


def _caption_head(encoder: Encoder) -> ProjectionHead | None:
    """The head of :meth:`Globetrotter.project_caption`."""
    system = encoder.system
    if system.has_caption_head:
        return system.caption_head
    return system.image_caption_head if system.uses_images else None


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
