"""Forward passes in half precision: bfloat16 weights under an engine that casts them, or float32 weights under autocast to float16."""

import functools
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn


def use_half_precision(system: nn.Module, precision: Literal["bf16", "fp16"], device: torch.device) -> None:
    """Let forward passes of `system` run in half precision and return float32.

    Args:
        system: its forward returns a dict of tensors.
        precision: bf16: its parameters are bfloat16 already, its buffers float32; fp16: parameters and buffers are float32.
        device: on which it runs.
    """
    # Within the forward pass, since DeepSpeed ends an autocast that it meets around itself.
    autocast = torch.autocast(device.type, torch.float16, enabled=precision == "fp16")
    forward: Callable[..., dict[str, Tensor]] = system.forward

    @functools.wraps(forward)
    def in_half_precision(*arguments: Any, **named: Any) -> dict[str, Tensor]:
        with autocast:
            vectors = forward(*arguments, **named)
        return {name: rows.float() if rows.is_floating_point() else rows for name, rows in vectors.items()}

    system.forward = in_half_precision
    if precision == "bf16":
        for module in system.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.forward = functools.partial(_batch_norm, module)  # type: ignore[method-assign]


def _batch_norm(norm: nn.modules.batchnorm._BatchNorm, rows: Tensor) -> Tensor:
    """Batch normalisation of bfloat16 rows with float32 statistics, for which torch wants scale and shift in float32 too."""
    assert norm.momentum is not None
    if norm.training and norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)
    scale, shift = (None if one is None else one.float() for one in (norm.weight, norm.bias))
    own = norm.training or norm.running_mean is None
    return nn.functional.batch_norm(rows, norm.running_mean, norm.running_var, scale, shift, own, norm.momentum, norm.eps)
