"""What all grounded systems have: a sentence encoder, and the frozen image network whose vectors sentences are grounded in."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor, nn

from raysys.data.encoding import TextForm
from raysys.data.vector_files import VectorFile
from raysys.errors import UserError
from raysys.models.images import ImageBackbone
from raysys.models.skip_thought import SentenceEncoder
from raysys.models.vocabulary_expansion import expand_encoder
from raysys.objectives.similarity import unit_vectors
from raysys.systems.grounded.names import Space, losses_of, parts_of, spaces_of
from raysys.systems.grounded.settings import GroundedModelSettings, GroundedObjectiveSettings, grounded_objective_of, text_settings_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class GroundedEncoder(nn.Module, ABC):
    """Sentences as vectors in one or several spaces.

    Args:
        name: a :data:`raysys.systems.grounded.names.GroundedName`.
        model: the networks.
        objective: what is minimised; losses that the system has not are left out.

    Raises:
        UserError: the settings do not fit the system.
    """

    reads_languages = False
    uses_images: bool
    """Whether sentences can be compared with pictures. In training, kept vectors stand in for pictures: other systems need no network."""
    picture_size: int
    """Of the image network's vectors, in systems that lead sentences there."""

    def __init__(self, name: str, model: GroundedModelSettings, objective: GroundedObjectiveSettings):
        super().__init__()
        self.name, self.model, self.objective = name, model, grounded_objective_of(name, objective)
        self.reads_captions = parts_of(name)["captions"]
        self.uses_images = "visual" in self.spaces
        if {"cross_modal", "ranking"} & set(losses_of(name)) or name == "seq":
            # First, so that a seed gives the same image network beside any text network: kept image vectors count on it.
            pictures = ImageBackbone(model.image) if self.uses_images or model.picture_size is None else None
            self.picture_size = pictures.hidden_size if pictures else model.picture_size or 0
            # With this an export of a system that encodes no pictures needs no image network.
            self.model = model.model_copy(update={"picture_size": self.picture_size})
            if pictures and self.uses_images:
                self.image = pictures
        self.text = SentenceEncoder(text_settings_of(name, model))

    @property
    def text_form(self) -> TextForm:
        """How sentences become ids."""
        return self.model.text.form

    @property
    def spaces(self) -> tuple[Space, ...]:
        """In which sentences can be compared."""
        return spaces_of(self.name)

    @property
    def default_space(self) -> Space:
        """The one whose structure the paper's Table 1 scores."""
        return self.spaces[-1]

    @property
    def vector_size(self) -> int:
        """Of sentences in the `default_space`, where nothing is encoded to tell."""
        if self.default_space == "visual":
            return self.picture_size
        own = self.text.settings.size if self.name == "t-half" else self.model.text.size
        return self.model.space.size if self.default_space == "grounded" else own

    def begin(self, encoder_state: Mapping[str, Tensor]) -> None:
        """Start from the encoder of another run; to be called before an engine takes the weights.

        Args:
            encoder_state: of its :class:`raysys.models.skip_thought.SentenceEncoder`.

        Raises:
            UserError: the encoders differ in size or kind.
        """
        begin_as(self.text, encoder_state, self.name)

    def leave_out_decoders(self) -> None:
        """Drop what training alone needs; afterwards it encodes, but cannot be trained."""
        for part in ("decoders", "caption_decoder", *([] if self.uses_images else ["to_visual"])):
            if hasattr(self, part):
                delattr(self, part)

    def expand(self, tokenizer: "PreTrainedTokenizerFast", large: VectorFile) -> "PreTrainedTokenizerFast":
        """Read the words of `large` too (:mod:`raysys.models.vocabulary_expansion`); to be called without decoders.

        Args:
            tokenizer: of the run.
            large: word vectors of a larger vocabulary.

        Returns:
            The tokenizer that knows all words.

        Raises:
            UserError: too few words are shared.
        """
        expanded = tokenizer
        for part in ("text", "base"):
            if hasattr(self, part):
                larger, expanded = expand_encoder(getattr(self, part), tokenizer, large)
                setattr(self, part, larger)
        text = self.model.text.model_copy(update={"vocabulary_size": len(expanded)})
        self.model = self.model.model_copy(update={"text": text})
        return expanded

    @abstractmethod
    def vectors(self, space: Space, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Sentences in one of the `spaces`, float32 [n, d], of any length; "text" is what classifiers read.

        Args:
            space: which.
            input_ids: int64 [n, L].
            attention_mask: int64 [n, L], 1 at tokens, 0 at padding.
        """

    def sentence_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says, in the :attr:`default_space`."""
        return unit_vectors(self.vectors(self.default_space, input_ids, attention_mask))

    def caption_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says. Raises UserError where the system has no visual space."""
        if "visual" not in self.spaces:
            raise UserError(f"system {self.name} does not compare sentences with pictures; systems cm and t-cm do")
        return unit_vectors(self.vectors("visual", input_ids, attention_mask))

    def project_image(self, features: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says: pictures stay where the image network puts them."""
        return unit_vectors(features)

    def word_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return self.text.word_vectors(input_ids, attention_mask)


def begin_as(encoder: SentenceEncoder, state: Mapping[str, Tensor], name: str) -> None:
    """Load `state` into `encoder`. Raises UserError where it does not fit; `name` is the system's."""
    try:
        encoder.load_state_dict(dict(state))
    except RuntimeError as error:
        told = " ".join(str(error).split())
        raise UserError(
            f"model.base: the sentence encoder of that run is not of the kind and size that system {name} needs, which has "
            f"model.text.encoder {encoder.settings.encoder} of size {encoder.settings.size} and {encoder.settings.vocabulary_size} "
            f"words of size {encoder.settings.word_size} ({told})"
        ) from None
