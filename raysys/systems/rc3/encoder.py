"""What all systems pre-trained as RC³ or a rival have: the network, which makes vectors of texts, and of images with texts."""

from collections.abc import Sequence

from torch import Tensor, nn

from raysys.data.encoding import TextForm
from raysys.models.text import mean_of_tokens
from raysys.models.visual import Visual
from raysys.models.visual_mbart import VisualMBart
from raysys.objectives.similarity import unit_vectors
from raysys.systems.rc3.settings import Rc3ModelSettings, Rc3ObjectiveSettings, rc3_objective_of


class Rc3Encoder(nn.Module):
    """Texts as TR and images with texts as VtR; ids already hold the token of their language.

    Args:
        name: an :data:`raysys.systems.rc3.names.Rc3Name`.
        model: the network.
        objective: what is minimised; losses that the system has not are left out.
        kept: ids of a pretrained vocabulary that stay; None: all.

    Raises:
        UserError: the settings do not fit the system, or a pretrained network cannot be had.
    """

    uses_images = False
    """Sentences are compared with one another alone: an image without a text has no vector among them."""
    reads_languages = True

    def __init__(self, name: str, model: Rc3ModelSettings, objective: Rc3ObjectiveSettings, kept: Sequence[int] | None = None):
        super().__init__()
        self.name, self.objective = name, rc3_objective_of(name, objective)
        self.network = VisualMBart(model.network, kept)
        self.model = model.model_copy(update={"network": self.network.settings})

    @property
    def vector_size(self) -> int:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return self.network.size

    @property
    def text_form(self) -> TextForm:
        """How texts become ids."""
        return self.model.network.form

    def sentence_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says: TR, of unit length. `languages` are not needed."""
        return unit_vectors(self.network.encode(input_ids, attention_mask).first.float())

    def caption_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says: there is one space for sentences."""
        return self.sentence_vectors(input_ids, attention_mask, languages)

    def word_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return mean_of_tokens(self.network.mbart.model.encoder.embed_tokens(input_ids).float(), attention_mask)

    def visio_textual(self, input_ids: Tensor, attention_mask: Tensor, image: Visual) -> Tensor:
        """VtR of texts with images: float32 [n, d].

        Args:
            input_ids: ``[BOS] text [LAN]``, int64 [n, L].
            attention_mask: int64 [n, L], 1 at tokens, 0 at padding.
            image: of each row.
        """
        return self.network.encode(input_ids, attention_mask, [image]).first.float()
