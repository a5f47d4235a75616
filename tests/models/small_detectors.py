"""Detectors of transformers with random weights, small enough for tests, saved as a published one is."""

from pathlib import Path

import torch
from transformers import (
    DetrConfig,
    DetrForObjectDetection,
    ResNetConfig,
    RTDetrConfig,
    RTDetrForObjectDetection,
    RTDetrResNetConfig,
)
from transformers.models.detr import DetrImageProcessorPil
from transformers.models.rt_detr import RTDetrImageProcessorPil

STEM = {"embedding_size": 8, "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "layer_type": "basic"}
SIZE, QUERIES, LABELS = 32, 20, 5


def save_detr(folder: Path) -> DetrForObjectDetection:
    """20 queries of 32 numbers; scores by softmax, with a class for nothing."""
    torch.manual_seed(0)
    config = DetrConfig(
        backbone_config=ResNetConfig(**STEM, out_features=["stage4"]),
        d_model=SIZE,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        num_queries=QUERIES,
        num_labels=LABELS,
    )
    model = DetrForObjectDetection(config).eval()
    model.save_pretrained(folder)
    DetrImageProcessorPil(size={"shortest_edge": 64, "longest_edge": 96}).save_pretrained(folder)
    return model


def save_rt_detr(folder: Path) -> RTDetrForObjectDetection:
    """20 queries of 32 numbers; scores by sigmoid."""
    torch.manual_seed(0)
    config = RTDetrConfig(
        backbone_config=RTDetrResNetConfig(**STEM, out_features=["stage2", "stage3", "stage4"]),
        encoder_in_channels=[8, 16, 16],
        feat_strides=[8, 16, 32],
        decoder_in_channels=[SIZE] * 3,
        encoder_hidden_dim=SIZE,
        d_model=SIZE,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        num_queries=QUERIES,
        num_labels=LABELS,
        num_denoising=0,
    )
    model = RTDetrForObjectDetection(config).eval()
    model.save_pretrained(folder)
    RTDetrImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)
    return model
