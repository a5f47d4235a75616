"""The DeepSpeed engine around a system."""

import math
import os
from typing import Any

import torch
import torch.distributed
from torch import nn

from raysys.errors import UserError
from raysys.training.settings import TrainingSettings


def engine_config(settings: TrainingSettings, workers: int) -> dict[str, Any]:
    """DeepSpeed's configuration for these settings."""
    # DeepSpeed insists on a micro-batch size and uses it for throughput figures alone; shares of a batch may differ by one.
    micro_batch = max(1, settings.global_batch // workers)
    return {
        "train_batch_size": micro_batch * workers,
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": settings.clip_norm,
        "zero_optimization": {"stage": settings.zero_stage},
        "bf16": {"enabled": settings.precision == "bf16"},
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 2**31,
        "wall_clock_breakdown": False,
    }


def make_engine(system: nn.Module, settings: TrainingSettings, workers: int, total_steps: int) -> Any:
    """Wrap `system` with AdamW, the schedule and ZeRO; called by every rank.

    Args:
        system: built with equal weights on every rank.
        settings: of the training.
        workers: number of ranks.
        total_steps: steps of the whole run, for the schedule.
    """
    os.environ.setdefault("DS_ACCELERATOR", "cuda" if torch.cuda.is_available() else "cpu")
    import deepspeed
    from deepspeed.ops import __compatible_ops__

    # Its just-in-time build takes most of a minute and gains nothing over gloo.
    __compatible_ops__["deepspeed_shm_comm"] = False
    optimizer = torch.optim.AdamW(parameter_groups(system, settings), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_factor(settings, total_steps, step))
    engine, *_ = deepspeed.initialize(
        model=system, optimizer=optimizer, lr_scheduler=schedule, config=engine_config(settings, workers), dist_init_required=False
    )
    return engine


def parameter_groups(system: nn.Module, settings: TrainingSettings) -> list[dict[str, Any]]:
    """Matrices with weight decay; biases, norms and scales without; parts with a learning rate of their own apart.

    The first group has the plain learning rate, which is the one that is logged.

    Raises:
        UserError: `learning_rate_factors` names a part that the system does not have.
    """
    factors = settings.learning_rate_factors
    trained = {name: parameter for name, parameter in system.named_parameters() if parameter.requires_grad}
    for part in factors:
        if not any(name.startswith(part) for name in trained):
            known = ", ".join(sorted({name.split(".")[0] for name in trained}))
            raise UserError(f"training.learning_rate_factors: nothing that is trained is called {part}…; there are {known}")
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for name, parameter in trained.items():
        longest = max((part for part in factors if name.startswith(part)), key=len, default="")
        groups.setdefault((factors.get(longest, 1.0), parameter.ndim >= 2), []).append(parameter)
    return [
        {"params": parameters, "lr": settings.learning_rate * factor, "weight_decay": settings.weight_decay if decays else 0.0}
        for (factor, decays), parameters in sorted(groups.items(), key=lambda item: (item[0][0] != 1.0, item[0][0], not item[0][1]))
    ]


def average_statistics(system: nn.Module, workers: int) -> None:
    """Give every worker the mean of all workers' running statistics of batch normalisation; called by every rank.

    Each worker collects its own from its share of the batches. What is validated, saved and resumed must not depend on whose
    they are.
    """
    if workers == 1:
        return
    for module in system.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
            for statistic in (module.running_mean, module.running_var):
                if statistic is not None:
                    torch.distributed.all_reduce(statistic)
                    statistic /= workers


def learning_rate_factor(settings: TrainingSettings, total_steps: int, step: int) -> float:
    """Learning rate at `step` as a share of its peak: a linear rise, then constant or half a cosine to 0."""
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    if settings.schedule == "constant":
        return 1.0
    progress = (step - settings.warmup_steps) / max(1, total_steps - settings.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
