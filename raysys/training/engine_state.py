"""All that a rank holds of a training state, as pieces of named tensors, however DeepSpeed has partitioned it.

Kinds of tensors: ``weight`` (of trained parameters the float32 master weights, frozen ones as they are), ``exp_avg`` and ``exp_avg_sq``
(Adam's moments), ``ema`` (moving average of the weights), ``buffer``.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed
from torch import Tensor

from raysys.training.checkpoint_files import Piece

MOMENTS = ("exp_avg", "exp_avg_sq")
_SWAPPED = 1 << 26
"""Elements that change places at once: so many are in memory a third time."""


@dataclass(frozen=True)
class Fragment:
    """This rank's stretch of a trained parameter, which may be empty."""

    name: str
    shape: tuple[int, ...]
    """Of the parameter."""
    start: int
    """Where in the flattened parameter the stretch begins."""
    owner: int
    """Which of the tensors that the optimizer steps holds it."""
    offset: int
    """Where in that tensor it begins."""
    count: int
    """Elements."""

    def piece(self, kind: str, tensors: list[Tensor]) -> Piece:
        """The stretch of the parameter's weight, moment or average, of which `tensors` has one for each owner."""
        values = tensors[self.owner].detach().view(-1).narrow(0, self.offset, self.count)
        return Piece(f"{kind}/{self.name}", self.shape, self.start, values)


