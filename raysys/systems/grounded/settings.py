"""Settings of the grounded systems: their networks, and what is minimised."""

import pydantic

from raysys.errors import UserError
from raysys.models.images import ImageModelSettings
from raysys.models.skip_thought import SkipThoughtSettings
from raysys.settings import Settings
from raysys.systems.grounded.names import losses_of, parts_of, projection_of

__all__ = [
    "GroundedModelSettings",
    "GroundedObjectiveSettings",
    "grounded_objective_of",
    "parts_of",
    "projection_of",
    "text_settings_of",
]


class SpaceSettings(Settings):
    """The projections g and f, each of two layers."""

    size: pydantic.PositiveInt = 512
    """d_g, size of the grounded space; f leads to where pictures are, whose size the image network says."""
    hidden: pydantic.PositiveInt = 1024
    """Size of the layer between."""


class GroundedModelSettings(Settings):
    """The networks."""

    image: ImageModelSettings = ImageModelSettings(frozen=True)
    """Image network, which is never trained."""
    text: SkipThoughtSettings = SkipThoughtSettings()
    """Sentence encoder and decoders."""
    space: SpaceSettings = SpaceSettings()
    """Projections of sentences."""
    picture_size: pydantic.PositiveInt | None = None
    """Size of the image network's vectors, as exports tell it; by default what the network gives."""
    base: str | None = None
    """Finished run that a system stands on: of system t for seq, of t-half for gs-*; the encoder of any other system begins as its."""

    @pydantic.field_validator("image")
    @classmethod
    def _never_trained(cls, image: ImageModelSettings) -> ImageModelSettings:
        if "frozen" in image.model_fields_set and not image.frozen:
            raise ValueError("the image network of the grounded systems is never trained: leave frozen out, or set it to true")
        return image.model_copy(update={"frozen": True})


class GroundedWeights(Settings):
    """Weight of each loss, for the systems that have it."""

    text: pydantic.NonNegativeFloat = 1.0
    """L_T, the sentences before and after, decoded."""
    cluster: pydantic.NonNegativeFloat = 0.01
    """α_C of L_C, sentences of one picture against sentences of another."""
    perceptual: pydantic.NonNegativeFloat = 0.01
    """α_P of L_P, correlation of the likeness of sentences with that of their pictures."""
    cross_modal: pydantic.NonNegativeFloat = 0.01
    """Weight of CM, sentences ranked against a random picture."""
    ranking: pydantic.NonNegativeFloat = 1.0
    """Weight of Cap2Img, sentences ranked against all pictures of the batch and pictures against all sentences."""
    caption: pydantic.NonNegativeFloat = 1.0
    """Weight of Cap2Cap, another caption of the picture, decoded."""


class Margins(Settings):
    """Margins of the ranking losses, in cosines."""

    cluster: pydantic.NonNegativeFloat = 0.5
    """γ of L_C."""
    cross_modal: pydantic.NonNegativeFloat = 0.5
    """γ' of CM and Cap2Img."""


class GroundedObjectiveSettings(Settings):
    """What is minimised."""

    weights: GroundedWeights = GroundedWeights()
    """Weight of each loss."""
    margins: Margins = Margins()
    """Margins of the ranking losses."""
    pairs: pydantic.PositiveInt | None = None
    """Pairs of the global batch over which L_P takes its correlation, sampled in every step; none: all of them."""


def grounded_objective_of(system: str, objective: GroundedObjectiveSettings) -> GroundedObjectiveSettings:
    """The objective of one of the systems: the weights of losses that it has not are 0.

    Raises:
        UserError: a loss that the system has is switched off: that would be another system, with parts that nothing trains.
    """
    losses = losses_of(system)
    for loss in losses:
        if not getattr(objective.weights, loss):
            raise UserError(f"objective.weights.{loss} is 0, and system {system} is trained by that loss; choose another system")
    kept = {loss: weight if loss in losses else 0.0 for loss, weight in objective.weights}
    return objective.model_copy(update={"weights": GroundedWeights(**kept)})


def text_settings_of(system: str, model: GroundedModelSettings) -> SkipThoughtSettings:
    """The encoder that `system` trains: of half the size in t-half and gs-*, whose vectors are two of such put together.

    Raises:
        UserError: half of an odd size.
    """
    if system != "t-half" and not system.startswith("gs-"):
        return model.text
    if model.text.size % 2:
        raise UserError(f"model.text.size has to be even for system {system}, whose encoder has half of it; it is {model.text.size}")
    return model.text.model_copy(update={"size": model.text.size // 2})
