"""GroundSent (Kiela et al. 2018, "Learning Visually Grounded Sentence Representations"): a grounded vector beside a textual one."""

from collections.abc import Mapping

import torch
from torch import Tensor

from raysys.models.skip_thought import SentenceEncoder
from raysys.systems.grounded.encoder import begin_as
from raysys.systems.grounded.names import Space
from raysys.systems.grounded.settings import GroundedModelSettings, GroundedObjectiveSettings
from raysys.systems.grounded.system import GroundedSystem


class GroundSent(GroundedSystem):
    """GS-Img, GS-Cap and GS-Both: an encoder that learns from captions alone, beside the encoder of T½, which stays as it is.

    Both have half of the size of a sentence's vector.
    """

    def __init__(self, name: str, model: GroundedModelSettings, objective: GroundedObjectiveSettings):
        super().__init__(name, model, objective)
        self.base = SentenceEncoder(self.text.settings).requires_grad_(False)

    def begin(self, encoder_state: Mapping[str, Tensor]) -> None:
        """Take the encoder of a run of system t-half, as :meth:`GroundedEncoder.begin` says, to stand beside the trained one."""
        begin_as(self.base, encoder_state, self.name)

    def vectors(self, space: Space, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """As :meth:`GroundedEncoder.vectors` says: the grounded vector, then the textual one."""
        return torch.cat([encoder(input_ids, attention_mask) for encoder in (self.text, self.base)], dim=1)
