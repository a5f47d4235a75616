"""The DeepSpeed engine around a system: made, run backwards over several micro-batches, and stepped."""

import math
import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from raysys.training.loss_scale import LossScale
from raysys.training.parameter_groups import parameter_groups
from raysys.training.precision import use_half_precision
from raysys.training.settings import TrainingSettings


def engine_config(settings: TrainingSettings, workers: int) -> dict[str, Any]:
    """DeepSpeed's configuration for these settings."""
    # DeepSpeed insists on a micro-batch size and uses it for throughput figures alone; shares of a batch may differ by one.
    micro_batch = max(1, settings.global_batch // workers)
    # DeepSpeed's optimizer for bfloat16 without ZeRO partitions its float32 weights anyway, and does so worse than ZeRO 1.
    stage = max(settings.zero_stage, 1) if settings.precision == "bf16" else settings.zero_stage
    return {
        "train_batch_size": micro_batch * workers,
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": 1,
        # Without ZeRO, optimizer_step clips.
        "gradient_clipping": settings.clip_norm if stage else 0.0,
        # On a GPU a buffer for gradients prevents fragmentation; on a CPU it is one more copy.
        "zero_optimization": {"stage": stage, "contiguous_gradients": torch.cuda.is_available()},
        "bf16": {"enabled": settings.precision == "bf16", "check_grad_overflow": True},
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 2**31,
        "wall_clock_breakdown": False,
    }


def make_engine(system: nn.Module, settings: TrainingSettings, workers: int) -> Any:
    """Wrap `system` with AdamW and ZeRO; called by every rank.

    * fp32: everything in float32.
    * bf16: weights, activations and gradients in bfloat16; the optimizer's copy of the weights in float32.
    * fp16: weights and gradients in float32; forward under autocast to float16, with the loss scaled by ``engine.loss_scaler``, a
      :class:`LossScale` that belongs in checkpoints (None in the other precisions).

    Whatever the precision, what the engine's forward returns is float32.

    Args:
        system: built with equal weights on every rank; its forward returns a dict of tensors.
        settings: of the training.
        workers: number of ranks.
    """
    os.environ.setdefault("DS_ACCELERATOR", "cuda" if torch.cuda.is_available() else "cpu")
    import deepspeed
    from deepspeed.ops import __compatible_ops__

    # Its just-in-time build takes most of a minute and gains nothing over gloo.
    __compatible_ops__["deepspeed_shm_comm"] = False
    # ZeRO makes one vector of all weights of a group; only fused, Adam goes over it once.
    optimizer = torch.optim.AdamW(parameter_groups(system, settings), lr=settings.learning_rate, fused=True)
    engine, *_ = deepspeed.initialize(model=system, optimizer=optimizer, config=engine_config(settings, workers), dist_init_required=False)
    engine.clip_norm = settings.clip_norm
    engine.loss_scaler = LossScale() if settings.precision == "fp16" else None
    engine.unreduced = None
    # Without ZeRO one worker would copy its gradients into a buffer and back.
    engine.enable_backward_allreduce = workers > 1 or engine.zero_optimization()
    if settings.precision != "fp32":
        use_half_precision(system, settings.precision, engine.device)
    return engine


def backward(engine: Any, loss: Tensor, last: bool = True) -> None:
    """One of the backward passes of a step: gradients add up, and are reduced over the workers once, in the last.

    What the optimizer gets is the mean over the workers of the sum over the passes; bfloat16 gradients are summed in float32.
    Forward passes, with or without gradients, may come between. All workers make the same number of passes::

        for number, micro_batch in enumerate(micro_batches):
            backward(engine, loss_of(engine(micro_batch)), last=number == len(micro_batches) - 1)
        norm, made = optimizer_step(engine)

    A single pass is reduced while it runs, and ZeRO 2 and 3 never hold the whole gradient; with several passes they do.

    Args:
        engine: from :func:`make_engine`.
        loss: a scalar.
        last: whether :func:`optimizer_step` follows.
    """
    partitioned = engine.zero_optimization()
    if engine.loss_scaler:
        if partitioned:
            engine.optimizer.override_loss_scale(engine.loss_scaler.value)
        else:
            loss = loss * engine.loss_scaler.value
    if last and engine.unreduced is None:
        engine.backward(loss)
        return
    engine.unreduced = {} if engine.unreduced is None else engine.unreduced
    # The flags are those of DeepSpeed's no_sync and coalesce_grad_reduction. The latter as a context around all passes would, when one
    # of them fails on one worker, leave that worker waiting in a reduction in which the others take no part.
    engine.inside_no_sync_ctxt = True
    if partitioned:
        engine.optimizer._coalesce_grad_reduction = True
    try:
        engine.backward(loss)
    finally:
        engine.inside_no_sync_ctxt = False
        if partitioned:
            engine.optimizer._coalesce_grad_reduction = False
    if engine.bfloat16_enabled():
        _sum_in_float32(engine)
    if last:
        _reduce(engine)


def _sum_in_float32(engine: Any) -> None:
    sums = engine.unreduced
    for parameter in _trained(engine):
        if parameter.grad is not None:
            sums[parameter] = sums[parameter].add_(parameter.grad) if parameter in sums else parameter.grad.float()
            parameter.grad.zero_()


def _reduce(engine: Any) -> None:
    for parameter, total in engine.unreduced.items():
        parameter.grad.copy_(total)
    engine.unreduced = None
    if not engine.zero_optimization():
        if engine.enable_backward_allreduce:
            engine.allreduce_gradients()
        return
    if engine.zero_optimization_stage() < 3:
        _filled_in(engine)  # for what nothing reached here, but perhaps on another worker
    with engine.coalesce_grad_reduction():
        pass  # DeepSpeed reduces what the parameters hold at the end of the context


def forget(engine: Any) -> None:
    """Drop the gradients of passes of which the last has not been made."""
    engine.unreduced = None
    engine.zero_grad()


def optimizer_step(engine: Any) -> tuple[float, bool]:
    """Clip the gradient and update the weights, unless the gradient is not finite; called by every worker, which all decide alike.

    Returns:
        The norm of the gradient before clipping, and whether the update was made: where it was not, weights and moments are as before.
        In fp16 that is nothing unusual: the loss scale has been halved.
    """
    assert engine.unreduced is None, "the last backward pass has not been made"
    scale = engine.loss_scaler.value if engine.loss_scaler else 1.0
    if engine.zero_optimization():
        engine.step()
        made = engine.was_step_applied()
        norm = float(engine.get_global_grad_norm())
        if engine.zero_optimization_stage() == 3:
            # A parameter that the next step does not use would be given this step's gradient again.
            engine.optimizer.grad_partitions_flat_buffer.zero_()
    else:
        gradients = _filled_in(engine)
        norm = float(nn.utils.get_total_norm(gradients)) / scale
        made = math.isfinite(norm)
        if made:
            factor: float = (min(1.0, engine.clip_norm / (norm + 1e-6)) if engine.clip_norm else 1.0) / scale
            if factor != 1.0:
                torch._foreach_mul_(gradients, factor)
            engine.step()
        else:
            engine.zero_grad()
    if engine.loss_scaler:
        engine.loss_scaler.update(made)
    return norm, made


def _filled_in(engine: Any) -> list[Tensor]:
    """Gradients of all trained parameters, after those that have none were given zeros."""
    for parameter in _trained(engine):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return [parameter.grad for parameter in _trained(engine) if parameter.grad is not None]


def _trained(engine: Any) -> Iterator[nn.Parameter]:
    return (parameter for parameter in engine.module.parameters() if parameter.requires_grad)


def set_learning_rate(engine: Any, settings: TrainingSettings, total_steps: int, step: int) -> float:
    """Give every group of parameters its learning rate at `step`; returns the plain one, of parts without a factor.

    Args:
        engine: from :func:`make_engine`.
        settings: of the training.
        total_steps: of the whole run.
        step: steps that have been made.
    """
    rate = settings.learning_rate * learning_rate_factor(settings, total_steps, step)
    for group in engine.basic_optimizer.param_groups:
        group["lr"] = rate * group["factor"]
    return rate


def learning_rate_factor(settings: TrainingSettings, total_steps: int, step: int) -> float:
    """Learning rate at `step` as a share of its peak: a linear rise, then constant or half a cosine to 0."""
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    if settings.schedule == "constant":
        return 1.0
    progress = (step - settings.warmup_steps) / max(1, total_steps - settings.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
