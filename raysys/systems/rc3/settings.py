"""Settings of RC³ and its rivals: the network, and what is minimised."""

from typing import Literal

import pydantic

from raysys.errors import UserError
from raysys.models.visual_mbart import VisualMBartSettings
from raysys.settings import Settings
from raysys.systems.rc3.names import losses_of


class Rc3ModelSettings(Settings):
    """The network, one for all systems."""

    network: VisualMBartSettings = VisualMBartSettings()
    """mBART's encoder and decoder, with visual inputs."""


class Rc3Weights(Settings):
    """Weight of each loss, for the systems that have it."""

    mlm: pydantic.NonNegativeFloat = 1.0
    """Masked words of a strictly aligned caption, given the image; from the encoder. With mclm it makes L_MCLM."""
    mclm: pydantic.NonNegativeFloat = 1.0
    """The other caption written by the decoder, given the masked caption and the image."""
    itm: pydantic.NonNegativeFloat = 1.0
    """L_ITM, whether image and caption belong together."""
    xtcl: pydantic.NonNegativeFloat = 1.0
    """L_XTCL, parallel texts told from the other texts of the batch."""
    rxvtcl: pydantic.NonNegativeFloat = 1.0
    """The contrastive part of L_R-XVtCL: an image with two texts told from the same image or text with another."""
    kl: pydantic.NonNegativeFloat = 1.0
    """KL(P_vtr‖P_tr), which keeps weakly aligned inputs no closer than their texts are."""
    masked_regions: pydantic.NonNegativeFloat = 1.0
    """Features of masked regions, regressed (M³P, mUNITER, xUNITER, UC²)."""
    text_mlm: pydantic.NonNegativeFloat = 1.0
    """Masked words of single sentences of parallel text, without image (M³P, mUNITER, xUNITER)."""
    pair_mlm: pydantic.NonNegativeFloat = 1.0
    """Words masked in two captions that are read together, with their image (UC²)."""
    translation: pydantic.NonNegativeFloat = 1.0
    """One text written from the other, with a gated image vector where there is one (MeMAD)."""
    infilling: pydantic.NonNegativeFloat = 1.0
    """The caption written from itself with spans and regions masked (VL-BART)."""
    spans: pydantic.NonNegativeFloat = 1.0
    """The masked spans of the caption written, with regions masked as well (VL-T5)."""


class XtclSettings(Settings):
    """Cross-lingual textual contrastive learning."""

    symmetric: bool = False
    """Also take the second text of each pair as anchor; otherwise the first alone, and the order of a pair is drawn by chance."""
    zeta: pydantic.NonNegativeFloat = 0.9
    """ζ, how far negatives are drawn towards the anchor as the loss falls."""
    history: pydantic.PositiveInt = 100
    """Steps over which p⁺_avg is averaged."""
    on_strict: bool = True
    """Whether D_t includes the captions of D_s."""


class RxvtclSettings(Settings):
    """Regularised cross-lingual visio-textual contrastive learning."""

    near: pydantic.PositiveInt | None = 1
    """Each row meets the texts of so many rows before and after it in a random order of its kind; none: those of all. A row costs
    2 + 4 · near passes of the encoder."""
    zeta: pydantic.NonNegativeFloat = 0.9
    """ζ, how far negatives are drawn towards the anchor as the loss falls."""
    history: pydantic.PositiveInt = 100
    """Steps over which p⁺_avg is averaged."""
    detach_relevance: bool = False
    """Whether P_tr is a constant of the KL term, so that it moves visio-textual vectors alone."""


class Rc3ObjectiveSettings(Settings):
    """What is minimised."""

    weights: Rc3Weights = Rc3Weights()
    """Weight of each loss."""
    xtcl: XtclSettings = XtclSettings()
    """Contrastive learning of texts."""
    rxvtcl: RxvtclSettings = RxvtclSettings()
    """Contrastive learning of images with texts."""
    words: Literal["mean", "sum"] = "mean"
    """Losses of words: the mean over all words of the batch, or, as the equations read, each text's sum, averaged over the texts."""
    masked_regions: float = pydantic.Field(default=0.15, gt=0, lt=1)
    """Chance with which a region is masked, in systems that mask regions."""


def rc3_objective_of(system: str, objective: Rc3ObjectiveSettings) -> Rc3ObjectiveSettings:
    """The objective of one of the systems: the weights of losses that it has not are 0.

    Raises:
        UserError: a loss that the system has is switched off: that would be another system, with parts that nothing trains.
    """
    losses = losses_of(system)
    for loss in losses:
        if not getattr(objective.weights, loss):
            raise UserError(f"objective.weights.{loss} is 0, and system {system} is trained by that loss; choose another system")
    kept = {loss: weight if loss in losses else 0.0 for loss, weight in objective.weights}
    return objective.model_copy(update={"weights": Rc3Weights(**kept)})
