"""Activation checkpointing: a block keeps its input alone, and is computed again when its gradient is wanted."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from raysys.models.statistics import StatisticsUntouched

BLOCKS = ("ResNetEmbeddings", "ResNetBasicLayer", "ResNetBottleNeckLayer", "ConvNextLayer", "ConvNextV2Layer", "MBConvBlock")
"""Classes of blocks of image networks that do not call themselves blocks as transformers' layers do."""


def recompute_in_backward(network: nn.Module) -> None:
    """Let every block of `network` recompute its activations in the backward pass.

    Losses and gradients stay the same: random numbers (dropout) are drawn again alike, and the running statistics of batch
    normalisation are left out of the second computation. Blocks are transformers' layers and :data:`BLOCKS`; in other networks
    the elements of their outermost lists.
    """
    for block in list(_known_blocks(network)) or list(_elements(network)):
        # The forward alone, not the call: an engine's hooks on the block stay outside, and the names of weights as they are.
        block.forward = partial(_recomputed, block)


def _recomputed(block: nn.Module, *arguments: Any, **keywords: Any) -> Any:
    forward = type(block).forward
    if not torch.is_grad_enabled():
        return forward(block, *arguments, **keywords)

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), StatisticsUntouched(block)

    return checkpoint(forward, block, *arguments, use_reentrant=False, context_fn=contexts, **keywords)


def _known_blocks(module: nn.Module) -> Iterator[nn.Module]:
    from transformers.modeling_layers import GradientCheckpointingLayer

    for child in module.children():
        if isinstance(child, GradientCheckpointingLayer) or type(child).__name__ in BLOCKS:
            yield child
        else:
            yield from _known_blocks(child)


def _elements(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.children():
        yield from child.children() if isinstance(child, nn.ModuleList | nn.Sequential) else _elements(child)
