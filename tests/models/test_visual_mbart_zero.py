"""The network under ZeRO 3 with activation checkpointing, on real processes."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from raysys.models.visual_mbart import VisualMBart
from raysys.training.engine import backward, make_engine, optimizer_step
from raysys.training.settings import TrainingSettings
from tests.models.visual_networks import network, pictures, texts
from tests.training.processes import run_ranks


class AllLosses(nn.Module):
    """All that the network gives in one forward pass: of pictures and texts, of texts alone, of both languages' words."""

    def __init__(self, network: VisualMBart):
        super().__init__()
        self.network = network

    def forward(self, rank: int) -> dict[str, Tensor]:
        ids, mask = texts(7, 4, 9, seed=10 + rank)
        target, target_mask = texts(5, 8, 3, seed=20 + rank)
        picture = pictures(3, seed=30 + rank)
        picture.has_pixels = torch.tensor([True, False, True])
        seen, alone = self.network.encode(ids, mask, [picture]), self.network.encode(target, target_mask)
        nll, _ = self.network.next_word_nll(seen, target, target_mask, torch.tensor([51, 52, 53]))
        hidden = self.network.word_nll(seen.text_states[mask.bool()], ids[mask.bool()])
        assert seen.region_states is not None
        return {"loss": nll.mean() + hidden.mean() + (seen.first - alone.first).norm(dim=1).mean() + seen.region_states.square().mean()}


def written(network: VisualMBart, rank: int) -> list[list[int]]:
    """Few rows of few pieces on one worker, more and longer ones on the other."""
    ids, mask = texts(7, 4, 9) if rank else texts(3)
    return network.generate(network.encode(ids, mask), torch.tensor([51, 52, 53])[: len(ids)], beams=2, max_tokens=4 + 3 * rank)


def work(rank: int) -> dict[str, Any]:
    from deepspeed.utils import safe_get_full_grad

    found: dict[str, Any] = {}
    for precision in ("fp32", "bf16"):
        own = network()
        own.checkpoint_activations()
        system = AllLosses(own).train()
        settings = TrainingSettings(global_batch=6, zero_stage=3, precision=precision, learning_rate=1e-2, clip_norm=0.0)
        engine = make_engine(system, settings, dist.get_world_size())
        engine.eval()
        with torch.no_grad():
            found[f"{precision}/written"] = written(own, rank)
        engine.train()
        for step in range(2):
            backward(engine, engine(rank)["loss"])
            if step == 0:
                found[precision] = {name: safe_get_full_grad(parameter).float() for name, parameter in engine.module.named_parameters()}
            assert optimizer_step(engine)[1], "finite gradients"
    return found


def test_gradients_are_those_of_one_process_and_all_workers_write():
    ranks = run_ranks(work, 2)
    for precision, tolerance in (("fp32", 1e-5), ("bf16", 3e-2)):
        system = AllLosses(network())
        sum(system(rank)["loss"] / 2 for rank in range(2)).backward()
        expected = {name: parameter.grad for name, parameter in system.named_parameters()}
        scale = max(float(gradient.norm()) for gradient in expected.values())
        for found in ranks:
            assert found[precision].keys() == expected.keys()
            for name, gradient in expected.items():
                assert torch.isfinite(found[precision][name]).all(), name
                assert (found[precision][name] - gradient).norm() <= tolerance * (gradient.norm() + 0.02 * scale), name
    for rank, found in enumerate(ranks):
        assert found["fp32/written"] == written(network(), rank)
        assert found["bf16/written"] == written(network().bfloat16(), rank)
