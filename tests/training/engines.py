"""A small network with everything that a training state can hold, in DeepSpeed engines of any stage."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from raysys.training.engine_state import MOMENTS, EngineState

_LINEAR = nn.functional.linear
ROWS = 12
"""Of the global batch; as many for each of 1, 2 or 3 ranks."""


class Network(nn.Module):
    """Odd sizes, tied and frozen weights, a scalar, buffers of several types, and a parameter that is used in no batch."""

    seen: Tensor
    ring: Tensor
    constant: Tensor

    def __init__(self, wide: int = 13) -> None:
        super().__init__()
        self.frozen = nn.Linear(5, 7)
        self.first = nn.Linear(7, wide)
        self.norm = nn.LayerNorm(wide)
        self.back = nn.Linear(wide, 7, bias=False)
        self.again = nn.Linear(7, wide, bias=False)
        self.again.weight = self.first.weight
        self.unused = nn.Parameter(torch.ones(3, 2))
        self.scale = nn.Parameter(torch.ones(1))
        self.frozen.requires_grad_(False)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("ring", torch.zeros(4, 5))
        self.register_buffer("open", torch.tensor([True, False, True]))
        self.register_buffer("constant", torch.arange(5.0), persistent=False)

    def forward(self, rows: Tensor, everything: Tensor) -> Tensor:
        if self.training:
            with torch.no_grad():
                self.ring[int(self.seen) % 4] = everything.mean(0)
                self.seen += 1
        hidden = self.back(torch.tanh(self.norm(self.first(self.frozen(rows + self.constant.to(rows.dtype))))))
        return self.again(hidden) * self.scale + self.ring.mean().to(rows.dtype)


def make(stage: int, precision: str = "fp32", wide: int = 13, seed: int = 5) -> Any:
    """An engine with three groups of parameters, each with its own learning rate."""
    import deepspeed
    from deepspeed.ops import __compatible_ops__

    __compatible_ops__["deepspeed_shm_comm"] = False
    torch.manual_seed(seed)
    network = Network(wide)
    groups = [
        {"params": [network.first.weight, network.unused], "lr": 0.02, "weight_decay": 0.1},
        {"params": [network.first.bias, network.norm.weight, network.norm.bias, network.scale], "lr": 0.02, "weight_decay": 0.0},
        {"params": [network.back.weight], "lr": 0.005, "weight_decay": 0.1},
    ]
    workers = dist.get_world_size()
    config = {
        "train_batch_size": ROWS,
        "train_micro_batch_size_per_gpu": ROWS // workers,
        "gradient_clipping": 1.0,
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 20},
        "bf16": {"enabled": precision == "bf16"},
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 2**31,
    }
    return deepspeed.initialize(model=network, optimizer=torch.optim.AdamW(groups), config=config, dist_init_required=False)[0]


def train(engine: Any, first: int, last: int, state: EngineState | None = None) -> list[float]:
    """Steps `first` up to `last`; returns each one's loss over the global batch, as float32 tells it."""
    rank, workers = dist.get_rank(), dist.get_world_size()
    losses = []
    for step in range(first, last):
        generator = torch.Generator().manual_seed(step)
        rows = torch.randn(ROWS, 5, generator=generator).to(engine.module.scale)
        mine = rows[rank * ROWS // workers : (rank + 1) * ROWS // workers]
        loss = (engine(mine, rows).float() - mine.float().sum(1, keepdim=True)).square().mean()
        engine.backward(loss)
        engine.step()
        if state:
            state.after_step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(float(total) / workers)
    return losses


def full_state(engine: Any) -> dict[str, Tensor]:
    """Weights in float32, moments, frozen weights, live weights and buffers, put together from all ranks by DeepSpeed itself."""
    import deepspeed
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

    zero = hasattr(engine.optimizer, "optimizer")
    if hasattr(engine.optimizer, "_lazy_init_hp_params_optimizer_state"):
        engine.optimizer._hp_optimizer_states_linked = False  # it links once, when only the first group has moments
        engine.optimizer._lazy_init_hp_params_optimizer_state()
    found = {f"buffer/{name}": buffer.clone() for name, buffer in engine.module.named_buffers() if name != "constant"}
    for name, parameter in engine.module.named_parameters():
        if parameter.requires_grad:
            found[f"weight/{name}"] = safe_get_full_fp32_param(parameter) if zero else parameter
            for kind in MOMENTS:
                moment = safe_get_full_optimizer_state(parameter, kind) if zero else engine.optimizer.state[parameter][kind]
                found[f"{kind}/{name}"] = moment
    with deepspeed.zero.GatheredParameters(list(engine.module.parameters()), enabled=hasattr(engine.optimizer, "fp16_groups")):
        for name, parameter in engine.module.named_parameters():
            if not parameter.requires_grad:
                found[f"weight/{name}"] = parameter
            found[f"live/{name}"] = parameter
        return {name: tensor.detach().clone().view(-1) for name, tensor in found.items()}


def let_go(engine: Any) -> None:
    """End an engine, and undo what ZeRO 3 has done to the whole process: its linear function rounds differently."""
    engine.destroy()
    nn.functional.linear = _LINEAR


def adam_steps(engine: Any) -> set[int]:
    """Steps that Adam counts, over all tensors it steps."""
    adam = getattr(engine.optimizer, "optimizer", engine.optimizer)
    return {int(state["step"]) for state in adam.state.values()}
