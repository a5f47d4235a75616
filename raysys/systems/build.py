"""From a system's name to its networks."""

from torch import nn

from raysys.systems.globetrotter import Globetrotter
from raysys.systems.lample_conneau import LampleConneau
from raysys.systems.muve import Muve
from raysys.systems.settings import ModelSettings, ObjectiveSettings, SystemName
from raysys.systems.supervised import Supervised


def make_system(name: SystemName, model: ModelSettings, objective: ObjectiveSettings, languages: int) -> nn.Module:
    """The networks of a system (a :class:`raysys.systems.base.SentenceSystem`), with weights from torch's global generator.

    Args:
        name: which system; ablations are Globetrotter with the weights that `objective` has.
        model, objective: its settings.
        languages: how many there are.
    """
    if name == "muve":
        return Muve(model, objective, languages)
    if name == "lample-conneau":
        return LampleConneau(model, objective, languages)
    return Supervised(model, objective) if name == "supervised" else Globetrotter(model, objective)
