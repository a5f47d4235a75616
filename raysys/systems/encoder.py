"""A trained system as an encoder of sentences and images: what a run exports, and what evaluation and serving load.

An export is a folder::

    raysys.json           settings of the networks, languages, preprocessing, data fingerprint
    heads.safetensors     projection heads, and what else no other folder holds
    text/                 BertModel and tokenizer; loads with `AutoModel` and `AutoTokenizer` (of muve: the tokenizer alone; of RC³ and
                          its rivals: MBartForConditionalGeneration, and beside it what sees images)
    image/                image network and its processor; loads with `AutoModel` and `AutoImageProcessor`
    README.md             the model card
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from raysys.data.images import ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.language_codes import encode_with_language, language_ids
from raysys.data.tokenizer import Tokens, encode, load_tokenizer, padded
from raysys.errors import UserError
from raysys.models.text import TextEncoder
from raysys.models.visual_mbart import VisualMBart
from raysys.settings import from_mapping
from raysys.systems.build import make_system, settings_classes
from raysys.systems.export.image_folder import normalisation, save_image_folder
from raysys.systems.export.text_folder import save_text_folder
from raysys.systems.grounded.encoder import GroundedEncoder
from raysys.systems.rc3.encoder import Rc3Encoder
from raysys.systems.rc3.settings import Rc3ModelSettings

CARD = "raysys.json"
"""The file of an export that says what it is."""
_OWN_FOLDERS = ("text.bert.", "image.", "network.")  # parts of the state that lie in folders of their own


class Encoder:
    """Sentences and images as unit vectors.

    Args:
        system: the trained networks, a :class:`raysys.systems.base.SentenceSystem`; put into evaluation mode.
        tokenizer: the run's.
        image: preprocessing of pictures.
        info: what else the export tells: system, languages, data fingerprint.
        device: where to compute.
        batch_size: sentences or pictures per forward pass.
    """

    def __init__(
        self,
        system: Any,
        tokenizer: PreTrainedTokenizerFast,
        image: ImagePreprocessorSettings,
        info: dict[str, Any] | None = None,
        device: str = "cpu",
        batch_size: int = 64,
    ):
        self.device = torch.device(device)
        self.system: Any = system.to(self.device).eval()
        self.tokenizer = tokenizer
        self.preprocess = ImagePreprocessor(image)
        self.info = info or {}
        self.batch_size = batch_size

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu") -> "Encoder":
        """Load an exported folder. Raises UserError where it is none."""
        folder = Path(folder)
        try:
            card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{folder} is not an exported encoder: {CARD} cannot be read ({error})") from None
        try:
            system = load_system(folder, card)
            image = from_mapping(ImagePreprocessorSettings, card["preprocessing"], f"{folder}/{CARD}")
            return cls(system, load_tokenizer(folder / "text"), image, card["info"], device)
        except (OSError, KeyError, SafetensorError) as error:
            raise UserError(f"{folder} is not a whole export ({type(error).__name__}: {error}): export the run again") from None

    def save(self, folder: str | Path) -> None:
        """Write the export folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        disable_progress_bar()
        if isinstance(self.system, Rc3Encoder):
            self.system.network.save_pretrained(folder / "text")
        save_text_folder(text_network(self.system), self.tokenizer, folder / "text")
        if self.system.uses_images:
            save_image_folder(self.system.image, self.preprocess.settings, folder / "image")
        heads = {name: value.contiguous() for name, value in self.system.state_dict().items() if not name.startswith(_OWN_FOLDERS)}
        save_file(heads, folder / "heads.safetensors")
        card = {
            "system": self.info.get("system", "globetrotter"),
            "model": self.system.model.model_dump(mode="json"),
            "objective": self.system.objective.model_dump(mode="json"),
            "preprocessing": self.preprocess.settings.model_dump(mode="json"),
            "info": self.info,
        }
        (folder / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @property
    def has_images(self) -> bool:
        """Whether the system was trained with images."""
        return self.system.uses_images

    @property
    def reads_languages(self) -> bool:
        """Whether a sentence's vector depends on the language that it is said to be in."""
        return self.system.reads_languages

    @property
    def spaces(self) -> tuple[str, ...]:
        """In which spaces sentences can be compared; the last is the one of :meth:`encode_texts`. Of grounded systems: `text`, the
        sentence encoder's own, and `grounded` or `visual`, where a projection leads."""
        return getattr(self.system, "spaces", ("text",))

    def encode_texts(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> np.ndarray:
        """Sentences where captions are compared with captions (β): float32 [n, d], unit length.

        Args:
            texts: n sentences.
            languages: BCP-47 tag of each, needed where the system `reads_languages`.
        """
        return self._encode_texts(texts, languages, self.system.sentence_vectors)

    def encode_in_space(self, texts: Sequence[str], space: str) -> np.ndarray:
        """Sentences in one of the :attr:`spaces` of a grounded system: float32 [n, d], of any length.

        Raises:
            UserError: the system has no such space.
        """
        if space not in self.spaces or not isinstance(self.system, GroundedEncoder):
            raise UserError(f"this system compares no sentences in the space {space!r}; its spaces are {', '.join(self.spaces)}")
        return self._encode_texts(texts, None, lambda ids, mask, languages: self.system.vectors(space, ids, mask))

    def encode_captions_for_images(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> np.ndarray:
        """Sentences where captions are compared with images (α^x): float32 [n, d], unit length. Arguments as :meth:`encode_texts`."""
        self._need_images()
        return self._encode_texts(texts, languages, self.system.caption_vectors)

    def word_vectors(self, words: Sequence[str], languages: Sequence[str] | None = None) -> np.ndarray:
        """Words by the mean of the input vectors of their pieces: float32 [n, h], of any length. Arguments as :meth:`encode_texts`."""
        return self._encode_texts(words, languages, self.system.word_vectors, special_tokens=False)

    def encode_images(self, images: Sequence[bytes]) -> np.ndarray:
        """Encoded images where they are compared with captions (α^x) and with images (α^v): float32 [n, d], unit length."""
        return self.project_image_features(self.image_features(images))

    def image_features(self, images: Sequence[bytes]) -> np.ndarray:
        """The image network's vectors, before the head: float32 [n, D]."""
        self._need_images()
        with ThreadPoolExecutor(2) as pool:

            def compute(part: Sequence[bytes]) -> Tensor:
                return self.system.image(torch.stack(list(pool.map(self.preprocess, part))).to(self.device))

            return self._in_batches(images, compute)

    def project_image_features(self, features: np.ndarray) -> np.ndarray:
        """The head on top of :meth:`image_features`: float32 [n, D] → [n, d], unit length."""
        return self._in_batches(features, lambda part: self.system.project_image(torch.from_numpy(part).to(self.device)))

    def _need_images(self) -> None:
        if not self.has_images:
            raise UserError("this system was trained without images: it compares sentences with sentences alone")

    def _encode_texts(
        self,
        texts: Sequence[str],
        languages: Sequence[str] | None,
        compute: Callable[[Tensor, Tensor, Tensor], Tensor],
        special_tokens: bool = True,
    ) -> np.ndarray:
        places = self._places(texts, languages)
        special = torch.tensor(self.tokenizer.all_special_ids)

        def of(part: Sequence[int]) -> Tensor:
            tokens = self._tokens([texts[index] for index in part], [places[index] for index in part])
            mask = tokens.attention_mask if special_tokens else tokens.attention_mask * ~torch.isin(tokens.input_ids, special)
            of_part = torch.tensor([places[index] for index in part])
            return compute(tokens.input_ids.to(self.device), mask.to(self.device), of_part.to(self.device))

        # Sentences of like length meet in a batch: padding is computed too.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors = self._in_batches(order, of)
        result = np.empty_like(vectors)
        result[order] = vectors
        return result

    def _tokens(self, texts: Sequence[str], places: Sequence[int]) -> Tokens:
        """Ids of texts, whose languages are at `places` among those of the run."""
        if not isinstance(self.system, Rc3Encoder):
            return encode(self.tokenizer, texts, self.system.text_form)
        tags = list(language_ids(self.tokenizer, self.info["languages"]).values())
        core, form = self.tokenizer.backend_tokenizer, self.system.text_form
        return padded(self.tokenizer, encode_with_language(core, texts, [tags[place] for place in places], form))

    def _places(self, texts: Sequence[str], languages: Sequence[str] | None) -> Sequence[int]:
        """Of each text's language among those of the run."""
        if not self.reads_languages:
            return [0] * len(texts)
        known = list(self.info["languages"])
        if languages is None:
            raise UserError(f"this system reads each language by itself: say in which each text is ({', '.join(known)})")
        if unknown := sorted(set(languages) - set(known)):
            raise UserError(f"this system knows no {', '.join(unknown)}; its languages are {', '.join(known)}")
        return [known.index(language) for language in languages]

    def _in_batches(self, items: Any, compute: Callable[[Any], Tensor]) -> np.ndarray:
        with torch.inference_mode():
            parts = [compute(items[start : start + self.batch_size]).float().cpu() for start in range(0, len(items), self.batch_size)]
        return torch.cat(parts).numpy() if parts else np.zeros((0, self.system.vector_size), np.float32)


def text_network(system: Any) -> TextEncoder | None:
    """The transformer (or bag of word pieces) that reads texts; None where a system has another network."""
    network = getattr(system, "text", None)
    return network if isinstance(network, TextEncoder) else None


def load_system(folder: Path, card: dict[str, Any]) -> Any:
    """The networks of an exported folder, in evaluation mode."""
    disable_progress_bar()
    where = f"{folder}/{CARD}"
    of_model, of_objective = settings_classes(card["system"])
    model: Any = from_mapping(of_model, card["model"], where)
    objective = from_mapping(of_objective, card["objective"], where)
    if of_model is Rc3ModelSettings:  # its weights lie here, whatever it began with
        model = model.model_copy(update={"network": model.network.model_copy(update={"pretrained": None})})
    if (folder / "image").is_dir():
        model = model.model_copy(update={"image": model.image.model_copy(update={"backbone": str(folder / "image"), "pretrained": True})})
    system: Any = make_system(card["system"], model, objective, len(card["info"].get("languages", ())))
    if isinstance(system, Rc3Encoder):
        system.network = VisualMBart.load(folder / "text")
    if isinstance(system, GroundedEncoder):
        system.leave_out_decoders()
    if system.uses_images:
        system.image.mean, system.image.std = normalisation(folder / "image")
    state = load_file(folder / "heads.safetensors")
    if text_network(system):
        state |= {f"text.bert.{name}": value for name, value in load_file(folder / "text" / "model.safetensors").items()}
    try:
        missing, unexpected = system.load_state_dict(state, strict=False)
    except RuntimeError as error:  # tensors of another size
        raise UserError(f"{folder}: the weights do not fit the settings in {CARD}: {' '.join(str(error).split())}") from None
    missing = [name for name in missing if not name.startswith(("image.", "network."))]
    if missing or unexpected:
        raise UserError(
            f"{folder}: the weights do not fit the settings in {CARD}: missing {missing[:3]}, unexpected {list(unexpected)[:3]}"
        )
    return system.eval()
