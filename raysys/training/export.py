"""From a checkpoint to the weights of a system, without an engine."""

from pathlib import Path

import torch
from torch import Tensor, nn

from raysys.errors import UserError
from raysys.training.checkpoints import Checkpoints, CheckpointState


def load_weights(system: nn.Module, checkpoints: Checkpoints, state: CheckpointState) -> None:
    """Give `system` the weights of a checkpoint, equal to the live engine's, frozen ones and buffers included.

    Raises:
        UserError: the checkpoint does not fit the system.
    """
    with checkpoints.local(state) as folder:
        weights = _read_weights(folder, state.zero_stage)
    try:
        missing, unexpected = system.load_state_dict(
            {name: value.float() if value.is_floating_point() else value for name, value in weights.items()}, strict=False
        )
    except RuntimeError as error:  # tensors of another size
        raise UserError(
            f"the checkpoint {checkpoints.uri(state.step)} does not fit the run's settings: {' '.join(str(error).split())}"
        ) from None
    if missing or unexpected:
        raise UserError(
            f"the checkpoint {checkpoints.uri(state.step)} does not fit the run's settings: "
            f"missing {list(missing)[:3]}, unexpected {list(unexpected)[:3]}"
        )


def _read_weights(folder: Path, zero_stage: int) -> dict[str, Tensor]:
    if zero_stage < 3:
        # Up to stage 2 every rank holds the whole module, and rank 0 writes it.
        return torch.load(folder / "mp_rank_00_model_states.pt", map_location="cpu", weights_only=False)["module"]
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    return get_fp32_state_dict_from_zero_checkpoint(str(folder.parent), tag=folder.name)
