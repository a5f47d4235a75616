"""From a system's name to its networks and settings."""

from typing import Any, cast

from torch import nn

from raysys.settings import Settings
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.grounded.build import make_grounded
from raysys.systems.grounded.names import GROUNDED_TITLES, GroundedName
from raysys.systems.grounded.settings import GroundedModelSettings, GroundedObjectiveSettings
from raysys.systems.lample_conneau import LampleConneau
from raysys.systems.muve import Muve
from raysys.systems.rc3.build import make_rc3
from raysys.systems.rc3.names import RC3_TITLES, Rc3Name
from raysys.systems.rc3.settings import Rc3ModelSettings, Rc3ObjectiveSettings
from raysys.systems.settings import TITLES as GLOBETROTTER_TITLES
from raysys.systems.settings import ModelSettings, ObjectiveSettings
from raysys.systems.supervised import Supervised

TITLES = GLOBETROTTER_TITLES | GROUNDED_TITLES | RC3_TITLES
"""What all systems are called in tables."""


def settings_classes(name: str) -> tuple[type[Settings], type[Settings]]:
    """The classes of a system's settings: of its networks, and of what is minimised."""
    if name in GROUNDED_TITLES:
        return GroundedModelSettings, GroundedObjectiveSettings
    return (Rc3ModelSettings, Rc3ObjectiveSettings) if name in RC3_TITLES else (ModelSettings, ObjectiveSettings)


def make_system(name: str, model: Any, objective: Any, languages: int) -> nn.Module:
    """The networks of a system (a :class:`raysys.systems.base.SentenceSystem`), with weights from torch's global generator.

    Args:
        name: which system; ablations are Globetrotter with the weights that `objective` has.
        model, objective: its settings, of the :func:`settings_classes`.
        languages: how many there are.
    """
    if name in GROUNDED_TITLES:
        return make_grounded(cast(GroundedName, name), model, objective)
    if name in RC3_TITLES:
        return make_rc3(cast(Rc3Name, name), model, objective, languages)
    if name == "muve":
        return Muve(model, objective, languages)
    if name == "lample-conneau":
        return LampleConneau(model, objective, languages)
    return Supervised(model, objective) if name == "supervised" else Globetrotter(model, objective)
