"""What a trained system is asked by those who encode with it."""

from typing import Any, Protocol

from torch import Tensor

from raysys.data.encoding import TextForm
from raysys.systems.settings import ModelSettings, ObjectiveSettings


class SentenceSystem(Protocol):
    """A torch module that knows sentences, and pictures where it `uses_images`.

    Texts come as `input_ids` and `attention_mask`, int64 [n, L], and `languages`, int64 [n], the place of each text's language among
    those of the run. All vectors are float32 and, but for those of words, of unit length.
    """

    model: ModelSettings
    objective: ObjectiveSettings
    uses_images: bool
    reads_languages: bool
    """Whether a text's vector depends on the language it is said to be in."""
    image: Any
    """The image network, where it uses images."""

    @property
    def vector_size(self) -> int:
        """d of :meth:`sentence_vectors`."""

    @property
    def text_form(self) -> TextForm:
        """How texts become ids."""

    def sentence_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """Sentences where captions are compared with captions (β), [n, d]."""

    def caption_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """Sentences where captions are compared with images (α^x), [n, d]."""

    def project_image(self, features: Tensor) -> Tensor:
        """The image network's vectors [n, D] where images are compared with captions and with images, [n, d]."""

    def word_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """Words by what the text network reads: the mean of the input vectors of their pieces, [n, h]. Special tokens are masked out."""
