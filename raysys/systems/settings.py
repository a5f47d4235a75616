"""Settings of what is trained: which system, its networks, and what is minimised."""

from typing import Literal

import pydantic

from raysys.models.heads import ProjectionHeadSettings
from raysys.models.images import ImageModelSettings, SimCLRViewsSettings
from raysys.models.text import TextModelSettings
from raysys.models.translator import TranslatorSettings
from raysys.models.word_vectors import MuveSettings
from raysys.settings import Settings, from_mapping

SystemName = Literal[
    "globetrotter",
    "without-transitive",
    "without-image",
    "without-image-caption",
    "without-cloze",
    "text-only",
    "supervised",
    "muve",
    "lample-conneau",
]
"""The systems that the paper compares."""

TITLES: dict[str, str] = {
    "globetrotter": "Globetrotter",
    "without-transitive": "Globetrotter without L_t",
    "without-image": "Globetrotter without L_v",
    "without-image-caption": "Globetrotter without L_x",
    "without-cloze": "Globetrotter without L_c",
    "text-only": "text only (L_c)",
    "supervised": "supervised",
    "muve": "Sigurdsson et al. (MUVE)",
    "lample-conneau": "Lample & Conneau",
}
"""What the systems are called in tables."""


class ModelSettings(Settings):
    """The networks."""

    image: ImageModelSettings = ImageModelSettings()
    """Image network."""
    text: TextModelSettings = TextModelSettings()
    """Text network, shared by all languages."""
    views: SimCLRViewsSettings = SimCLRViewsSettings()
    """How the two views of an image are made."""
    head: ProjectionHeadSettings = ProjectionHeadSettings()
    """Heads from the networks' vectors into the spaces of comparison."""
    text_heads: Literal["separate", "shared"] = "separate"
    """A head for comparing captions with captions beside that for comparing them with images (as in the paper), or one for both."""
    image_head: Literal["projection", "whitened"] = "projection"
    """Head of the image network: dense, GELU and norm with random weights, or linear from whitened principal components of the kept
    training vectors (needs data.cached_views)."""
    muve: MuveSettings = MuveSettings()
    """Text network of the system muve."""
    translator: TranslatorSettings = TranslatorSettings()
    """Decoder and noise of the system lample-conneau."""


class Weights(Settings):
    """Weight of each loss; 0 leaves it out, with the parts of the network that it alone would train."""

    transitive: pydantic.NonNegativeFloat = 1.0
    """L_t, caption–caption along transitive matches."""
    image: pydantic.NonNegativeFloat = 1.0
    """λ1 of L_v, image–image between two views."""
    image_caption: pydantic.NonNegativeFloat = 1.0
    """λ2 of L_x, image–caption."""
    cloze: pydantic.NonNegativeFloat = 1.0
    """λ3 of L_c, hidden tokens."""


class Temperatures(Settings):
    """Temperature of each contrastive loss; below 0.01 they count as 0.01."""

    learned: bool = False
    """Learn them, each from where it is set here."""
    transitive: pydantic.PositiveFloat = 0.1
    """τ of L_t."""
    image: pydantic.PositiveFloat = 0.1
    """τ of L_v."""
    image_caption: pydantic.PositiveFloat = 0.1
    """τ of L_x."""


class QueueSettings(Settings):
    """Samples of earlier steps as further neighbours in L_t."""

    size: int = pydantic.Field(0, ge=0)
    """Latest samples with which the captions of a batch are compared too; 0: none."""
    keys: Literal["momentum", "recent"] = "momentum"
    """Their vectors by the moving average of the weights, with one more forward pass a step (needs training.ema_decay), or as the step
    that trained on them had them, at no cost."""


class ObjectiveSettings(Settings):
    """What is minimised."""

    weights: Weights = Weights()
    """Weight of each loss."""
    temperature: Temperatures = Temperatures()
    """Temperature of each contrastive loss."""
    margin: float = pydantic.Field(0.4, lt=1.0)
    """m: transitive similarities below it count as 0."""
    transitive: Literal["product", "rescaled"] = "rescaled"
    """How transitive similarity is computed: as printed in the paper, or as in its authors' code."""

    contrast: Literal["softmax", "sigmoid"] = "softmax"
    """How L_t and L_x tell matches from the rest: by a softmax over the batch, or by a sigmoid for each pair with a learned bias."""
    bias: float = -10.0
    """Where the biases of the sigmoids begin; minus the logarithm of the global batch expects one match in a row."""
    hardness: float = pydantic.Field(0.0, ge=0)
    """β by which L_t and L_x weigh negatives the more the more alike they are; 0: all the same."""
    prefixes: tuple[pydantic.PositiveInt, ...] = ()
    """Sizes to which vectors can be cut later: each loss is averaged over these and the whole vectors."""
    queue: QueueSettings = QueueSettings()
    """Samples of earlier steps as further neighbours in L_t."""

    @pydantic.model_validator(mode="after")
    def _trainable(self) -> "ObjectiveSettings":
        if not any(self.weights.model_dump().values()):
            raise ValueError("all weights are 0: there is nothing to minimise")
        return self


def objective_of(system: str, objective: ObjectiveSettings) -> ObjectiveSettings:
    """The objective of one of the systems: the ablations have one weight of 0, and text-only none but that of the cloze loss.

    Raises:
        UserError: nothing would be left to minimise.
    """
    weights = objective.weights
    if system == "text-only":
        changed = Weights(transitive=0, image=0, image_caption=0, cloze=weights.cloze or 1.0)
    elif system.startswith("without-"):
        changed = weights.model_copy(update={system.removeprefix("without-").replace("-", "_"): 0.0})
    else:
        return objective
    return from_mapping(ObjectiveSettings, objective.model_dump() | {"weights": changed.model_dump()}, f"system {system}")


_READ = {"muve": {"temperature"}, "lample-conneau": set(), "supervised": {"weights", "temperature"}, "text-only": {"weights"}}
"""Which settings of the objective a system reads, where it does not read all."""


def without_effect(system: str, objective: ObjectiveSettings) -> list[str]:
    """Settings of the objective that were changed and that the system does not read."""
    plain, read = ObjectiveSettings(), _READ.get(system, set(ObjectiveSettings.model_fields))
    return [
        f"objective.{name}"
        for name in ObjectiveSettings.model_fields
        if name not in read and getattr(objective, name) != getattr(plain, name)
    ]
