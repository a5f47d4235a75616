import subprocess
import sys

import pytest
import torch
from torch import nn

from raysys.benchmarks.gpu import SIZES, Largest, Speed, _batch, flops_of_step, peak, report


class Product(nn.Module):
    """One matrix product, [n, 3] by [3, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(3, 5, bias=False)

    def forward(self, batch):
        return {"rows": self.dense(batch)}

    def losses(self, vectors):
        return {"sum": vectors["rows"].sum()}

    def total(self, terms):
        return terms["sum"]


def test_operations_are_those_of_forward_and_backward():
    # The input needs no gradient: one product forward, one backward, of two operations per multiplication.
    assert flops_of_step(Product(), torch.ones(4, 3)) == 2 * (2 * 4 * 3 * 5)


def test_table():
    speeds = [Speed("pair", "sdpa", True, batch=100, seconds=0.5, flops=2e12, memory=3 * 2**30)]
    text = report("NVIDIA H200: 989 TFLOP/s by its data sheet", 40e12, speeds, [Largest("pair", 100, 1600, "memory")], left_out=2)
    assert "| pair | sdpa | yes | 100 | 200 | 4 | 10.0% | 3.0 |" in text.splitlines()
    assert "| pair | 100 | 1600 | memory |" in text.splitlines()
    assert "2 measurements were left out" in text
    assert "mean nothing" not in text


def test_peak_without_a_data_sheet_is_measured():
    rate, source = peak(torch.device("cpu"))
    assert 1e7 < rate < 1e15
    assert source.startswith("CPU: ")
    assert "measured here" in source


def test_a_batch_of_many_samples_is_made_of_few():
    batch = _batch(SIZES["tiny"]["ViT + text transformer"], 20, torch.device("cpu"))
    assert {len(value) for value in batch.tensors().values()} == {20}
    assert batch.count == 20
    assert torch.equal(batch.images[8:16], batch.images[:8])
    assert len(set(batch.image_ids.tolist())) == 20, "each is another's negative"


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="of a machine without a GPU")
def test_everything_runs_on_a_cpu():
    command = [sys.executable, "jobs/benchmark.py", "gpu", "--size", "tiny", "--steps", "1", "--no-compiled"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for pair in SIZES["tiny"]:
        for attention in ("sdpa", "eager"):
            assert f"| {pair} | {attention} | no | 8 | " in text
        assert f"| {pair} | 8 | 32 | the search, not the memory |" in text
    assert "mean nothing" in text
