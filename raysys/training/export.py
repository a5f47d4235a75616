"""From a checkpoint to the weights of a system, without an engine."""

import torch
from torch import nn

from raysys.errors import UserError
from raysys.training.checkpoint_files import Piece, Stored
from raysys.training.checkpoints import Checkpoints, CheckpointState
from raysys.training.engine_state import persistent_buffers


def load_weights(system: nn.Module, checkpoints: Checkpoints, state: CheckpointState) -> None:
    """Give `system` the weights of a checkpoint, frozen ones and buffers included: the live engine's, or their moving averages
    where the run has them.

    Raises:
        UserError: the checkpoint does not fit the system.
        RunFailed: bytes of the checkpoint have changed.
    """
    with checkpoints.reading(state.step) as reader:
        weights = [("weight", *one) for one in system.named_parameters()] + [("buffer", *one) for one in persistent_buffers(system)]
        targets = {f"{kind}/{name}": tensor.detach() for kind, name, tensor in weights}
        _check_fit(checkpoints.uri(state.step), {key: tuple(target.shape) for key, target in targets.items()}, reader.stored)
        pieces, stagings = [], []
        for key, target in targets.items():
            averaged = key.replace("weight/", "ema/", 1)
            chosen = averaged if averaged in reader.stored else key
            stored = reader.stored[chosen]
            if stored.dtype == target.dtype and target.is_contiguous():
                values = target.view(-1)
            else:
                values = torch.empty(target.numel(), dtype=stored.dtype)
                stagings.append((target, values))
            pieces.append(Piece(chosen, stored.shape, 0, values))
        reader.read(pieces)
    for target, values in stagings:
        target.copy_(values.view(target.shape))


def _check_fit(uri: str, shapes: dict[str, tuple[int, ...]], stored: dict[str, Stored]) -> None:
    there = {key: one.shape for key, one in stored.items() if key.startswith(("weight/", "buffer/"))}
    missing = sorted(key for key in shapes.keys() - there.keys())
    unexpected = sorted(key for key in there.keys() - shapes.keys())
    different = [f"{key} is {list(there[key])}, here {list(shapes[key])}" for key in shapes if key in there and there[key] != shapes[key]]
    broken = [f"{key}: {gap}" for key in shapes if key in there and (gap := stored[key].gap())]
    if missing or unexpected or different or broken:
        told = [f"missing {missing[:3]}", f"unexpected {unexpected[:3]}", *different[:3], *broken[:3]]
        raise UserError(f"the checkpoint {uri} does not fit the run's settings: {', '.join(told)}")
