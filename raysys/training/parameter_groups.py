"""Which parameters the optimizer decays, and how fast each of them learns."""

import itertools
import re
from collections.abc import Iterable
from typing import Any

from torch import nn

from raysys.errors import UserError
from raysys.training.settings import TrainingSettings

_LAYER = re.compile(r"(?:^|\.)_?(layers?|stages?|blocks?|h)\.(\d+(?:\.\d+)*)(?=\.)")
"""A numbered layer in a parameter's name, as transformers, timm and torchvision call them."""


def parameter_groups(system: nn.Module, settings: TrainingSettings) -> list[dict[str, Any]]:
    """Groups for AdamW: matrices with weight decay; biases, norms and scales without; one group for each learning rate.

    A group's `factor` is its learning rate as a multiple of the plain one: the product of the factor of the longest name in
    `learning_rate_factors` that its parameters' names begin with, and of :func:`layer_factors`.

    Raises:
        UserError: `learning_rate_factors` names a part that the system does not have.
    """
    factors = settings.learning_rate_factors
    trained = {name: parameter for name, parameter in system.named_parameters() if parameter.requires_grad}
    for part in factors:
        if not any(name.startswith(part) for name in trained):
            known = ", ".join(sorted({name.split(".")[0] for name in trained}))
            raise UserError(f"training.learning_rate_factors: nothing that is trained is called {part}…; there are {known}")
    depths = layer_factors([name for name, _ in system.named_parameters()], settings.layer_decay)
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for name, parameter in trained.items():
        longest = max((part for part in factors if name.startswith(part)), key=len, default="")
        groups.setdefault((factors.get(longest, 1.0) * depths[name], parameter.ndim >= 2), []).append(parameter)
    return [
        {
            "params": parameters,
            "lr": settings.learning_rate * factor,
            "factor": factor,
            "weight_decay": settings.weight_decay if decays else 0.0,
        }
        for (factor, decays), parameters in sorted(groups.items(), key=lambda item: item[0], reverse=True)
    ]


def layer_factors(names: Iterable[str], decay: float) -> dict[str, float]:
    """Every parameter's learning rate as a share of that of the last layers; all 1 where `decay` is 1.

    Within each stack of numbered layers the last one learns at the full rate, each earlier one at `decay` times that of the next, and
    what stands before the stack in the same part of the system (embeddings, a stem) one factor further, as in BEiT (Bao et al.,
    "BERT Pre-Training of Image Transformers", 2022). Of stages that have layers every layer counts; what a stage has beside them
    learns as its first.

    Args:
        names: of all parameters, in the order in which the modules define them.
        decay: factor from one layer to the one before.
    """
    order = list(names)
    stacks: dict[str, dict[str, tuple[int, int]]] = {}
    """Name of the stack → its parameters' names → stage and layer, or layer and 0."""
    for name in order:
        if found := list(_LAYER.finditer(name)):
            numbers = [int(number) for match in found for number in match[2].split(".")]
            stacks.setdefault(name[: found[0].end(1)], {})[name] = (numbers[0], numbers[1] if len(numbers) > 1 else 0)
    factors = dict.fromkeys(order, 1.0)
    before: dict[str, float] = {}
    """Name of the stack → factor of what stands before it."""
    for stack, places in stacks.items():
        layers = sorted(set(places.values()), reverse=True)
        factors |= {name: decay ** layers.index(place) for name, place in places.items()}
        before[stack] = decay ** len(layers)
    begins = {stack: order.index(next(iter(places))) for stack, places in stacks.items()}
    for index, name in enumerate(order):
        if _LAYER.search(name):
            continue
        shared = {stack: _shared_parts(name, stack) for stack in stacks}
        nearest = [stack for stack, parts in shared.items() if parts and parts == max(shared.values())]
        factors[name] = min((before[stack] for stack in nearest if "embed" in name or index < begins[stack]), default=1.0)
    return factors


def _shared_parts(one: str, other: str) -> int:
    """Modules that two names begin with alike."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