class EngineState:
    """Weights, Adam moments, averages and buffers of one rank; made by all ranks together.

    Args:
        engine: a DeepSpeed engine around torch's Adam or AdamW: ZeRO 1, 2 or 3, or float32 without ZeRO.
        ema_decay: of the moving average of the weights, which begins at the weights as they are; None: no average.
    """

    def __init__(self, engine: Any, ema_decay: float | None = None):
        from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3
        from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer

        self.engine = engine
        in_group = torch.distributed.is_initialized()
        self.rank = torch.distributed.get_rank() if in_group else 0
        self.workers = torch.distributed.get_world_size() if in_group else 1
        zero = isinstance(engine.optimizer, DeepSpeedZeroOptimizer | DeepSpeedZeroOptimizer_Stage3)
        self._partition = 0 if not zero else 3 if isinstance(engine.optimizer, DeepSpeedZeroOptimizer_Stage3) else 1
        self._adam = engine.optimizer.optimizer if zero else engine.optimizer
        assert isinstance(self._adam, torch.optim.Adam), f"the state of {type(self._adam).__name__} is not known, only that of torch's Adam"
        self._owners, self._fragments = {0: _whole, 1: _partitioned, 3: _partitioned_in_three}[self._partition](engine, self.rank)
        self._moments = {kind: [self._adam_state(owner)[kind] for owner in self._owners] for kind in MOMENTS}
        self.ema_decay = ema_decay
        self._steps = 0
        self._averages: list[Tensor] = []
        if ema_decay is not None:
            self.restart_average()

    def _adam_state(self, owner: Tensor) -> dict[str, Tensor]:
        """Adam's state of a tensor, made where it has not been stepped yet: the moments 0, the steps 0."""
        state = self._adam.state[owner]
        if not state:
            on_device = self._adam.defaults["fused"] or self._adam.defaults["capturable"]
            state["step"] = torch.zeros((), device=owner.device if on_device else "cpu")
            state |= {kind: torch.zeros_like(owner, requires_grad=False) for kind in MOMENTS}
        return state

    def restart_average(self) -> None:
        """Let the average begin at the weights as they are now."""
        self._averages = [owner.detach().clone() for owner in self._owners]

    @torch.no_grad()
    def after_step(self) -> None:
        """Move the average towards the weights: average ← d · average + (1 − d) · weight, d = min(decay, (1 + t) / (10 + t)).

        t counts the steps: so the random weights of the beginning are soon forgotten (as in TensorFlow's ExponentialMovingAverage).
        """
        self._steps += 1
        if self.ema_decay is not None:
            decay = min(self.ema_decay, (1 + self._steps) / (10 + self._steps))
            torch._foreach_lerp_(self._averages, self._owners, 1 - decay)

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """The live weights are the averaged ones inside the block, and what they were before after it; entered by all ranks.

        After an exception they are left averaged: the attempt is over, and putting them back would wait for ranks that have gone.
        """
        if self.ema_decay is None:
            yield
            return
        self._swap()
        yield
        self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for owner, average in zip(self._owners, self._averages, strict=True):
            for one, other in zip(owner.view(-1).split(_SWAPPED), average.view(-1).split(_SWAPPED), strict=True):
                kept = one.clone()
                one.copy_(other)
                other.copy_(kept)
        self.refresh()

    @torch.no_grad()
    def refresh(self) -> None:
        """Bring the live weights of all ranks to what the master weights are; called by all ranks."""
        zero = self.engine.optimizer
        if self._partition == 1:
            zero.update_lp_params()
        elif self._partition == 3:
            zero.checkpoint_event_prologue()  # lets go of gathered weights
            for live, master in zip(zero.fp16_partitioned_groups_flat, zero.fp32_partitioned_groups_flat, strict=True):
                live.data.copy_(master.data)
            zero.checkpoint_event_epilogue()  # gathers small ones, which stay so between steps

    def expected(self) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
        """Key of every tensor of the whole training state → (shape, dtype), the same on every rank."""
        kinds = ("weight", *MOMENTS, *(["ema"] if self._averages else []))
        tensors = {f"{kind}/{fragment.name}": (fragment.shape, torch.float32) for kind in kinds for fragment in self._fragments}
        frozen = {f"weight/{name}": (_shape(parameter), parameter.dtype) for name, parameter in self._frozen()}
        return tensors | frozen | {f"buffer/{name}": (tuple(buffer.shape), buffer.dtype) for name, buffer in self._buffers()}

    def held(self, average: bool = True) -> list[Piece]:
        """All that this rank has in memory, in live memory: what is to be filled when a checkpoint is loaded.

        Args:
            average: with the moving average, if there is one.
        """
        return self._own(average) + self._replicated(average) + self._buffer_pieces()

    def written(self) -> list[Piece]:
        """What this rank writes: all ranks' together are the whole state, each element once.

        What is whole on every rank is shared out, so that each writes as much.
        """
        shared = self._replicated(True)
        total = sum(piece.values.numel() for piece in shared)
        first, last = (total * rank // self.workers for rank in (self.rank, self.rank + 1))
        mine, position = self._own(True), 0
        for piece in shared:
            size = piece.values.numel()
            begin, end = max(first - position, 0), min(last - position, size)
            if begin < end:
                mine.append(piece.part(begin, end))
            position += size
        return mine + (self._buffer_pieces() if self.rank == 0 else [])

    def _trained_pieces(self, average: bool) -> list[Piece]:
        kinds = {"weight": self._owners, **self._moments} | ({"ema": self._averages} if self._averages and average else {})
        return [fragment.piece(kind, tensors) for kind, tensors in kinds.items() for fragment in self._fragments if fragment.count]

    def _own(self, average: bool) -> list[Piece]:
        """What no other rank holds."""
        if not self._partition:
            return []
        frozen = [_frozen_part(name, parameter, self.rank) for name, parameter in self._frozen()] if self._partition == 3 else []
        return self._trained_pieces(average) + [piece for piece in frozen if piece.values.numel()]

    def _replicated(self, average: bool) -> list[Piece]:
        """What every rank holds, buffers apart."""
        if self._partition == 3:
            return []
        frozen = [Piece(f"weight/{name}", _shape(one), 0, one.detach().view(-1)) for name, one in self._frozen() if one.numel()]
        return frozen if self._partition else self._trained_pieces(average) + frozen

    def _buffer_pieces(self) -> list[Piece]:
        return [Piece(f"buffer/{name}", tuple(one.shape), 0, one.view(-1)) for name, one in self._buffers() if one.numel()]

    def _frozen(self) -> list[tuple[str, Tensor]]:
        trained = {fragment.name for fragment in self._fragments}
        return [(name, parameter) for name, parameter in self.engine.module.named_parameters() if name not in trained]

    def _buffers(self) -> list[tuple[str, Tensor]]:
        return persistent_buffers(self.engine.module)

    @property
    def progress(self) -> dict[str, Any]:
        """What there is beside tensors, as JSON values: the steps of Adam by parameter, and the loss scale of fp16."""
        steps = {fragment.name: int(self._adam.state[self._owners[fragment.owner]]["step"]) for fragment in self._fragments}
        scale = getattr(self.engine, "loss_scaler", None)
        return {"adam_steps": steps} | ({"loss_scale": scale.state_dict()} if scale else {})

    @progress.setter
    def progress(self, values: dict[str, Any]) -> None:
        counts = [0] * len(self._owners)
        for fragment in self._fragments:  # those that share an owner are always stepped together
            counts[fragment.owner] = max(counts[fragment.owner], values["adam_steps"][fragment.name])
        self._steps = max(values["adam_steps"].values())
        for owner, count in zip(self._owners, counts, strict=True):
            self._adam.state[owner]["step"].fill_(count)
        if scale := getattr(self.engine, "loss_scaler", None):
            scale.load_state_dict(values["loss_scale"])

    def agree(self, value: int) -> int:
        """Rank 0's value, on every rank; called by all ranks."""
        if self.workers == 1:
            return value
        shared = torch.tensor(value, device=self.engine.device)
        torch.distributed.broadcast(shared, 0)
        return int(shared)


def persistent_buffers(module: torch.nn.Module) -> list[tuple[str, Tensor]]:
    """Buffers that belong to the module's state, by name."""
    state = module.state_dict()
    return [(name, buffer) for name, buffer in module.named_buffers() if name in state]


def _shape(parameter: Any) -> tuple[int, ...]:
    return tuple(getattr(parameter, "ds_shape", parameter.shape))  # one that ZeRO 3 has partitioned is empty itself


def _frozen_part(name: str, parameter: Any, rank: int) -> Piece:
    part = parameter.ds_tensor
    start = min(rank * part.ds_numel, parameter.ds_numel)
    values = part.detach().view(-1)[: min(part.ds_numel, parameter.ds_numel - start)]
    return Piece(f"weight/{name}", _shape(parameter), start, values)


def _names(engine: Any) -> dict[int, str]:
    return {id(parameter): name for name, parameter in engine.module.named_parameters()}


def _whole(engine: Any, rank: int) -> tuple[list[Tensor], list[Fragment]]:
    """Without ZeRO: the optimizer steps the parameters themselves, on every rank all of them."""
    names = _names(engine)
    owners = [parameter for group in engine.optimizer.param_groups for parameter in group["params"]]
    return owners, [Fragment(names[id(one)], tuple(one.shape), 0, index, 0, one.numel()) for index, one in enumerate(owners)]


def _partitioned(engine: Any, rank: int) -> tuple[list[Tensor], list[Fragment]]:
    """ZeRO 1 and 2: each group's parameters lie flat one behind the other, and each rank steps one stretch of that."""
    zero, names, fragments = engine.optimizer, _names(engine), []
    assert not zero.round_robin_gradients, "with round_robin_gradients DeepSpeed does not tell where a parameter lies"
    for index, group in enumerate(zero.bit16_groups):
        for parameter in group:
            name, shape, mapping = names[id(parameter)], tuple(parameter.shape), parameter._hp_mapping
            if mapping is None:
                fragments.append(Fragment(name, shape, 0, index, 0, 0))
            else:
                start, there = mapping.lp_fragment_address.start, mapping.hp_fragment_address
                fragments.append(Fragment(name, shape, start, index, there.start, there.numel))
    return zero.single_partition_of_fp32_groups, fragments


def _partitioned_in_three(engine: Any, rank: int) -> tuple[list[Tensor], list[Fragment]]:
    """ZeRO 3: each parameter is cut into equal stretches, one for each rank; what the last ones lack is padding."""
    zero, names, fragments = engine.optimizer, _names(engine), []
    for parameter in (parameter for group in zero.fp16_groups for parameter in group):
        owner, offset, size = zero.grad_position[zero.get_param_id(parameter)]
        start = min(rank * size, parameter.ds_numel)
        count = min(size, parameter.ds_numel - start)
        fragments.append(Fragment(names[id(parameter)], _shape(parameter), start, owner, offset, count))
    return zero.fp32_partitioned_groups_flat, fragments
