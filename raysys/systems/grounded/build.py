"""From a grounded system's name to its networks."""

from raysys.systems.grounded.encoder import GroundedEncoder
from raysys.systems.grounded.ground_sent import GroundSent
from raysys.systems.grounded.names import GroundedName
from raysys.systems.grounded.sequential import Sequential
from raysys.systems.grounded.settings import GroundedModelSettings, GroundedObjectiveSettings
from raysys.systems.grounded.system import GroundedSystem


def make_grounded(name: GroundedName, model: GroundedModelSettings, objective: GroundedObjectiveSettings) -> GroundedEncoder:
    """The networks of a system, with weights from torch's global generator.

    All but seq are trained (:class:`raysys.training.job.System`); those with a base still have to :meth:`~GroundedEncoder.begin`.

    Args:
        name: which system.
        model: the networks; t-half and gs-* train encoders of half of `model.text.size`.
        objective: what is minimised; losses that the system has not are left out.

    Raises:
        UserError: the settings do not fit the system.
    """
    if name == "seq":
        return Sequential(name, model, objective)
    return (GroundSent if name.startswith("gs-") else GroundedSystem)(name, model, objective)
