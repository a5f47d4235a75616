"""From a system's name to its network."""

from collections.abc import Sequence

from raysys.errors import UserError
from raysys.systems.rc3.names import Rc3Name
from raysys.systems.rc3.settings import Rc3ModelSettings, Rc3ObjectiveSettings
from raysys.systems.rc3.system import Rc3System


def make_rc3(
    name: Rc3Name,
    model: Rc3ModelSettings,
    objective: Rc3ObjectiveSettings,
    languages: int,
    kept: Sequence[int] | None = None,
    mask_id: int | None = None,
) -> Rc3System:
    """The system, with weights from torch's global generator where they are not pretrained.

    Args:
        name: which.
        model: the network.
        objective: what is minimised; losses that the system has not are left out.
        languages: how many are in use.
        kept: ids of a pretrained vocabulary that stay; None: all.
        mask_id: the tokenizer's mask token, which systems vl-bart and vl-t5 need for training.

    Raises:
        UserError: fewer than two languages, settings that do not fit the system, or a pretrained network that cannot be had.
    """
    if languages < 2:
        raise UserError(f"system {name} learns from texts in pairs of languages, and there is only one (data.languages)")
    return Rc3System(name, model, objective, kept, mask_id)
